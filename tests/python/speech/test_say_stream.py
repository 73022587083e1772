"""`linnet say` by pieces: where `convert` cuts, that pieces sound as the whole does, and what cannot be cut."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
import voice

from harness import LINNET, LONG, ROOT, levels, linnet
from linnet_ctypes import Model, Session
from test_say import OK, UNSUPPORTED, USAGE, raw, say

# Piper's "high" has four upsamplings, three kinds of blocks, and dilations to 5.
HIGH = voice.Size(vocabulary=166, stochastic=True, first=64, upsampling=((16, 8), (16, 8), (4, 2), (4, 2)),
                  blocks=((3, (1, 3, 5)), (7, (1, 3, 5)), (11, (1, 3, 5))), groups=(1, 1, 1, 1))
WINDOWS = (8, 13, 16, 31, 64)
IDS = " ".join(map(str, np.random.default_rng(1).integers(3, 150, 50)))


def metadata(path):
    found = json.loads(linnet("info", path, "--json").stdout)["metadata"]
    return {key.split(".")[1]: text for key, text in found.items() if key.startswith("stream.")}


@pytest.fixture(scope="module")
def high(voices, tmp_path_factory):
    folder = tmp_path_factory.mktemp("high")
    onnx.save(voice.build_piper(HIGH), folder / "v.onnx")
    done = linnet("convert", folder / "v.onnx", "--config", voices / "one.onnx.json", "-o", folder / "high.lnt")
    assert done.returncode == OK, done.stderr
    return folder / "high.lnt"


@pytest.mark.parametrize("name, level", [("one.lnt", []), ("one.lnt", ["--level", "scalar"]), ("three.lnt", []), ("high", [])])
def test_pieces_sound_as_the_whole(voices, high, name, level):
    args = ["--ids", IDS, "--seed", 3, *level, *(["-s", 2] if name == "three.lnt" else [])]
    path = high if name == "high" else voices / name
    whole = raw(path.parent, *args, "--stream", "off", "--no-normalize", name=path.name)
    hop = int(metadata(path)["hop"])
    assert len(whole) > 40 * hop and len(whole) % hop == 0
    for how in ([], ["--window", 8], ["--window", 13, "--threads", 2], ["--threads", 1, "--window", 64]):
        assert np.array_equal(raw(path.parent, *args, *how, name=path.name), whole), how


def sounds_the_same(program, path, options, ids=IDS, windows=WINDOWS):
    """Whole, and in windows of several sizes, on one thread and on two."""
    def sound(*how):
        words = [*program, "say", "-m", path, "--ids", ids, "--seed", "3", "--output_raw", *options, *how]
        done = subprocess.run(list(map(str, words)), capture_output=True, timeout=600)
        assert done.returncode == OK, done.stderr.decode()
        return done.stdout

    whole = sound("--stream", "off", "--no-normalize", "--threads", "1")
    for window in windows:
        for threads in (1, 2):
            assert sound("--window", window, "--threads", threads) == whole, (window, threads)


@pytest.mark.parametrize("name", ["one.lnt", "three.lnt", "high"])
def test_pieces_at_every_level(voices, high, name):
    for level in levels():
        sounds_the_same([LINNET], high if name == "high" else voices / name, ["--level", level])


@pytest.mark.skipif(not (LONG and shutil.which("qemu-aarch64")), reason="LINNET_LONG=1 and qemu-user")
@pytest.mark.parametrize("board", ["generic-arm64", "generic-armhf"])
def test_pieces_on_boards(voices, high, board):
    """Emulated, on every CPU that the board names."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    done = subprocess.run(["flock", f"build/{board}.lock", "make", "-s", f"-j{os.cpu_count()}", f"BOARD={board}", "all"], cwd=ROOT,
                          env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    data = dict(re.findall(r"^(\w+) := (.*)$", (ROOT / "boards" / f"{board}.mk").read_text(), re.M))
    for cpu in data["CPUS"].split():
        program = [*data["EMULATOR"].split(), "-cpu", cpu.rpartition("=")[0], ROOT / "build" / board / "linnet"]
        for path in (voices / "one.lnt", voices / "three.lnt", high):
            sounds_the_same(program, path, [], ids=" ".join(IDS.split()[:14]), windows=(8, 31))


@pytest.mark.parametrize("pitch", [0.7, 1.25])
def test_pieces_of_another_pitch(voices, pitch):
    args = ["--ids", IDS, "--seed", 3, "--pitch", pitch]
    whole = raw(voices, *args, "--stream", "off", "--no-normalize")
    slower = raw(voices, "--ids", IDS, "--seed", 3, "--length_scale", voice.piper_config()["inference"]["length_scale"] * pitch)
    assert len(whole) == np.ceil(len(slower) / np.float32(pitch))
    for how in ([], ["--window", 8], ["--window", 64, "--threads", 2]):
        assert np.array_equal(raw(voices, *args, *how), whole), how


