"""The bench's models against onnxruntime: small inputs and few layers by default, as they are with LINNET_ZOO=full."""

import functools
import json
import os
import sys

import pytest

from harness import ROOT, linnet

sys.path.insert(0, str(ROOT / "tests/zoo"))
import make  # noqa: E402
from make import classify, decoder, picture, real, segment, sequence, voice  # noqa: E402

SMALL_VOICE = voice.Size(blocks=voice.MEDIUM.blocks, twice=False, stochastic=True)
SMALL = make.ZOO | {
    "mobilenet_v2": (lambda: classify.mobilenet_v2(65), lambda: picture(65)),
    "mobilenet_v3_small": (lambda: classify.mobilenet_v3_small(64), lambda: picture(64)),
    "efficientnet_b0": (lambda: classify.efficientnet_b0(64), lambda: picture(64)),
    "resnet18": (lambda: classify.resnet("resnet18", 64, (1, 1, 1, 1), False, True), lambda: picture(64)),
    "resnet50": (lambda: classify.resnet("resnet50", 75, (1, 2, 1, 1), True, False), lambda: picture(75)),
    "deeplab_v3": (lambda: segment.deeplab_v3(65), lambda: picture(65)),
    "unet": (lambda: segment.unet(32, 8), lambda: picture(32)),
    "bisenet_v2": (lambda: segment.bisenet_v2(64, 128), lambda: picture(64, 128)),
    "minilm_l6": (lambda: sequence.minilm(2, 500), lambda: {
        f"{n}x{t}": sequence.minilm_inputs(n, t, 500) for n, t in ((1, 16), (3, 7))}),
    "decoder": (lambda: decoder.build(decoder.Size(heads=2, layers=1)), lambda: {
        "3_after_5": decoder.inputs(3, 5, size=decoder.Size(heads=2, layers=1))}),
    "voice": (lambda: voice.build(SMALL_VOICE), lambda: {
        "3_characters": voice.inputs(7, size=SMALL_VOICE), "12_characters": voice.inputs(25, size=SMALL_VOICE)}),
    "vocoder": (lambda: voice.build_vocoder(voice.Size()), lambda: {"frames": real("z", 1, voice.Size.hidden, 21)}),
    "crnn": (sequence.crnn, lambda: picture(32, 41, channels=1)),
}
del SMALL["minilm_l12"]
ZOO = make.ZOO if os.environ.get("LINNET_ZOO") == "full" else SMALL


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Of a name: the folder with the model and what onnxruntime says of each of its inputs."""
    @functools.cache
    def made(name):
        build, inputs = ZOO[name]
        return make.make(tmp_path_factory.mktemp(name), build, inputs)
    return made


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("name", ZOO)
def test_agrees_with_onnxruntime(case, name, opt, threads):
    done = linnet("verify", case(name) / "model.onnx", "--opt", opt, "--threads", threads, "--max-rel", "1e-4", "--json",
                  timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = json.loads(done.stdout)["outputs"]
    assert len({o["case"] for o in outputs}) == len(ZOO[name][1]())
    for output in outputs:
        assert output["cosine"] >= 0.999999, output
