"""README.md's fourteen tasks: each command as it stands there, in a folder that has what a checkout has after `make demo`."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import xml.dom.minidom

import numpy as np
import pytest
import requests

from harness import LONG, ROOT

sys.path.insert(0, str(ROOT / "tests/python/examples"))
from web_server import free_port  # noqa: E402

README = (ROOT / "README.md").read_text()
TASKS = re.search(r"^## Fourteen tasks.*?```sh\n(.*?)^```", README, re.S | re.M)[1]
SILERO = ROOT / ".deps" / "silero_vad.onnx"
FRAME = 576
# Of boards that run the same code the tests build one each time.
BOARD = "rpi4" if LONG else "generic-arm64"


def commands(number):
    """Those below the title of a task."""
    return re.search(rf"^# {number}\. .*\n((?:[^#].*\n)+)", TASKS, re.M)[1].splitlines()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder; its Python is one of its own, in which pip may install, that sees the packages of the tests'."""
    if not SILERO.is_file():
        pytest.skip("make deps-test has brought no model")
    folder = tmp_path_factory.mktemp("tasks")
    for path in ROOT.iterdir():
        if path.name not in ("build", ".deps", ".git"):
            (folder / path.name).symlink_to(path)
    demo = folder / "build" / "demo"
    demo.mkdir(parents=True)
    for name in ("linnet", "vad"):
        (folder / "build" / name).symlink_to(ROOT / "build" / name)
    subprocess.run(["make", "-s", "-C", ROOT, "build/vad"], check=True)
    subprocess.run([sys.executable, ROOT / "examples/vad/make_audio.py", demo / "sentences.wav", ROOT / "build/linnet",
                    demo / "frame.wav"], check=True)
    (folder / ".deps").mkdir()
    (folder / ".deps" / SILERO.name).symlink_to(SILERO)
    subprocess.run([sys.executable, "-m", "venv", folder / ".deps" / "venv"], check=True)
    packages, = (folder / ".deps" / "venv" / "lib").glob("python*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
    makefile = (ROOT / "Makefile").read_text()
    state = re.search(r"^VAD_STATE := (.*)$", makefile, re.M)[1]
    shell(folder, f"build/linnet convert .deps/{SILERO.name} -o build/demo/vad.lnt {state}")
    return folder


def shell(folder, command, **more):
    done = subprocess.run(["sh", "-ec", command], cwd=folder, capture_output=True, text=True, timeout=900, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def task(folder, number):
    """Does it; what the commands printed."""
    return [shell(folder, command) for command in commands(number)]


def test_there_are_fourteen():
    assert re.findall(r"^# (\d+)\. ", TASKS, re.M) == [str(n) for n in range(1, 15)]


def test_convert(place):
    printed, = task(place, 1)
    assert "LSTM" in printed or "pass" in printed
    assert (place / "build/demo/silero.lnt").stat().st_size > 1e6


@pytest.mark.skipif(not shutil.which("dot"), reason="no graphviz")
def test_look_inside(place):
    text, _ = task(place, 2)
    assert "input   sr" in text and "LSTM 2" in text
    picture = (place / "build/demo/vad.svg").read_text()
    assert "LSTM" in picture and xml.dom.minidom.parseString(picture).documentElement.tagName == "svg"


def test_run(place):
    task(place, 3)
    assert np.load(place / "build/demo/speech.npy").item() > 0.5


def test_verify(place):
    printed, = task(place, 4)
    assert "pass" in printed


def test_compare(place):
    printed, = task(place, 5)
    assert re.search(r"^ratio .* interval", printed, re.M) and printed.count("agrees") == 4
    picture = (place / "build/demo/ratios.svg").read_text()
    xml.dom.minidom.parseString(picture)
    assert all(word in picture for word in ("peak memory", "median", "onnxruntime"))


def test_quantize(place):
    printed, = task(place, 6)
    assert re.search(r"LSTM +INT8", printed) and "SNR" in printed
    assert (place / "build/demo/vad8.lnt").stat().st_size < (place / "build/demo/vad.lnt").stat().st_size / 3


def test_profile(place):
    printed, = task(place, 7)
    assert re.search(r"/LSTM +LSTM +[\d.]+ us", printed)
    assert json.loads((place / "build/demo/trace.json").read_text())


def test_fetch(place):
    task(place, 8)
    value = np.load(place / "build/demo/conv.npy")
    assert value.shape[1] == 128 and value.std() > 0


def test_detect_speech(place):
    """Where the microphone would speak, the file does."""
    file, live = commands(9)
    assert live.startswith("arecord ")
    heard = [re.findall(r"speech.*", shell(place, command)) for command in
             (file, live.replace(live.partition(" | ")[0], "cat build/demo/sentences.wav"))]
    assert len(heard[0]) == 5 and heard[0] == heard[1]


def test_cross_build(place):
    command, = commands(10)
    with_lock = f"flock build/{BOARD}.lock {command} -j{os.cpu_count()}".replace("rpi4", BOARD)
    shell(ROOT, with_lock)
    assert (ROOT / "build" / BOARD / "linnet").read_bytes()[18:20] == b"\xb7\0"  # EM_AARCH64


def test_install_and_use(place):
    """11, 12 and 13; Debian's packages are unpacked, not installed: tests/package.sh does that."""
    deb, pip, prefix = commands(11)
    make, _, install = deb.partition(" && ")
    assert install == "sudo apt-get install -y ./build/*.deb"
    shell(ROOT, make)
    for package in sorted((ROOT / "build").glob("*.deb")):
        shell(place, f"dpkg -x {package} build/demo/root")
    assert "linnet" in shell(place, "build/demo/root/usr/bin/linnet --version")
    shell(place, pip)
    shell(place, prefix)
    task(place, 12)
    for name in ("hello", "cmake/hello"):
        done = subprocess.run([place / "build/demo" / name], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={"LD_LIBRARY_PATH": f"{place}/build/demo/installed/lib"})
        assert done.returncode == 1 and done.stderr.startswith("hello: ")
    printed, = task(place, 13)
    assert 0 < float(re.search(r"array\(\[\[(.*?)\]", printed)[1]) < 0.1


def test_serve(place):
    command, = commands(14)
    port = free_port()
    server = subprocess.Popen(["sh", "-c", command.replace(" && ", " && exec ") + f" --port {port}"], cwd=place)
    try:
        end = time.monotonic() + 120
        found = None
        while not found and time.monotonic() < end and server.poll() is None:
            time.sleep(0.2)
            with contextlib.suppress(requests.ConnectionError):
                found = requests.get(f"http://localhost:{port}/v2/models/vad", timeout=10)
        assert found and {i["name"] for i in found.json()["inputs"]} == {"input", "state", "sr"}
    finally:
        server.terminate()
        server.wait(30)
