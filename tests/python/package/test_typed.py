"""The package's public names: every one has complete annotations and says what it does."""

import enum
import inspect
import pathlib
import typing

import pytest

from harness import import_package

linnet = import_package()
MODULES = (linnet, linnet.quantization, linnet.capi.onnxruntime_pybind11_state)
INHERITED = {"args", "with_traceback", "add_note", "errno", "filename", "filename2", "strerror", "characters_written"}


def public():
    """(name, function or property's getter or class) of all that __all__ names, methods too."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
            if not inspect.isclass(value) or issubclass(value, (enum.Enum, tuple)):
                continue
            for key, member in vars(value).items():
                member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                member = member.fget if isinstance(member, property) else member
                if inspect.isfunction(member) and (not key.startswith("_") or key == "__init__"):
                    yield f"{module.__name__}.{name}.{key}", member


NAMES = dict(public())


def test_there_is_something_to_look_at():
    assert "linnet.InferenceSession.run" in NAMES and "linnet.RunOptions.terminate" in NAMES and len(NAMES) > 90


@pytest.mark.parametrize("name", NAMES)
def test_complete(name):
    value = NAMES[name]
    if not name.endswith("__init__"):
        assert (value.__doc__ or "").strip(), "no docstring"
    if inspect.isclass(value):
        return
    hints = {k: v for k, v in typing.get_type_hints(value, vars(inspect.getmodule(value)), vars(linnet)).items()}
    wanted = [p for p in inspect.signature(value).parameters if p not in ("self", "cls")]
    assert not [p for p in [*wanted, "return"] if p not in hints], "no annotation"


def test_the_package_says_that_it_is_typed():
    folder = pathlib.Path(linnet.__file__).parent
    assert (folder / "py.typed").is_file() and '"py.typed"' in (folder.parent / "setup.py").read_text()


def test_annotations_are_of_the_oldest_python_that_is_supported():
    """`X | Y` may stand in annotations only where they are not evaluated."""
    for path in pathlib.Path(linnet.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert " | None" not in text or "from __future__ import annotations" in text, path
