"""INT8 on models with trained weights: what they are for comes out the same on inputs that were not calibrated on."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness import LONG, SHARED, linnet, reference
from linnet_ctypes import Model, Session
from test_int8 import convert, run, snr

FOLDER = SHARED / "models"


@pytest.fixture(autouse=True)
def models(shared):
    """All of these need the shared models."""


def recorded(model, case, number=0):
    tensor = onnx.TensorProto()
    tensor.ParseFromString((FOLDER / model / f"test_data_set_{case}" / f"input_{number}.pb").read_bytes())
    return numpy_helper.to_array(tensor)


def convert_model(folder, model, *options, state=()):
    """The float model and the quantized one, and the report."""
    onnx_file = folder / f"{model}.onnx"
    shutil.copy(FOLDER / model / "model.onnx", onnx_file)
    words = [w for s in state for w in ("--state", s)]
    plain = folder / f"{model}.float.lnt"
    done = linnet("convert", onnx_file, "-o", plain, *words)
    assert done.returncode == 0, done.stderr
    return plain, onnx_file.with_suffix(".lnt"), convert(onnx_file, *options, *words)["int8"]


def ratio(plain, quantized):
    return quantized.stat().st_size / plain.stat().st_size


@pytest.mark.parametrize("model, mode, size", [("ultraface_rfb_320", "dynamic", 0.285), ("ultraface_rfb_320", "static", 0.295),
                                               ("superres", "dynamic", 0.27), ("superres", "static", 0.275),
                                               ("light_squeezenet", "dynamic", 0.265), ("light_squeezenet", "static", 0.275)])
def test_sizes(tmp_path, model, mode, size):
    """Little but a byte for each weight: no padding, no floats that need not be. What memory loading takes is told."""
    calibrated = ["--calibrate", FOLDER / model] * (mode == "static")
    plain, quantized, _ = convert_model(tmp_path, model, "--int8", mode, "--min-snr", "0", *calibrated)
    assert ratio(plain, quantized) <= size
    restored = json.loads(linnet("info", quantized, "--json").stdout)["restored_bytes"]
    assert 0 < restored < plain.stat().st_size / 2


# ---- faces ----


def views(rng, photo, n, height, width, least, most):
    """Parts of a photo, larger or smaller, mirrored, lighter or darker; the first as it is, if it fits."""
    for i in range(n):
        part = rng.uniform(0.5, 1) if i or photo.shape[1:] != (height, width) else 1
        high, wide = int(photo.shape[1] * part), int(photo.shape[2] * part)
        y, x = rng.integers(0, photo.shape[1] - high + 1), rng.integers(0, photo.shape[2] - wide + 1)
        view = photo[:, (y + np.arange(height) * high / height).astype(int)]
        view = view[:, :, (x + np.arange(width) * wide / width).astype(int)]
        view = view[:, :, ::-1] if i % 2 else view
        yield np.clip((view - least) * (rng.uniform(0.6, 1.2) if i else 1) + least, least, most).astype(np.float32)[None]


def record_views(folder, photos, n, *how):
    folder.mkdir()
    for p, photo in enumerate(photos):
        for i, view in enumerate(views(np.random.default_rng(1 + p), photo, n, *how)):
            np.savez(folder / f"{i:02}_{p}.npz", input=view)
    return folder


def keep_best(boxes, scores, overlap=0.4):
    """Boxes x0 y0 x1 y1 without those that lie over a better one."""
    kept = []
    for i in np.argsort(-scores):
        a = boxes[i]
        for k in kept:
            b = boxes[k]
            w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            both = max(w, 0) * max(h, 0)
            if both > overlap * ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both):
                break
        else:
            kept.append(i)
    return boxes[kept]


def ultraface_boxes(out, least):
    score = out["scores"][0, :, 1]
    found = score > least
    return out["boxes"][0, found] * [320, 240, 320, 240], score[found]


def yunet_boxes(out, least):
    """Boxes of all strides; the input is 256 wide."""
    boxes, scores = [], []
    for stride in (8, 16, 32):
        score = np.sqrt(np.clip(out[f"cls_{stride}"][0, :, 0], 0, 1) * np.clip(out[f"obj_{stride}"][0, :, 0], 0, 1))
        for i in np.flatnonzero(score > least):
            x, y, w, h = out[f"bbox_{stride}"][0, i]
            row, column = divmod(i, 256 // stride)
            x, y, w, h = (column + x) * stride, (row + y) * stride, np.exp(w) * stride, np.exp(h) * stride
            boxes.append([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
            scores.append(score[i])
    return np.array(boxes), np.array(scores)


def same_boxes(find, want, got, least):
    """What one finds the other finds, within a pixel, with a score that may be a little lower; of boxes over each other it
    may like another best."""
    for one, other in ((want, got), (got, want)):
        sure, (possible, _) = keep_best(*find(one, least)), find(other, least - 0.05)
        assert len(sure)
        for box in sure:
            assert np.abs(possible - box).max(axis=1).min() <= 1, box


YUNET = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in (8, 16, 32)]


@pytest.mark.parametrize("calibrated", [0, 1] if LONG else [0])
def test_ultraface(tmp_path, calibrated):
    photos = [recorded("ultraface_rfb_320", i)[0] for i in range(2)]
    samples = record_views(tmp_path / "samples", [photos[calibrated]], 8, 240, 320, -1, 1)
    plain, quantized, report = convert_model(tmp_path, "ultraface_rfb_320", "--int8", "static", "--calibrate", samples)
    assert report["multiplications_in_int8"] >= 0.9 and all(o["snr_db"] >= 30 for o in report["outputs"])
    feed = {"input": photos[1 - calibrated][None]}
    out = [run(lnt, feed, ["scores", "boxes"], tmp_path) for lnt in (plain, quantized)]
    same_boxes(ultraface_boxes, *out, 0.7)
    assert all(snr(out[0][name], out[1][name]) >= 30 for name in out[0])


def by_kind(out):
    """What the detector reads together: outputs of all strides, with as many numbers for each place."""
    return {kind: np.concatenate([out[f"{kind}_{stride}"].ravel() for stride in (8, 16, 32)]) for kind in ("cls", "obj", "bbox", "kps")}


def heads(s, view):
    s.run(input=view)
    return {name: s.get(name).copy() for name in YUNET}


def test_yunet(tmp_path):
    """Ranges from four photos; a fifth as it is, and parts of it in two sizes, mirrored, lighter or darker."""
    photo = recorded("yunet_n_dynamic", 0)[0]
    others = [*recorded("yunet_n_dynamic", 1), *(recorded("ultraface_rfb_320", i)[0][::-1] * 128 + 127 for i in range(2))]
    samples = record_views(tmp_path / "samples", others, 4, 192, 256, 0, 255)
    plain, quantized, report = convert_model(tmp_path, "yunet_n_dynamic", "--int8", "static", "--calibrate", samples)
    assert report["multiplications_in_int8"] >= 0.8 and all(o["snr_db"] >= 30 for o in report["outputs"])
    sessions = [session(lnt) for lnt in (plain, quantized)]
    fresh = [view for size in ((192, 256), (128, 192)) for view in views(np.random.default_rng(77), photo, 5, *size, 0, 255)]
    for i, view in enumerate(fresh):
        want, got = (heads(s, view) for s in sessions)
        exact, found = by_kind(want), by_kind(got)
        ratios = {kind: snr(exact[kind], found[kind]) for kind in exact}
        assert min(ratios.values()) >= 30, (i, ratios)
        if i == 0:
            same_boxes(yunet_boxes, want, got, 0.6)


# ---- sounds ----

HEARD = [("Please turn off the lights in the kitchen, and set a timer for ten minutes.", "en-us"),
         ("How much wood would a woodchuck chuck, if a woodchuck could chuck wood?", "en-us+f3"),
         ("The quick brown fox jumps over the lazy dog, and runs away from the hunters.", "en-gb"),
         ("Hey Mycroft, what will the weather be like in Paris on Thursday?", "en-us+f4")]
OTHERS = [("She sells sea shells by the sea shore.", "en-us"), ("Turn it up, please.", "en-gb"), ("Stop.", "en-us+m4"),
          ("What time is it in Tokyo?", "en-us+f2"), ("Open the door, then close the window again.", "en-gb+f3")]
NEW = [("Hey Jarvis, play some music in the living room.", "en-us+f3"), ("Seven silver swans swam silently seaward.", "en-gb+m3")]


def speech(text, voice, noise):
    """At 16 kHz, samples of 16 bits as floats, with noise."""
    spoken = subprocess.run(["espeak-ng", "-v", voice, "-s", "150", "--stdout", text], capture_output=True, check=True).stdout
    x = np.frombuffer(spoken[44:], np.int16)
    x = np.interp(np.arange(0, len(x) - 1, 22050 / 16000), np.arange(len(x)), x)
    return (x + np.random.default_rng(len(text)).normal(0, noise, len(x))).astype(np.float32)


def record(folder, feeds):
    folder.mkdir()
    for i, feed in enumerate(feeds):
        np.savez(folder / f"{i:04}.npz", **feed)
    return folder


def session(lnt):
    return Session(Model(lnt))


@pytest.mark.parametrize("mode, share, size", [("dynamic", 0.9, 0.28), ("static", 0.97, 0.28)])
def test_openwakeword(tmp_path, mode, share, size):
    """Embeddings of windows of sentences that were not calibrated on, in other voices: each is nearest to its own."""
    def windows(sentence, hop):
        mel = reference(FOLDER / "oww_melspec/model.onnx", {"input": speech(*sentence, 100)[None]})[0].squeeze() / 10 + 2
        return [mel[i:i + 76, :, None] for i in range(0, len(mel) - 75, hop)]

    samples = record(tmp_path / "samples", [{"input_1": w[None]} for sentence in HEARD for w in windows(sentence, 40)])
    fresh = np.stack([w for sentence in NEW for w in windows(sentence, 32)])
    plain, quantized, report = convert_model(tmp_path, "oww_embedding", "--int8", mode, "--calibrate", samples)
    assert report["multiplications_in_int8"] >= share and report["outputs"][0]["snr_db"] >= 30
    assert ratio(plain, quantized) <= size
    want, got = (run(lnt, {"input_1": fresh}, ["conv2d_19"], tmp_path)["conv2d_19"].reshape(len(fresh), -1)
                 for lnt in (plain, quantized))
    distance = np.linalg.norm(want[:, None] - got[None], axis=2)
    assert np.array_equal(distance.argmin(axis=1), np.arange(len(fresh))), distance
    assert snr(want, got) >= 30


def denoise(networks, sound, recorded=None):
    """DTLN's loop over blocks of 512 samples, 128 apart, states carried: the masks, and the sound that comes out."""
    state = [np.zeros((1, 2, 128, 2), np.float32)] * 2
    block, made, masks, out = np.zeros(512, np.float32), np.zeros(512, np.float32), [], []
    names = [("input_2", "input_3", "activation_2", "tf_op_layer_stack_2"), ("input_4", "input_5", "conv1d_3", "tf_op_layer_stack_5")]

    def step(k, x):
        feed = {names[k][0]: x[None, None].astype(np.float32), names[k][1]: state[k]}
        if recorded is not None:
            recorded[k].append(feed)
        networks[k].run(**feed)
        state[k] = networks[k].get(names[k][3])
        return networks[k].get(names[k][2])[0, 0]

    for at in range(0, len(sound) - 127, 128):
        block = np.concatenate([block[128:], sound[at:at + 128] / 32768])
        spectrum = np.fft.rfft(block)
        masks.append(step(0, np.abs(spectrum)))
        made = np.concatenate([made[128:], np.zeros(128, np.float32)]) + step(1, np.fft.irfft(spectrum * masks[-1]))
        out.append(made[:128])
    return np.array(masks), np.concatenate(out)


