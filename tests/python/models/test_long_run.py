"""A thousand utterances of random length take no more memory than the longest alone; then it is given back, and the process
holds what it held."""

import json
import subprocess
import sys

import onnx
import pytest

from harness import ROOT, linnet
import voice

UTTERANCES = 1000
SHARE = 0.05

# In a process of its own, with nothing in it but numpy and the library.
SPEAK = f"""
import json, sys
sys.path[:0] = ["tests/python", "tests/python/builders"]
import numpy as np
from linnet_ctypes import Model, Session

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096

def speak(session, phonemes, length):
    session.run(ids=rng.integers(0, 40, (1, phonemes)), scales=np.array([0.6, length], np.float32))

LONGEST = 1500
rng = np.random.default_rng(5)
session = Session(Model(sys.argv[1]), threads=int(sys.argv[2]))
speak(session, 20, 1)
session.trim()
start = resident()
speak(session, LONGEST, 1.5)
largest = most = resident()
for i in range({UTTERANCES}):
    speak(session, int(rng.integers(1, 8 if i % 100 else LONGEST)), rng.uniform(0.5, 1.5))
    most = max(most, resident())
session.trim()
print(json.dumps({{"start": start, "largest": largest, "most": most, "end": resident()}}))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_comes_back(tmp_path, threads):
    onnx.save(voice.build(), tmp_path / "voice.onnx")
    assert linnet("convert", tmp_path / "voice.onnx", "-o", tmp_path / "voice.lnt").returncode == 0
    done = subprocess.run([sys.executable, "-c", SPEAK, tmp_path / "voice.lnt", str(threads)], cwd=ROOT, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    held = json.loads(done.stdout)
    assert held["most"] > held["start"] * (1 + 5 * SHARE), "the utterances are too short to show anything"
    assert held["most"] <= (1 + SHARE) * held["largest"], held
    assert abs(held["end"] - held["start"]) <= SHARE * held["start"], held
