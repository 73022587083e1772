"""What is played, by a program called aplay that writes down what it gets: in turn, dropped, interrupted."""

import json
import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from test_say import OK, USAGE, fake_player, raw
from test_say_serve import Server, ask
from test_say_stream import metadata

from harness import LINNET

LONG, SHORT = "One, two, three, four, five, six, seven, eight, nine and ten are numbers. " * 4, "Yes."
PACE = 2  # times as fast as it sounds

RECORDER = f"""#!{sys.executable} -SE
import os, sys, time
path = os.path.join(os.path.dirname(sys.argv[0]), f"{{time.time_ns()}}.raw")
with open(path, "wb", buffering=0) as to:
    while part := os.read(0, 512):
        to.write(part)
        time.sleep(len(part) / {2 * 16000 * PACE})
os.rename(path, path[:-3] + "whole")
"""


class Playing:
    """`linnet say` that reads lines, and what its players have written down, in the order of time."""

    def __init__(self, voices, folder, *args):
        folder.mkdir()
        (folder / "aplay").write_text(RECORDER)
        (folder / "aplay").chmod(0o755)
        self.folder = folder
        self.process = subprocess.Popen([LINNET, "say", "-m", voices / "one.lnt", *args], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})

    def line(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def players(self):
        return sorted(self.folder.glob("*.[rw]*"))

    def wait(self, condition, seconds=60):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until and self.process.poll() is None, self.process.stderr.read1()
            time.sleep(0.002)

    def end(self):
        _, err = self.process.communicate(timeout=120)
        assert self.process.returncode == OK, err
        return [np.frombuffer(p.read_bytes(), "<i2") for p in self.players()]


@pytest.fixture
def alone(voices):
    return {text: raw(voices, text) for text in (LONG, SHORT)}


def test_lines_are_played_in_turn(voices, alone, tmp_path):
    playing = Playing(voices, tmp_path / "p")
    for text in (SHORT, LONG[:len(LONG) // 4], SHORT):
        playing.line(text)
    sound, = playing.end()
    assert np.array_equal(sound, np.concatenate([alone[SHORT], raw(voices, LONG[:len(LONG) // 4]), alone[SHORT]]))


def test_a_hundred_interrupts(voices, alone, tmp_path):
    """Silence within a window's samples, then the next text, whole and alone."""
    window = 2 * 64 * int(metadata(voices / "one.lnt")["hop"])
    playing = Playing(voices, tmp_path / "p", "--queue", "interrupt")
    rng = random.Random(1)
    playing.line(LONG)
    for k in range(100):
        playing.wait(lambda: len(playing.players()) == 2 * k + 1)
        time.sleep(rng.uniform(0, 0.1))
        last = playing.players()[-1]
        before = last.stat().st_size
        playing.line(SHORT)
        playing.wait(lambda: len(playing.players()) == 2 * k + 2)
        assert last.stat().st_size - before <= window and last.suffix == ".raw"
        playing.wait(lambda: playing.players()[-1].stat().st_size == 2 * len(alone[SHORT]))
        playing.line(LONG)
    found = playing.end()
    assert len(found) == 201
    for cut, whole in zip(found[0:200:2], found[1::2]):
        assert np.array_equal(whole, alone[SHORT]) and np.array_equal(cut, alone[LONG][:len(cut)]) and len(cut) < len(alone[LONG])
    assert np.array_equal(found[200], alone[LONG])


def test_flush_drops_what_waits(voices, alone, tmp_path):
    playing = Playing(voices, tmp_path / "p", "--json-input")
    playing.line(json.dumps({"text": LONG}))
    playing.wait(lambda: playing.players())  # it is being spoken, and longer than the ring
    for _ in range(3):
        playing.line(json.dumps({"text": "No."}))
    playing.line(json.dumps({"text": SHORT, "queue": "flush"}))
    sound, = playing.end()
    assert np.array_equal(sound, np.concatenate([alone[LONG], alone[SHORT]]))


def test_lines_say_what_they_do_to_others(voices, alone, tmp_path):
    playing = Playing(voices, tmp_path / "p", "--json-input")
    playing.line(json.dumps({"text": LONG}))
    playing.wait(lambda: playing.players() and playing.players()[0].stat().st_size > 1000)
    playing.line(json.dumps({"text": "", "queue": "interrupt"}))  # silence
    playing.line(json.dumps({"text": SHORT, "queue": "add"}))
    playing.line(json.dumps({"text": SHORT}))
    cut, sound = playing.end()
    assert 0 < len(cut) < len(alone[LONG]) and np.array_equal(sound, np.concatenate([alone[SHORT], alone[SHORT]]))


def test_a_wrong_line_comes_in_its_turn(voices, alone, tmp_path):
    playing = Playing(voices, tmp_path / "p", "--json-input")
    for line in (json.dumps({"text": SHORT}), json.dumps({"text": SHORT, "queue": "soon"}), json.dumps({"text": LONG})):
        playing.line(line)
    _, err = playing.process.communicate(timeout=60)
    assert playing.process.returncode == USAGE and b"line 2" in err and b"soon" in err


def test_a_program_that_ends_while_a_line_is_waited_for(voices, tmp_path):
    """Nobody closes the lines: what fails ends the program all the same."""
    with subprocess.Popen([LINNET, "say", "-m", voices / "one.lnt"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **fake_player(tmp_path, "cat > /dev/null; exit 7"), "PATH": str(tmp_path / "none")}) as p:
        p.stdin.write(b"[[a]]\n")
        p.stdin.flush()
        assert b"alsa-utils" in p.stderr.read() and p.wait(timeout=60) == 4


def test_requests_interrupt_each_other(voices):
    import concurrent.futures

    with Server(voices, "--serve=0") as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, server, {"text": LONG * 20})
        time.sleep(0.3)
        waits = pool.submit(ask, server, {"text": "It waits."})
        time.sleep(0.3)
        last = ask(server, {"text": SHORT, "queue": "interrupt"})
        assert last.content[44:] == raw(voices, SHORT, name="three.lnt").tobytes()
        assert first.result().status_code == 503 and waits.result().status_code == 503
        assert ask(server, {"text": SHORT, "queue": "soon"}).status_code == 400
    with Server(voices, "--serve=0", "--queue", "flush") as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, server, {"text": LONG * 4})
        time.sleep(0.3)
        waits = pool.submit(ask, server, {"text": "It waits.", "queue": "add"})
        time.sleep(0.1)
        assert ask(server, {"text": SHORT}).status_code == 200
        assert (first.result().status_code, waits.result().status_code) in ((200, 503), (200, 200))


@pytest.mark.parametrize("args", [["text"], ["-f", "x.wav"], ["--output_raw"], ["--print", "ids"]])
def test_queues_are_for_lines_that_are_played(voices, args):
    assert subprocess.run([LINNET, "say", "-m", voices / "one.lnt", "--queue", "interrupt", *args], stdin=subprocess.DEVNULL,
                          capture_output=True).returncode == USAGE
