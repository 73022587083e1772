"""The examples in C, built as their pages say against what `make install` puts down."""

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import wave

import numpy as np
import pytest

from harness import LINNET, LONG, ROOT

EXAMPLES = ROOT / "examples"
SILERO = ROOT / ".deps" / "silero_vad.onnx"
PATIENCE = 60  # seconds


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the examples' sources, and the environment of who has installed Linnet elsewhere than in /usr."""
    folder = tmp_path_factory.mktemp("programs")
    done = subprocess.run(["make", "-s", "-C", ROOT, "install", f"PREFIX={folder}/installed"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("assistant", "vad", "streams", "custom"):
        for file in (EXAMPLES / name).iterdir():
            if file.is_file() and file.suffix != ".md":
                shutil.copy(file, folder)
    installed = folder / "installed"
    return folder, {**os.environ, "PKG_CONFIG_PATH": f"{installed}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{installed}/lib",
                    "PATH": f"{installed}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}


def commands(name, word):
    """Those of an example's page that begin with a word."""
    return re.findall(rf"^    ({word} .*)$", (EXAMPLES / name / "README.md").read_text(), re.M)


def shell(place, text, **more):
    return subprocess.run(["sh", "-c", text], cwd=place[0], env=place[1], capture_output=True, text=True, timeout=PATIENCE, **more)


def build(place, name):
    for command in commands(name, "cc"):
        done = shell(place, command.replace("cc ", "cc -Wall -Wextra -Werror ", 1))
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def vad(place):
    """vad.lnt, sound.wav (spoken sentences) and the program."""
    if not SILERO.is_file():
        pytest.skip("make deps-test has brought no model")
    folder, environment = place
    shutil.copy(SILERO, folder)
    assert shell(place, commands("vad", "linnet")[0]).returncode == 0
    subprocess.run([sys.executable, "make_audio.py", "sound.wav", LINNET], cwd=folder, check=True)
    build(place, "vad")
    return folder, environment


def samples(folder):
    with wave.open(str(folder / "sound.wav")) as sound:
        return sound.readframes(sound.getnframes())


def stretches(text):
    return re.findall(r"speech +([\d.]+) s \.\. +([\d.]+) s", text)


def test_a_pipe_hears_what_a_file_has(vad):
    expected = stretches(shell(vad, "./vad vad.lnt sound.wav").stdout)
    assert len(expected) == 5
    assert stretches(shell(vad, "./vad vad.lnt - < sound.wav").stdout) == expected
    assert stretches(shell(vad, "tail -c +45 sound.wav | ./vad vad.lnt -").stdout) == expected


def test_speech_is_told_as_it_is_heard(vad):
    folder, environment = vad
    sound = samples(folder)
    with subprocess.Popen(["./vad", "vad.lnt", "-"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as live:
        try:
            told, heard = b"", 0
            os.set_blocking(live.stdout.fileno(), False)
            for end, pattern in ((1.5, rb"^  speech +1\.090 s \.\. $"), (2.12, rb"\.\. +1\.918 s\n$"),
                                 (2.6, rb"\n  speech +2\.178 s \.\. $")):
                live.stdin.write(sound[heard:int(end * 16000) * 2])
                live.stdin.flush()
                heard, patience = int(end * 16000) * 2, time.monotonic() + PATIENCE
                while not re.search(pattern, told):
                    assert time.monotonic() < patience, (end, told)
                    told += live.stdout.read() or b""
                    time.sleep(0.01)
            live.stdin.close()
            assert live.wait(PATIENCE) == 0
        finally:
            live.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("given, why", [("rate", "not 16 bits, mono, 16000 Hz"), ("nothing", "")])
def test_other_sounds_are_refused(vad, given, why):
    folder, _ = vad
    with wave.open(str(folder / "rate.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(4000))
    (folder / "nothing.wav").write_bytes(b"")
    done = shell(vad, f"./vad vad.lnt - < {given}.wav")
    assert done.returncode == (1 if why else 0) and why in done.stderr and not done.stdout


def test_streams_do_not_disturb_each_other(vad):
    build(vad, "streams")
    folder, _ = vad
    sound = samples(folder)
    (folder / "left.raw").write_bytes(sound)
    (folder / "right.raw").write_bytes(bytes(32000) + sound[:len(sound) // 2])
    (folder / "silence.raw").write_bytes(bytes(len(sound)))
    alone = [shell(vad, f"./streams vad.lnt {name}.raw").stdout for name in ("left", "right", "silence")]
    counts = [int(re.search(r": (\d+) of", text)[1]) for text in alone]
    assert counts[0] > counts[1] > 50 and counts[2] == 0
    done = shell(vad, "./streams vad.lnt left.raw right.raw silence.raw left.raw")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join([*alone, alone[0]])
    held = [int(n) for n in re.findall(r"holds (\d+) bytes", done.stdout)]
    assert all(0 < n < 200_000 for n in held), "a session holds no weights"
    done = shell(vad, "./streams vad.lnt left.raw gone.raw")
    assert done.returncode == 1 and "streams: cannot open gone.raw" in done.stderr and "left.raw" in done.stdout


def test_an_operator_of_the_host_s(place):
    build(place, "custom")
    for command in commands("custom", "python") + commands("custom", "linnet"):
        done = shell(place, command)
        assert done.returncode == 0, done.stderr
    done = shell(place, commands("custom", "echo")[0])
    assert done.stdout.split() == "0 0 1 1 1 0 0 1".split(), done.stderr
    done = shell(place, "linnet convert switch.onnx -o other.lnt")
    assert done.returncode != 0 and "Hysteresis" in done.stderr
    assert shell(place, "./hysteresis gone.lnt < /dev/null").returncode == 1


def test_an_operator_checks_what_it_is_given(place, tmp_path):
    """A file may say anything: another rank, low above high."""
    build(place, "custom")
    text = (EXAMPLES / "custom" / "make_model.py").read_text()
    for old, new, why in (("np.float32(10)", "np.float32([[10]])", "takes float[N]"), ("high=0.7", "high=0.1", "low is above high")):
        assert old in text
        (tmp_path / "m.py").write_text(text.replace(old, new))
        subprocess.run([sys.executable, tmp_path / "m.py", tmp_path / "m.onnx"], check=True)
        assert shell(place, f"linnet convert {tmp_path}/m.onnx -o {tmp_path}/m.lnt --custom acme.Hysteresis").returncode == 0
        done = shell(place, f"echo 1 2 | ./hysteresis {tmp_path}/m.lnt")
        assert done.returncode == 1 and f"acme.Hysteresis: {why}" in done.stderr, done.stderr


def test_every_example_has_a_page():
    table = (EXAMPLES / "README.md").read_text()
    for folder in EXAMPLES.iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"({folder.name})" in table or f"({folder.name}/" in table, folder
            assert folder.name == "hello" or (folder / "README.md").is_file(), folder


# ---- the assistant ----

OWW = ROOT / ".deps" / "wakeword" / "openwakeword" / "resources" / "models"
QUIET = np.zeros(19200)  # 1.2 s


@pytest.fixture(scope="module")
def assistant(place):
    """The program, built as its page says, and its models."""
    if not SILERO.is_file() or not OWW.is_dir():
        pytest.skip("make deps-test has brought no models")
    folder, environment = place
    below = OWW.relative_to(ROOT / ".deps" / "wakeword")
    models = {"silero_vad/data/silero_vad.onnx": SILERO, **{f"{below}/{m.name}": m for m in OWW.iterdir()}}
    for name, path in models.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)
    for command in ("mkdir -p models", *commands("assistant", "linnet"), commands("assistant", "cp")[0].replace("/usr/local", "installed")):
        done = shell(place, command)
        assert done.returncode == 0, done.stderr
    build(place, "assistant")
    return folder, environment


def voice_says(text, program=(LINNET,), patience=PATIENCE):
    done = subprocess.run([*program, "say", text, "--output_raw"], capture_output=True, check=True, timeout=patience)
    return np.frombuffer(done.stdout, "<i2")


def word_said():
    """As openWakeWord knows it: it learned from voices of many kinds."""
    data = subprocess.run(["espeak-ng", "-v", "en-us+f3", "-s", "130", "--stdout", "Hey Mycroft"], check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(data)) as sound:
        rate, x = sound.getframerate(), np.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(float)
    return 0.6 * np.interp(np.arange(int(len(x) * 16000 / rate)) * rate / 16000, np.arange(len(x)), x)


def hears(place, *sounds, command=("./assistant",), patience=PATIENCE):
    """What it says, and what it tells of that."""
    x = np.concatenate([*sounds, QUIET, QUIET]).astype("<i2")
    done = subprocess.run([*command, "models"], cwd=place[0], env=place[1], input=x.tobytes(), capture_output=True, timeout=patience)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, "<i2"), done.stderr.decode().splitlines()


def answers(place, **how):
    """What it says, and the text of that."""
    word, request = word_said(), voice_says("What is the weather like in the morning?")
    answer, told = hears(place, QUIET, word, QUIET, request, **how)
    assert len(told) == 3 and told[0].endswith("the word"), told
    text = told[1].split("s  ", 1)[1]
    spoken = float(re.fullmatch(r"You spoke for ([\d.]+) seconds.", text)[1])
    assert abs(spoken - len(request) / 16000) < 0.6, told
    assert re.fullmatch(r"[\d.]+ s heard, [\d.]+ % of a processor, at most [\d.]+ MB of memory", told[2]), told
    return answer, text


def test_an_assistant_answers_to_its_word(assistant):
    answer, text = answers(assistant)
    assert np.array_equal(answer, voice_says(text))


@pytest.mark.skipif(not (LONG and shutil.which("qemu-aarch64")), reason="LINNET_LONG=1 and qemu-user")
def test_an_assistant_on_a_board(assistant):
    """Raspberry Pi Zero 2 W, emulated: the same page, built against the board's library."""
    folder, _ = assistant
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    done = subprocess.run(["flock", "build/rpi-zero2w.lock", "make", "-s", f"-j{os.cpu_count()}", "BOARD=rpi-zero2w", "all", "install",
                           f"PREFIX={folder}/board"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    sources = [name for name in shlex.split(commands("assistant", "cc")[0]) if name.endswith(".c")]
    done = subprocess.run(["aarch64-linux-gnu-gcc", "-static", "-O2", *sources, "-Iboard/include", "-Lboard/lib", "-llinnet-speech",
                           "-llinnet", "-lm", "-pthread", "-o", "assistant.board"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    board = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", "LD_LIBRARY_PATH=/lib", "-cpu", "cortex-a53"]
    answer, text = answers(assistant, command=[*board, "./assistant.board"], patience=900)
    assert np.array_equal(answer, voice_says(text, [*board, ROOT / "build/rpi-zero2w/linnet"], 900))


def test_an_assistant_is_silent_unless_it_is_called(assistant):
    answer, told = hears(assistant, QUIET, voice_says("What is the weather like in the morning?"))
    assert not len(answer) and len(told) == 1, told


def test_an_assistant_does_not_wait_for_ever(assistant):
    answer, told = hears(assistant, QUIET, word_said(), *[QUIET] * 4)
    assert told[1].endswith("I am listening, but I hear nothing.") and len(answer)


def test_an_assistant_without_models(assistant):
    done = shell(assistant, "./assistant nowhere < /dev/null")
    assert done.returncode == 1 and "nowhere/mels.lnt" in done.stderr
