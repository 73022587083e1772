"""Mistakes that people make: each ends with its exit code, names the cause and the way out, and leaves nothing behind."""

import os
import shutil
import subprocess
import wave

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import LINNET, linnet

USAGE, FILE, UNSUPPORTED = 2, 3, 4
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
f (float[N, 4] x, int64 sr) => (float[N, 3] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
{ s = Cast <to = 1> (sr)  p = MatMul (x, w)  y = Add (p, s) }"""
GATHER = """<ir_version: 8, opset_import: ["" : 18]>
g (int64[n] ids) => (float[n, 2] y, float[n, 2] z) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { y = Gather (w, ids)  z = Neg (y) }"""
SOUND = """<ir_version: 8, opset_import: ["" : 18]>
f (float[1, T] x) => (float[1, T] y) { y = Neg (x) }"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, its .lnt, inputs, and files of other kinds."""
    here = tmp_path_factory.mktemp("mistakes")
    model = onnx.parser.parse_model(MODEL)
    onnx.save(model, here / "m.onnx")
    onnx.save(onnx.parser.parse_model(SOUND), here / "sound.onnx")
    for name in ("m", "sound"):
        done = linnet("convert", here / f"{name}.onnx")
        assert done.returncode == 0, done.stderr
    np.save(here / "x.npy", np.ones((2, 4), np.float32))
    np.save(here / "flat.npy", np.ones(8, np.float32))
    np.save(here / "wide.npy", np.ones((2, 5), np.float32))
    np.save(here / "double.npy", np.ones((2, 4)))
    np.savez(here / "two.npz", a=np.ones((2, 4), np.float32), b=np.ones(3, np.float32))
    onnx.save(onnx.parser.parse_model(GATHER), here / "gather.onnx")
    (here / "note.txt").write_text("hi")
    with wave.open(str(here / "tone.wav"), "wb") as out:
        out.setparams((1, 2, 44100, 0, "NONE", ""))
        out.writeframes(np.zeros(44100, np.int16).tobytes())
    whole = (here / "m.onnx").read_bytes()
    (here / "cut.onnx").write_bytes(whole[:len(whole) // 2])
    (here / "empty.onnx").write_bytes(b"")
    (here / "lfs.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (here / "page.onnx").write_text("<!DOCTYPE html><title>Sign in</title>")
    (here / "text.onnx").write_text(onnx.printer.to_text(model))
    (here / "proto.onnx").write_text(str(model).replace("op_type", "op_typ", 1))
    (here / "json.onnx").write_text('{\n  "ir_version": "8"\n}')
    (here / "torch.onnx").write_bytes(b"PK\x03\x04" + bytes(60))
    (here / "lite.onnx").write_bytes(b"\x1c\0\0\0TFL3" + bytes(60))
    (here / "cut.lnt").write_bytes((here / "m.lnt").read_bytes()[:1000])
    (here / "folder").mkdir()
    return here


FEED = "--input x=x.npy --input sr=16000"
MISTAKES = [
    # words, exit code, what the message says
    ("convert m.onnx -o m.onnx", USAGE, ["m.onnx", ".lnt"]),
    ("convert m.onnx -o ./link.lnt", USAGE, ["link.lnt", "m.onnx", "another name"]),
    ("convert m.onnx -o o.lnt --report m.onnx", USAGE, ["--report", "another name"]),
    ("convert m.onnx -o o.lnt --report o.lnt", USAGE, ["--report", "-o", "o.lnt"]),
    ("convert m.onnx -o none/o.lnt", FILE, ["none/o.lnt", "No such file"]),
    ("convert m.onnx -o folder", FILE, ["a folder"]),
    ("convert m.onnx -o note.txt/o.lnt", FILE, ["-o note.txt/o.lnt", "Not a directory"]),
    ("convert m.onnx -o o.lnt --report none/r.json", FILE, ["--report none/r.json", "No such file"]),
    ("convert m.onnx o.lnt", USAGE, ["-o o.lnt"]),
    ("convert m.onnx sound.onnx", USAGE, ["one model at a time"]),
    ("convert m.onnx -o", USAGE, ["-o needs a value"]),
    ("convert m.onnx --json=1", USAGE, ["--json takes no value"]),
    ("convert m.onnx -o o.lnt --attach a", USAGE, ["--attach NAME=FILE", "'a'"]),
    ("convert m.onnx -o o.lnt --attach a=none", FILE, ["none", "No such file"]),
    ("convert m.onnx -o o.lnt --dim N", USAGE, ["--dim NAME=N", "'N'"]),
    ("convert m.onnx -o o.lnt --int8 dynamic --int4", USAGE, ["exclude each other"]),
    ("convert m.onnx -o o.lnt --calibrate two.npz", USAGE, ["--calibrate", "belong to --int8"]),
    ("convert nothing.onnx", FILE, ["nothing.onnx", "No such file"]),
    ("convert lfs.onnx", FILE, ["Git LFS pointer", "git lfs pull"]),
    ("convert m.lnt", FILE, ["converted already", "linnet run"]),
    ("convert cut.onnx", FILE, ["truncated", "announces"]),
    ("convert empty.onnx", FILE, ["empty"]),
    ("convert page.onnx", FILE, ["web page", "download"]),
    ("convert proto.onnx", FILE, ["proto.onnx: line ", "column", "NodeProto has no field 'op_typ'"]),
    ("convert text.onnx", FILE, ["ONNX's own syntax", 'format="onnxtxt"']),
    ("convert json.onnx", FILE, ["JSON", 'format="json"']),
    ("convert torch.onnx", FILE, ["PyTorch", "torch.onnx.export"]),
    ("convert lite.onnx", FILE, ["TensorFlow Lite", "tf2onnx"]),
    ("convert m.onnx -o o.lnt --dim M=3", USAGE, ["--dim", "M"]),
    ("convert m.onnx -o o.lnt --winogard", USAGE, ["did you mean --winograd?"]),
    ("convert m.onnx -o o.lnt --opt fast", USAGE, ["none|basic|all"]),
    ("convert m.onnx -o o.lnt --keep pp", USAGE, ["pp"]),
    ("convert m.onnx -o o.lnt --state y=z", USAGE, ["input 'z'"]),
    ("convert m.onnx -o o.lnt --int8 static", USAGE, ["--calibrate"]),
    ("convert m.onnx -o o.lnt --golden nowhere", USAGE, ["nowhere", "output_0.pb"]),
    ("cnvert m.onnx", USAGE, ["did you mean convert?"]),
    ("", USAGE, ["Verbs"]),
    ("--hlp", USAGE, ["no verb called '--hlp'", "convert, info, run"]),
    ("run", USAGE, ["which model?"]),
    ("run gone.lnt", FILE, ["gone.lnt", "No such file"]),
    ("run folder", FILE, ["folder"]),
    ("run x.npy", FILE, ["x.npy", "not a .lnt file"]),
    ("run m.lnt --inputs x=x.npy", USAGE, ["did you mean --input?"]),
    ("run m.lnt --input x", USAGE, ["--input NAME=FILE", "'x'"]),
    (f"run m.lnt {FEED} --input x=x.npy", USAGE, ["x is given twice"]),
    (f"run m.lnt {FEED} --threads many", USAGE, ["--threads N", "'many'"]),
    (f"run m.lnt {FEED} --output y=none/y.npy", FILE, ["none/y.npy", "No such file"]),
    (f"run m.lnt {FEED} --output y=folder", FILE, ["folder", "name of a file"]),
    (f"run m.lnt {FEED} --output-dir note.txt", FILE, ["note.txt", "no folder"]),
    (f"run m.lnt {FEED} --output-dir none/here", FILE, ["none", "No such file"]),
    ("run gather.onnx --input ids=[0,1] --output y=o.npy --output z=o.npy", USAGE, ["two values to one file", "o.npy"]),
    ("run gather.onnx --input ids=[0,3]", USAGE, ["Gather", "3", "extent 3"]),
    ("run m.lnt --input x=two.npz --input sr=1", USAGE, ["2 tensors", "FILE.npz:NAME"]),
    ("run m.lnt --input x=two.npz:c --input sr=1", USAGE, ["no tensor 'c'"]),
    ("run m.lnt --input X1=x.npy --input sr=16000", USAGE, ["no input called X1", "x"]),
    ("run m.lnt --input x=x.npy", USAGE, ["sr is missing", "--input sr=FILE"]),
    ("run m.lnt --input x=gone.npy --input sr=1", FILE, ["gone.npy", "No such file"]),
    ("run m.lnt --input x=flat.npy --input sr=1", USAGE, ["x takes float Nx4, not float 8"]),
    ("run m.lnt --input x=wide.npy --input sr=1", USAGE, ["x takes float Nx4, not float 2x5"]),
    ("run m.lnt --input x=double.npy --input sr=1", USAGE, ["x takes float, not double"]),
    ("run m.lnt --input x=x.npy --input sr=1.5", USAGE, ["1.5", "int64"]),
    ("run m.lnt --input x=x.npy --input sr=[1,2]", USAGE, ["2 elements do not fit input sr"]),
    (f"run m.lnt {FEED} --output y=y.mp3", USAGE, [".mp3", ".npy"]),
    (f"run m.lnt {FEED} --output y=y.png", USAGE, [".png", ".npy"]),
    (f"run m.lnt {FEED} --output yy=y.npy", USAGE, ["no output called yy", "did you mean y?"]),
    (f"run m.lnt {FEED} --output y=x.npy", USAGE, ["x.npy", "another name"]),
    (f"run m.lnt {FEED} --output y=m.lnt", USAGE, ["m.lnt"]),
    (f"run m.lnt {FEED} --fetch q=q.npy", USAGE, ["q", "--keep"]),
    (f"run m.lnt {FEED} --level avx3", USAGE, ["avx3", "doctor"]),
    (f"run m.lnt {FEED} --dim Q=3", USAGE, ["no variable extent called Q", "N"]),
    (f"run cut.lnt {FEED}", FILE, ["cut.lnt", "truncated"]),
    (f"run m.lnt m.lnt {FEED}", USAGE, ["one model"]),
    ("info m.lnt --thread 2", USAGE, ["did you mean --threads?"]),
    ("info lfs.onnx", FILE, ["Git LFS pointer"]),
    ("verify m.lnt nowhere", USAGE, ["nowhere", "input_K.pb"]),
    ("bench m.lnt --runs many", USAGE, ["--runs N", "many"]),
    ("bench m.lnt --runs 0", USAGE, ["--runs must be from 1"]),
    ("bench m.lnt --dim n=3", USAGE, ["no variable extent called n", "N"]),
    ("bench m.lnt --vs onnxruntime", USAGE, ["--onnx"]),
    ("info m.lnt --dim N=x", USAGE, ["--dim NAME=N", "'N=x'"]),
    ("doctor extra", USAGE, ["no words"]),
    ("say -f", USAGE, ["-f"]),
]


@pytest.mark.parametrize("words, code, says", MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(folder, words, code, says):
    link = folder / "link.lnt"
    if not link.exists():
        link.symlink_to("m.onnx")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = subprocess.run([LINNET, *words.split()], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert not [text for text in says if text not in done.stderr], done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_level_of_the_environment_that_does_not_exist(folder):
    done = subprocess.run([LINNET, "info", "m.lnt"], cwd=folder, capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, LINNET_LEVEL="scalr"))
    assert done.returncode == USAGE and "LINNET_LEVEL" in done.stderr and "did you mean scalar?" in done.stderr


@pytest.mark.parametrize("text, value", [("16000", 16000), ("-3", -3), ("[7]", 7), (" 5", 5)])
def test_an_input_may_be_written_out(folder, tmp_path, text, value):
    done = linnet("run", folder / "m.lnt", "--input", f"x={folder}/x.npy", "--input", f"sr={text}", "--output",
                  f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    w = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.ones((2, 4), np.float32) @ w + np.float32(value))


def test_a_list_of_floats_may_be_written_out(folder, tmp_path):
    done = linnet("run", folder / "sound.lnt", "--input", "x=1, -2.5, 3e2", "--output", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [[-1, 2.5, -300]])


def test_sound_whose_rate_nobody_checked_is_a_warning(folder, tmp_path):
    words = ["run", folder / "sound.lnt", "--input", f"x={folder}/tone.wav", "--output", f"y={tmp_path}/y.npy"]
    done = linnet(*words)
    assert done.returncode == 0 and "44100 Hz" in done.stderr and "--rate" in done.stderr
    assert np.load(tmp_path / "y.npy").shape == (1, 44100)
    done = linnet(*words, "--rate", 16000)
    assert done.returncode == 0 and not done.stderr
    assert np.load(tmp_path / "y.npy").shape == (1, 16000)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 48000, 96000])
def test_a_second_is_a_second_at_every_rate(folder, tmp_path, rate):
    done = linnet("run", folder / "sound.lnt", "--input", f"x={folder}/tone.wav", "--output", f"y={tmp_path}/y.npy", "--rate", rate)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").shape == (1, rate)


def test_what_a_killed_writer_left_is_removed(folder, tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = tmp_path / f"o.lnt.{gone.pid}-0.tmp"
    others = [tmp_path / f"o.lnt.{os.getpid()}-0.tmp", tmp_path / f"p.lnt.{gone.pid}-0.tmp", tmp_path / "o.lnt.tmp",
              tmp_path / f"o.lnt.{gone.pid}-0.tmp.old"]
    for path in (left, *others):
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    done = linnet("convert", folder / "m.onnx", "-o", tmp_path / "o.lnt")
    assert done.returncode == 0, done.stderr
    assert not left.exists() and all(path.exists() for path in others)


def test_info_lists_what_fetch_takes(folder, tmp_path):
    image = tmp_path / "all.lnt"
    assert linnet("convert", folder / "m.onnx", "-o", image, "--keep", "all").returncode == 0
    rows = linnet("info", image, "--values").stdout.splitlines()[1:]
    names = [row.split()[0] for row in rows]
    assert {"p", "y"} <= set(names) and any("float N x 3" in row for row in rows)
    for name in names:
        done = linnet("run", image, "--input", f"x={folder}/x.npy", "--input", "sr=1", "--fetch", f"{name}={tmp_path}/v.npy")
        assert done.returncode == 0, done.stderr


def test_dot_shows_types_and_quotes_names(tmp_path):
    model = onnx.parser.parse_model(SOUND)
    model.graph.node[0].output[0] = model.graph.output[0].name = 'say "y"\\'
    onnx.save(model, tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx").returncode == 0
    text = linnet("info", tmp_path / "m.lnt", "--dot").stdout
    assert 'label="say \\"y\\"\\\\\\nfloat 1 x T"' in text
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", tmp_path / "m.svg"], input=text, text=True, check=True)


def test_verify_judges_small_elements_of_large_outputs_as_a_person_would(tmp_path):
    """Within 1e-5 of the largest magnitude is right, and said; whoever gives a rule gets it."""
    onnx.save(onnx.parser.parse_model(SOUND), tmp_path / "model.onnx")
    data = tmp_path / "test_data_set_0"
    data.mkdir()
    x = np.array([[1000, 1, 0.001]], np.float32)
    for name, value in (("input_0", x), ("output_0", -x - np.float32([[0, 0, 5e-3]]))):
        (data / f"{name}.pb").write_bytes(onnx.numpy_helper.from_array(value).SerializeToString())
    done = linnet("verify", tmp_path / "model.onnx")
    assert done.returncode == 0 and "1 within 1e-05 of the largest" in done.stdout, done.stdout
    for rule in (["--rtol", "1e-3"], ["--atol", "1e-7"], ["--max-rel", "1e-6"]):
        assert linnet("verify", tmp_path / "model.onnx", *rule).returncode == 1
    (data / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(-x - np.float32([[0, 0, 2e-2]])).SerializeToString())
    assert linnet("verify", tmp_path / "model.onnx").returncode == 1


def test_a_named_case_is_recorded_however_large_it_is(tmp_path):
    onnx.save(onnx.parser.parse_model(SOUND), tmp_path / "m.onnx")
    data = tmp_path / "case"
    data.mkdir()
    x = np.random.default_rng(1).random((1, 300_000), np.float32)
    (data / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(x).SerializeToString())
    (data / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(-x).SerializeToString())
    done = linnet("convert", tmp_path / "m.onnx", "--golden", data)
    assert done.returncode == 0, done.stderr
    done = linnet("verify", tmp_path / "m.lnt")
    assert done.returncode == 0 and "pass" in done.stdout, done.stdout


def test_text_is_given(tmp_path):
    """It is not made up; a list that is written out does."""
    model = onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 18]> f (string[2] x) => (string[2] y) {'
                                    ' y = StringNormalizer <case_change_action = "LOWER"> (x) }')
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("bench", tmp_path / "m.onnx")
    assert done.returncode == 2 and "x is text, which is not made up" in done.stderr and "--input x='[" in done.stderr
    assert linnet("bench", tmp_path / "m.onnx", "--input", 'x=["A", "b"]').returncode == 0
