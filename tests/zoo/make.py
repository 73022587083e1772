#!/usr/bin/env python3
"""make.py [--out DIR] [--list] [NAME ...]: makes the bench's models, all or those named.

Each is DIR/NAME/model.onnx with a folder test_data_set_LABEL for every set of shapes it is measured at, as the ONNX
suite has them: `linnet verify`, `convert --golden` and `bench --data` read these. The input_K.pb are seeded; what to
expect of them (output_K.pb) is written where onnxruntime is installed, computed with its optimizations off.
--list prints one line of JSON a model: its name and its labels. What is there already and newer is not made again.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parent / "python/builders")]

import classify  # noqa: E402
import decoder  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import segment  # noqa: E402
import sequence  # noqa: E402
import voice  # noqa: E402

TEXTS = (3, 12, 34, 92, 273)  # characters; each is a phoneme with a pause before it, as Piper feeds them
FRAMES = 3  # of sound to a phoneme or pause, about


def real(name, *shape):
    return {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def picture(height, width=None, name="image", channels=3):
    width = width or height
    return {f"{height}x{width}": real(name, 1, channels, height, width)}


def frames(*counts):
    return {f"{n}_frames": real("frames", n, 1, 80) for n in counts}


def texts(feed):
    return {f"{n}_characters": feed(2 * n + 1) for n in TEXTS}


def minilm(shapes):
    return {f"{n}x{t}": sequence.minilm_inputs(n, t) for n, t in shapes}


# name: (the model, its inputs by label)
ZOO = {
    "mobilenet_v2": (classify.mobilenet_v2, lambda: picture(224)),
    "mobilenet_v3_small": (classify.mobilenet_v3_small, lambda: picture(224)),
    "efficientnet_b0": (classify.efficientnet_b0, lambda: picture(224)),
    "resnet18": (classify.resnet18, lambda: picture(224)),
    "resnet50": (classify.resnet50, lambda: picture(224)),
    "deeplab_v3": (segment.deeplab_v3, lambda: picture(321)),
    "unet": (segment.unet, lambda: picture(256)),
    "bisenet_v2": (segment.bisenet_v2, lambda: picture(512, 1024)),
    "minilm_l6": (sequence.minilm, lambda: minilm(((1, 16), (1, 128), (8, 64)))),
    "minilm_l12": (lambda: sequence.minilm(12), lambda: minilm(((1, 16), (1, 128), (8, 64)))),
    "decoder": (lambda: decoder.build(decoder.STORIES), lambda: {
        "1_after_128": decoder.inputs(1, 128, size=decoder.STORIES),
        "64_after_0": decoder.inputs(64, 0, size=decoder.STORIES)}),
    "voice": (lambda: voice.build(voice.MEDIUM), lambda: texts(
        lambda n: voice.inputs(n, size=voice.MEDIUM))),
    "vocoder": (voice.build_vocoder, lambda: texts(lambda n: real("z", 1, voice.MEDIUM.hidden, n * FRAMES))),
    "ds_cnn": (classify.ds_cnn, lambda: picture(49, 10, "mfcc", 1)),
    "lstm_stack": (lambda: sequence.recurrent_stack("LSTM", 3, 256, 1), lambda: frames(1, 100)),
    "gru_stack": (lambda: sequence.recurrent_stack("GRU", 2, 128, 2), lambda: frames(1, 100)),
    "crnn": (sequence.crnn, lambda: picture(32, 100, channels=1) | picture(32, 320, channels=1)),
}


def expected(model, feeds):
    try:
        from harness import reference
        return reference(model, feeds)
    except ImportError:
        return []


def write_tensors(folder, stem, names, values):
    for k, (name, value) in enumerate(zip(names, values)):
        tensor = onnx.numpy_helper.from_array(np.asarray(value), name)
        (folder / f"{stem}_{k}.pb").write_bytes(tensor.SerializeToString())


def make(folder, build, inputs):
    model = build()
    for label, feeds in inputs().items():
        case = folder / f"test_data_set_{label}"
        case.mkdir(parents=True, exist_ok=True)
        write_tensors(case, "input", feeds, feeds.values())
        write_tensors(case, "output", [o.name for o in model.graph.output], expected(model, feeds))
    onnx.save(model, folder / "model.onnx")
    return folder


def is_made(folder):
    """Newer than every file of the zoo that models come from."""
    model = folder / "model.onnx"
    sources = [*HERE.glob("*.py"), *(HERE.parent / "python/builders").glob("*.py")]
    return model.exists() and model.stat().st_mtime > max(p.stat().st_mtime for p in sources)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--out", type=pathlib.Path, default=HERE.parents[1] / "build/zoo", metavar="DIR")
    options.add_argument("--list", action="store_true", help="print names and labels instead")
    given = options.parse_args()
    unknown = [name for name in given.names if name not in ZOO]
    if unknown:
        options.error(f"no model {', '.join(unknown)}; there are {', '.join(ZOO)}")
    for name in given.names or ZOO:
        build, inputs = ZOO[name]
        if given.list:
            print(json.dumps({"name": name, "labels": list(inputs())}))
        elif not is_made(given.out / name):
            print(f"  ZOO     {name}", flush=True)
            make(given.out / name, build, inputs)


if __name__ == "__main__":
    main()