@pytest.mark.parametrize("calibrated", [False, True])
def test_dtln(tmp_path, calibrated):
    """Both networks, one behind the other, over a sentence: errors of states and masks add up as they do at work."""
    names, blocks = ("dtln_1", "dtln_2"), ([], [])
    made = [convert_model(tmp_path, name, "--int8", "dynamic") for name in names]
    floats = [session(plain) for plain, _, _ in made]
    if calibrated:
        denoise(floats, speech(*HEARD[0], 300), blocks)
        made = [convert_model(tmp_path, name, "--int8", "dynamic", "--calibrate",
                              record(tmp_path / f"samples{k}", blocks[k][::8])) for k, name in enumerate(names)]
    for plain, quantized, report in made:
        assert ratio(plain, quantized) <= 0.28 and report["multiplications_in_int8"] >= 0.9
        assert all(o["snr_db"] >= 30 for o in report["outputs"])
    sound = speech(*NEW[0], 300)
    for want, got in zip(denoise(floats, sound), denoise([session(q) for _, q, _ in made], sound)):
        assert snr(want, got) >= 30


def sentences(which, seed):
    """Sentences with pauses between them, in a little noise."""
    pause = np.zeros(12000)
    sound = np.concatenate([x for sentence in which for x in (pause, speech(*sentence, 0))] + [pause]) / 32768
    return (sound + np.random.default_rng(seed).normal(0, 0.003, len(sound))).astype(np.float32)


