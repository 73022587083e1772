"""INT8 on models with trained weights: what they are for comes out the same on inputs that were not calibrated on."""

import shutil

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness import LONG, SHARED, linnet
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
    """The float model and the quantised one, and the report."""
    onnx_file = folder / f"{model}.onnx"
    shutil.copy(FOLDER / model / "model.onnx", onnx_file)
    words = [w for s in state for w in ("--state", s)]
    done = linnet("convert", onnx_file, "-o", folder / "float.lnt", *words)
    assert done.returncode == 0, done.stderr
    return folder / "float.lnt", onnx_file.with_suffix(".lnt"), convert(onnx_file, *options, *words)["int8"]


def ratio(plain, quantised):
    return quantised.stat().st_size / plain.stat().st_size


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
    """What one finds beyond doubt the other finds, within a pixel; of boxes over each other it may like another best."""
    for one, other in ((want, got), (got, want)):
        sure, (possible, _) = keep_best(*find(one, least + 0.1)), find(other, least - 0.1)
        assert len(sure)
        for box in sure:
            assert np.abs(possible - box).max(axis=1).min() <= 1, box


YUNET = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in (8, 16, 32)]


@pytest.mark.parametrize("calibrated", [0, 1] if LONG else [0])
def test_ultraface(tmp_path, calibrated):
    photos = [recorded("ultraface_rfb_320", i)[0] for i in range(2)]
    samples = record_views(tmp_path / "samples", [photos[calibrated]], 8, 240, 320, -1, 1)
    plain, quantised, report = convert_model(tmp_path, "ultraface_rfb_320", "--int8", "static", "--calibrate", samples)
    assert report["multiplications_in_int8"] >= 0.9 and all(o["snr_db"] >= 30 for o in report["outputs"])
    feed = {"input": photos[1 - calibrated][None]}
    out = [run(lnt, feed, ["scores", "boxes"], tmp_path) for lnt in (plain, quantised)]
    same_boxes(ultraface_boxes, *out, 0.7)
    assert all(snr(out[0][name], out[1][name]) >= 30 for name in out[0])


def test_yunet(tmp_path):
    """Ranges from four photos, faces on a fifth."""
    photo = recorded("yunet_n_dynamic", 0)[0]
    others = [*recorded("yunet_n_dynamic", 1), *(recorded("ultraface_rfb_320", i)[0][::-1] * 128 + 127 for i in range(2))]
    samples = record_views(tmp_path / "samples", others, 4, 192, 256, 0, 255)
    plain, quantised, report = convert_model(tmp_path, "yunet_n_dynamic", "--int8", "static", "--calibrate", samples)
    assert report["multiplications_in_int8"] >= 0.8 and all(o["snr_db"] >= 30 for o in report["outputs"])
    out = [run(lnt, {"input": photo[None]}, YUNET, tmp_path) for lnt in (plain, quantised)]
    same_boxes(yunet_boxes, *out, 0.6)


# ---- sounds ----


def test_openwakeword(tmp_path):
    """Embeddings of windows of speech: each is nearest to its own."""
    rng = np.random.default_rng(3)
    speech = np.concatenate([recorded("oww_embedding", 1), recorded("oww_embedding", 0)])
    samples = tmp_path / "samples"
    samples.mkdir()
    for i in range(12):  # louder and softer, later and earlier
        window = np.roll(speech[i % 4], rng.integers(-20, 20), axis=0) + rng.uniform(-1, 1)
        np.savez(samples / f"{i:02}.npz", input_1=window[None].astype(np.float32))
    fresh = np.stack([np.roll(speech[i], shift, axis=0) for i in range(4) for shift in (-13, 0, 11)]).astype(np.float32)
    for mode in ("dynamic", "static"):
        plain, quantised, report = convert_model(tmp_path, "oww_embedding", "--int8", mode, "--calibrate", samples)
        assert report["multiplications_in_int8"] >= 0.5 and report["outputs"][0]["snr_db"] >= 30
        assert ratio(plain, quantised) <= 0.45
        want, got = (run(lnt, {"input_1": fresh}, ["conv2d_19"], tmp_path)["conv2d_19"].reshape(len(fresh), -1)
                     for lnt in (plain, quantised))
        distance = np.linalg.norm(want[:, None] - got[None], axis=2)
        assert np.array_equal(distance.argmin(axis=1), np.arange(len(fresh))), distance
        assert snr(want, got) >= 25


def test_dtln(tmp_path):
    """Both networks over the recorded blocks, states carried: the masks and the sound they give."""
    for model, state, out in (("dtln_1", "input_3", "activation_2"), ("dtln_2", "input_5", "conv1d_3")):
        name = {"dtln_1": "input_2", "dtln_2": "input_4"}[model]
        plain, quantised, report = convert_model(tmp_path, model, "--int8", "dynamic")
        assert ratio(plain, quantised) <= 0.28 and report["multiplications_in_int8"] >= 0.9
        for case in range(3):
            feed = {name: recorded(model, case, 0), state: recorded(model, case, 1)}
            want, got = (run(lnt, feed, [out], tmp_path)[out] for lnt in (plain, quantised))
            assert snr(want, got) >= 25


# ---- files ----


def test_magika(tmp_path):
    plain, quantised, report = convert_model(tmp_path, "magika_v3_3", "--int8", "dynamic")
    assert ratio(plain, quantised) <= 0.28
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
        want, got = (run(lnt, {"bytes": feed}, ["target_label"], tmp_path)["target_label"] for lnt in (plain, quantised))
        assert np.array_equal(want.argmax(axis=-1), got.argmax(axis=-1)) and snr(want, got) >= 30
