"""Fixtures of all Python tests, which import the models' builders by name."""

import json
import sys

import onnx
import pytest

from harness import ROOT, SHARED, linnet, suite

sys.path.insert(0, str(ROOT / "tests/python/builders"))


@pytest.fixture(scope="session")
def shared():
    """The folder of real models and suites; tests that need it are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED.name}/ (set LINNET_SHARED)")
    return SHARED


@pytest.fixture(scope="session")
def suite_folder():
    """The ONNX backend suite: the shared one, unpacked once; else what the onnx package holds and makes."""
    return suite()


@pytest.fixture(scope="session")
def voices(tmp_path_factory):
    """Voices that `linnet say` speaks with, small, of seeded weights: one.onnx, of one speaker, and three.onnx, each with
    its .json and, converted, its .lnt."""
    import voice

    folder = tmp_path_factory.mktemp("voices")
    for name, speakers in (("one", ()), ("three", ("anna", "bert", "carl"))):
        onnx.save(voice.build_piper(speakers=max(1, len(speakers))), folder / f"{name}.onnx")
        (folder / f"{name}.onnx.json").write_text(json.dumps(voice.piper_config(speakers), indent=2))
        done = linnet("convert", folder / f"{name}.onnx", "--config", folder / f"{name}.onnx.json", "-o", folder / f"{name}.lnt")
        assert done.returncode == 0, done.stderr
    return folder