def detect_speech(lnt, sound, recorded=None):
    """Probabilities of speech of frames of 512, the state carried from one to the next."""
    s, state, found = session(lnt), np.zeros((2, 1, 128), np.float32), []
    for at in range(512, len(sound) - 511, 512):
        feed = dict(input=sound[None, at - 64:at + 512], state=state, sr=np.array(16000, np.int64))
        if recorded is not None:
            recorded.append(feed)
        s.run(**feed)
        state = s.get("stateN").copy()
        found.append(s.get("output")[0, 0])
    return np.array(found)


@pytest.mark.parametrize("mode", [None, "dynamic", "static"] if LONG else [None, "dynamic"])
def test_silero(tmp_path, mode):
    """Without samples bytes say the same of speech where floats are certain; with frames recorded one after another,
    whose states are then the quantized model's own, segments begin and end in the same frames."""
    plain, quantized, _ = convert_model(tmp_path, "silero_vad_v6", "--int8", "dynamic")
    assert ratio(plain, quantized) <= 0.28
    if mode:
        frames = []
        detect_speech(plain, sentences(HEARD[:1], 3), frames)
        quantized, report = convert_model(tmp_path, "silero_vad_v6", "--int8", mode, "--calibrate",
                                          record(tmp_path / "samples", frames))[1:]
        assert all(o["snr_db"] >= 31 for o in report["outputs"]) and ratio(plain, quantized) <= 0.28
        assert sum(not layer["int8"] for layer in report["layers"]) == 1
    for which, seed in ((NEW, 5), (OTHERS, 6)) if mode else ((NEW, 5),):
        sound = sentences(which, seed)
        want, got = detect_speech(plain, sound), detect_speech(quantized, sound)
        assert snr(want, got) >= (40 if mode else 30)
        assert 40 < (want > 0.5).sum() < len(want) - 40
        assert ((want > 0.5) != (got > 0.5))[np.abs(want - 0.5) > (0 if mode else 0.1)].sum() == 0


