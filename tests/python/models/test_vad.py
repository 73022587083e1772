"""The demo: its speech segments against onnxruntime running the same model over the same sound."""

import re
import subprocess
import wave

import numpy as np
import onnxruntime as ort
import pytest

from harness import ROOT, linnet

RATE, CONTEXT, STEP = 16000, 64, 512
MODEL = ROOT / ".deps" / "silero_vad.onnx"


@pytest.fixture(scope="module")
def demo():
    """What `make demo` prints."""
    if not MODEL.is_file():
        pytest.skip("no silero_vad.onnx: run make deps-test")
    done = subprocess.run(["make", "-s", "demo"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sound(demo):
    """The demo's sentences: path and samples."""
    path = ROOT / "build" / "demo" / "sentences.wav"
    with wave.open(str(path)) as w:
        assert w.getframerate() == RATE
        samples = np.frombuffer(w.readframes(w.getnframes()), np.int16)
    return path, samples.astype(np.float32) / 32768


def probabilities(samples):
    session = ort.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
    state, context, found = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), []
    for start in range(0, len(samples), STEP):
        chunk = np.zeros(STEP, np.float32)
        part = samples[start:start + STEP]
        chunk[:len(part)] = part
        frame = np.concatenate([context, chunk])[None]
        out, state = session.run(None, {"input": frame, "state": state, "sr": np.array(RATE, np.int64)})
        context = chunk[-CONTEXT:]
        found.append(float(out[0, 0]))
    return found


def segments(probability, n, threshold=0.5):
    """silero's get_speech_timestamps with its default parameters, without a longest length."""
    low, shortest, pause, pad = threshold - 0.15, RATE * 250 / 1000, RATE * 100 / 1000, RATE * 30 / 1000
    triggered, begin, end, found = False, None, 0, []
    for i, p in enumerate(probability):
        at = STEP * i
        if p >= threshold and end:
            end = 0
        if p >= threshold and not triggered:
            triggered, begin = True, at
        elif p < low and triggered:
            end = end or at
            if at - end >= pause:
                if end - begin > shortest:
                    found.append([begin, end])
                triggered, end = False, 0
    if triggered and n - begin > shortest:
        found.append([begin, n])
    for i, s in enumerate(found):
        if i == 0:
            s[0] = int(max(0, s[0] - pad))
        if i == len(found) - 1:
            s[1] = int(min(n, s[1] + pad))
            continue
        silence = found[i + 1][0] - s[1]
        if silence < 2 * pad:
            s[1] += int(silence // 2)
            found[i + 1][0] = int(max(0, found[i + 1][0] - silence // 2))
        else:
            s[1] = int(min(n, s[1] + pad))
            found[i + 1][0] = int(max(0, found[i + 1][0] - pad))
    return found


def printed_segments(model, path):
    done = subprocess.run([ROOT / "build/vad", model, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return re.findall(r"speech\s+([\d.]+) s \.\.\s+([\d.]+) s", done.stdout)


def test_segments_agree_with_onnxruntime(sound):
    path, samples = sound
    printed = printed_segments(ROOT / "build/demo/vad.lnt", path)
    expected = segments(probabilities(samples), len(samples))
    assert len(expected) >= 4
    assert [(f"{a / RATE:.3f}", f"{b / RATE:.3f}") for a, b in expected] == printed


def test_the_file_proves_itself(demo):
    """It carries golden vectors: of a run at the sample rate that the model compares its input with."""
    done = linnet("verify", ROOT / "build/demo/vad.lnt")
    assert done.returncode == 0 and done.stdout.count("pass") == 2, done.stdout + done.stderr
    done = linnet("info", ROOT / "build/demo/vad.lnt")
    assert done.returncode == 0 and "memory: arena" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("options, frames", [([], 1), (["--min-snr", 45], 0)])
def test_segments_in_int8(sound, tmp_path, options, frames):
    """The same segments, to a frame where an edge depends on little; with more asked for, the very same."""
    path, samples = sound
    state = re.search(r"^VAD_STATE := (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    if options:  # on another sound
        other = np.interp(np.arange(0, len(samples) // 3, 0.93), np.arange(len(samples)), samples[::-1])
        for i in range(0, 120, 3):
            np.savez(tmp_path / f"{i:03}.npz", input=other[None, i * STEP:i * STEP + CONTEXT + STEP].astype(np.float32),
                     sr=np.array(RATE, np.int64), state=np.zeros((2, 1, 128), np.float32))
        options = [*options, "--calibrate", tmp_path]
    done = linnet("convert", MODEL, "-o", tmp_path / "vad.lnt", *state, "--int8", "dynamic", *options)
    assert done.returncode == 0, done.stderr
    want, got = (np.array(printed_segments(model, path), float) for model in (ROOT / "build/demo/vad.lnt", tmp_path / "vad.lnt"))
    assert want.shape == got.shape and np.abs(want - got).max() < frames * STEP / RATE + 1e-3


def test_table_is_complete(demo):
    for row in ("model .onnx", "model .lnt", "program", "load", "a frame", "real-time factor", "peak memory"):
        assert re.search(rf"^  {re.escape(row)}.*\d", demo, re.M), demo
