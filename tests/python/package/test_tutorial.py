"""docs/tutorial.md: every command that it shows, in order, in a folder of its own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from harness import LONG, ROOT, import_package

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```", PAGE, re.S | re.M)
SILERO = ROOT / ".deps" / "silero_vad.onnx"
PEERS = ROOT / ".deps" / "peers" / "bin" / "python"


def shell(text, here, **more):
    done = subprocess.run(["sh", "-ec", text], cwd=here, capture_output=True, text=True, timeout=900, **more)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder that has what a checkout has once `make demo` ran."""
    if not SILERO.is_file():
        pytest.skip("make deps-test has brought no model")
    folder = tmp_path_factory.mktemp("tutorial")
    for name in (".deps", "Makefile", *(p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("."))):
        (folder / name).symlink_to(ROOT / name)
    return folder


def test_the_page_from_top_to_bottom(here):
    package = import_package()
    path = dict(os.environ, PATH=f"{ROOT}/build:{os.environ['PATH']}", LINNET_LIBRARY=os.environ["LINNET_LIBRARY"],
                PYTHONPATH=str(pathlib.Path(package.__file__).parents[1]))
    printed = {}
    for language, tag, text in BLOCKS:
        if tag:
            continue
        if language == "sh":
            for command in text.strip().splitlines():
                if not command.startswith(("make demo", "export")):
                    printed[command] = shell(command, here, env=path)
        elif language == "python":
            done = subprocess.run([sys.executable, "-c", text], cwd=here, env=path, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            assert float(done.stdout.strip("[]\n")) < 0.1
        else:
            (here / "speech.c").write_text(text)
    assert len(printed) >= 12
    assert 0 <= float(printed["./speech"]) < 0.1
    assert "pass" in printed["linnet verify vad.lnt"]
    small, large = (here / "vad8.lnt").stat().st_size, (here / "vad.lnt").stat().st_size
    assert small < large / 3
    if shutil.which("dot"):
        shell("dot -Tsvg vad.dot -o vad.svg", here)


def test_boards_that_it_names_are_there():
    boards = {b for _, tag, text in BLOCKS if tag == "board" for b in re.findall(r"BOARD=(\S+)", text)}
    assert boards and all((ROOT / "boards" / f"{b}.mk").is_file() for b in boards)


@pytest.mark.skipif(not (LONG and PEERS.is_file()), reason="torch is installed by make peers; LINNET_LONG=1")
def test_the_export_from_torch(here):
    text, = (text for _, tag, text in BLOCKS if tag == "torch")
    done = subprocess.run([str(PEERS), "-c", text], cwd=here, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    shell(f"{ROOT}/build/linnet convert digits.onnx && {ROOT}/build/linnet verify digits.lnt", here)