# ---- files ----


def test_magika(tmp_path):
    plain, quantized, report = convert_model(tmp_path, "magika_v3_3", "--int8", "dynamic")
    assert ratio(plain, quantized) <= 0.28
    rng = np.random.default_rng(4)
    texts = [b"#!/bin/sh\nset -e\nfor f in *.c; do\n  cc -c $f\ndone\n", b"import os\n\ndef main():\n    print(os.getcwd())\n",
             b'{"a": [1, 2, 3], "b": {"c": null}}\n', b"<html><body><p>text</p></body></html>\n",
             b"#include <stdio.h>\nint main(void) { puts(\"x\"); }\n", b"a,b,c\n1,2,3\n4,5,6\n", rng.bytes(700)]
    feeds = [recorded("magika_v3_3", case) for case in range(3)]
    for text in texts:
        ends = np.full((2, 1024), 256, np.int32)
        body = np.frombuffer(text * (1 + 600 // len(text)), np.uint8)[:1024]
        ends[0, :len(body)], ends[1, 1024 - len(body):] = body, body
        feeds.append(ends.reshape(1, -1))
    for feed in feeds:
        want, got = (run(lnt, {"bytes": feed}, ["target_label"], tmp_path)["target_label"] for lnt in (plain, quantized))
        assert np.array_equal(want.argmax(axis=-1), got.argmax(axis=-1)) and snr(want, got) >= 30