def test_pieces_of_a_vocoder(tmp_path):
    """From its input; each piece alone, with what the metadata say around it."""
    onnx.save(voice.build_vocoder(voice.Size()), tmp_path / "v.onnx")
    assert linnet("convert", tmp_path / "v.onnx", "-o", tmp_path / "v.lnt").returncode == OK
    cut = metadata(tmp_path / "v.lnt")
    left, right, hop, align = (int(cut[key]) for key in ("left", "right", "hop", "align"))
    assert cut["value"] == "z" and hop == 64
    z = np.random.default_rng(2).standard_normal((1, voice.Size.hidden, 120)).astype(np.float32)
    session = Session(Model(tmp_path / "v.lnt"))
    whole = session.run(z=z).get("audio").copy()
    for at in (0, 4 * align, 20 * align):
        first, size = max(0, at - left) // align * align, 2 * align
        piece = session.run(z=z[:, :, first:at + size + right]).get("audio")
        np.testing.assert_array_equal(piece[:, :, (at - first) * hop:(at - first + size) * hop],
                                      whole[:, :, at * hop:(at + size) * hop])


def test_context_is_what_arithmetic_says(tmp_path):
    """11 frames around: the first convolution 3, then of the widest blocks 45 / 8, 45 / 64, 45 / 256."""
    onnx.save(voice.build_vocoder(), tmp_path / "v.onnx")
    assert linnet("convert", tmp_path / "v.onnx", "--winograd-budget", 0, "-o", tmp_path / "v.lnt").returncode == OK
    assert metadata(tmp_path / "v.lnt") == {"value": "z", "left": "11", "right": "11", "hop": "256", "align": "1"}


def test_what_is_global_stops_the_cut(tmp_path):
    from builder import Builder
    from onnx import TensorProto

    b = Builder(1)
    z = b.input("z", TensorProto.FLOAT, [1, 8, "frames"])
    x = b.op("ConvTranspose", z, b.weight(8, 8, 4), strides=[2], pads=[1, 1])
    x = b.op("Sub", x, b.op("ReduceMean", x, axes=[2]))
    b.output(b.op("Tanh", b.conv1d(x, 8, 1, 3)), "audio", [1, 1, "samples"])
    onnx.save(b.model("global"), tmp_path / "v.onnx")
    done = linnet("convert", tmp_path / "v.onnx", "-o", tmp_path / "v.lnt")
    assert done.returncode == OK and metadata(tmp_path / "v.lnt") == {}
    done = linnet("convert", tmp_path / "v.onnx", "--stream", "z", "-o", tmp_path / "w.lnt")
    assert done.returncode == UNSUPPORTED and "node '" in done.stderr and not (tmp_path / "w.lnt").exists()


def test_where_to_cut_can_be_said(voices, tmp_path):
    found = metadata(voices / "one.lnt")["value"]
    for where, expected in ((found, found), ("off", None)):
        done = linnet("convert", voices / "one.onnx", "--stream", where, "-o", tmp_path / "v.lnt")
        assert done.returncode == OK and metadata(tmp_path / "v.lnt").get("value") == expected, done.stderr
    done = linnet("convert", voices / "one.onnx", "--stream", found + "x", "-o", tmp_path / "w.lnt")
    assert done.returncode != OK and found in done.stderr
    done = linnet("convert", voices / "one.onnx", "--int8", "dynamic", "--min-snr", 0, "-o", tmp_path / "v.lnt")
    assert done.returncode == OK and metadata(tmp_path / "v.lnt") == {}


def test_gain_is_the_voices(voices, tmp_path):
    done = linnet("convert", voices / "one.onnx", "--config", voices / "one.onnx.json", "--meta", "stream.gain=0.5",
                  "-o", tmp_path / "v.lnt")
    assert done.returncode == OK
    half, full = raw(tmp_path, "--ids", IDS, name="v.lnt"), raw(voices, "--ids", IDS)
    assert np.abs(half - full / 2).max() <= 1 and not np.array_equal(half, full)
    assert np.array_equal(raw(tmp_path, "--ids", IDS, "--no-normalize", name="v.lnt"), full)
    peak = raw(tmp_path, "--ids", IDS, "--stream", "off", name="v.lnt")
    assert np.abs(peak.astype(int)).max() == 32767


def test_first_sound_is_told(voices, tmp_path):
    text, = json.loads(say(voices, "--ids", IDS, "-f", tmp_path / "x.wav", "--json").stdout)["texts"]
    assert 0 < text["first_us"] < text["us"]
    assert b"first sound after" in say(voices, "--ids", IDS, "-f", tmp_path / "x.wav", "--debug").stderr
    assert say(voices, "--ids", IDS, "--stream", "off", "--window", 8, "-f", tmp_path / "x.wav").returncode == USAGE


def test_long_sentences_are_spoken_by_clauses(voices):
    """As many as have 100 symbols; as a whole they are one run. A comma without a blank ends no clause."""
    clause, long_one = "wˈʌn twˈuː,θɹˈiː, ", "fˈoːɹ" * 30 + "; "
    text = clause * 12 + long_one + clause * 2 + "fˈaɪv."
    per_part = 100 // len(clause)
    parts = [clause * per_part] * (12 // per_part) + [clause * (12 % per_part)] * (12 % per_part > 0) + [long_one, clause * 2 + "fˈaɪv."]
    assert "".join(parts) == text and len(parts) == 5
    expected = [raw(voices, "--phonemes", part, "--seed", k) for k, part in enumerate(parts)]
    assert np.array_equal(raw(voices, "--phonemes", text), np.concatenate(expected))
    whole = raw(voices, "--phonemes", text, "--stream", "off", "--no-normalize")
    ids = say(voices, "--phonemes", text, "--print", "ids").stdout.decode().strip()
    assert np.array_equal(whole, raw(voices, "--ids", ids))
