"""The voice that comes with the program: where it is found, and what it says."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from harness import LINNET, LONG, ROOT, linnet
from test_say import OK, USAGE, samples

sys.path.insert(0, str(ROOT / "speech" / "training"))
import export  # noqa: E402
import phoneme_ids  # noqa: E402

ROBIN = ROOT / "speech" / "voices" / "robin.lnt"
TREE = sorted(ROBIN.parent.glob("*.lnt"))
SMALL = {"embedding": 53, "enter": 26, "between": 28}  # channels: 24


def spoken(program, *args, cwd=None):
    return subprocess.run([program, "say", *map(str, args)], capture_output=True, timeout=300, cwd=cwd)


@pytest.fixture
def installed(tmp_path, voices):
    """A program with voices of its own, as `make install` puts them: the default one, and one called anna."""
    folder = tmp_path / "share" / "linnet" / "voices"
    folder.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.copy(LINNET, tmp_path / "bin" / "linnet")
    shutil.copy(voices / "one.lnt", folder / "robin.lnt")
    shutil.copy(voices / "three.lnt", folder / "anna.lnt")
    return tmp_path / "bin" / "linnet"


def test_is_found_where_it_is_installed(installed, voices, tmp_path):
    ids = ["--ids", "1 0 20 0 2"]
    by_path = spoken(LINNET, "-m", voices / "one.lnt", *ids, "--output_raw")
    assert by_path.returncode == OK and by_path.stdout
    assert spoken(installed, *ids, "--output_raw").stdout == by_path.stdout
    assert spoken(installed, "-m", "robin", *ids, "--output_raw").stdout == by_path.stdout
    assert spoken(installed, "-m", "anna", "-s", 2, *ids, "--output_raw").returncode == OK
    assert spoken(installed, "-m", "berta", *ids, "--output_raw").returncode not in (OK, USAGE)
    shutil.copy(voices / "three.lnt", tmp_path / "robin.lnt")  # what is named is looked for here first
    assert spoken(installed, "-m", "robin", "-s", 1, *ids, "--output_raw", cwd=tmp_path).returncode == OK


def test_is_missed_by_name(installed):
    shutil.rmtree(installed.parent.parent / "share")
    done = spoken(installed, "hello", "--output_raw")
    assert done.returncode == USAGE and b"-m VOICE" in done.stderr and b"robin" in done.stderr


def weights():
    """Of a voice with 24 channels, at random, whose phonemes last about three frames."""
    rng, c, w = np.random.default_rng(1), 24, {}
    def linear(name, inputs, outputs):
        w[f"{name}.weight"], w[f"{name}.bias"] = rng.normal(0, inputs**-0.5, (outputs, inputs)), np.zeros(outputs)
    def norm(name):
        w[f"{name}.weight"], w[f"{name}.bias"] = np.ones(c), np.zeros(c)
    def predictor(name, width, outputs, start):
        w[f"{name}.look.weight"], w[f"{name}.look.bias"] = rng.normal(0, 0.1, (12, c, width)), np.zeros(12)
        linear(f"{name}.tell", 12, outputs)
        w[f"{name}.tell.bias"][:] = start
    w["embedding.weight"] = rng.normal(0, 1, (len(phoneme_ids.TABLE), c))
    linear("enter", c + 2, c)
    linear("between", c + 4, c)
    for name in ("encoder.0", "decoder.0", "decoder.1"):
        w[f"{name}.depthwise.weight"], w[f"{name}.depthwise.bias"] = rng.normal(0, 0.4, (c, 1, 7)), np.zeros(c)
        norm(f"{name}.norm")
        linear(f"{name}.widen", c, 2 * c)
        linear(f"{name}.narrow", 2 * c, c)
    norm("norm")
    predictor("durations", 3, 1, 1.4)
    predictor("pitch", 5, 2, (0, 0.1))
    linear("filters", c, 4 * 64)
    w["filters.bias"][:] = -5
    w["usual"] = np.array(4.6)
    return {name: np.asarray(x, np.float32) for name, x in w.items()}


def test_what_training_exports_is_a_voice(tmp_path):
    """Sound and durations beside onnxruntime's, without noise; lengths follow the scale; ids behind the length are not read."""
    onnx.save(export.model(weights()), tmp_path / "v.onnx")
    assert linnet("convert", tmp_path / "v.onnx", "-o", tmp_path / "v.lnt").returncode == OK
    ids = np.zeros((1, 81), np.int64)
    ids[0, ::2] = np.random.default_rng(2).integers(3, 53, 41)
    session = onnxruntime.InferenceSession(tmp_path / "v.onnx", providers=["CPUExecutionProvider"])
    lengths = {}
    for scale, n in ((1, 81), (2, 81), (1, 61)):
        feeds = {"input": ids, "input_lengths": np.array([n]), "scales": np.array([0, scale, 0], np.float32)}
        expected = session.run(None, feeds)
        for name, x in feeds.items():
            np.save(tmp_path / f"{name}.npy", x)
        done = linnet("run", tmp_path / "v.lnt", *(f"--input={name}={tmp_path / name}.npy" for name in feeds), "--output-dir", tmp_path)
        assert done.returncode == OK, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "durations.npy"), expected[1])
        noise = np.load(tmp_path / "output.npy") - expected[0]  # phases are sums over the whole sentence
        assert (noise**2).mean() < 1e-5 * (expected[0]**2).mean()
        assert expected[0].size == expected[1].sum() * export.HOP and expected[1].shape == (1, n)
        assert not expected[1][0, 1::2].any()
        lengths[scale, n] = expected[0].size
    assert 1.8 < lengths[2, 81] / lengths[1, 81] < 2.2 and lengths[1, 61] < lengths[1, 81]


# ---- the one in the tree ----

def test_table_of_symbols_is_the_programs():
    """Every phoneme with every stress, and marks."""
    vowels = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split()
    symbols = [v + s for v in vowels for s in "012"] + [c for c in phoneme_ids.LETTERS if c not in vowels] + ["|", *phoneme_ids.MARKS]
    behind = ["" if s in phoneme_ids.MARKS else " B" for s in symbols]
    lines = "".join(f"[[B {s}{more}]]\n" for s, more in zip(symbols, behind))
    done = subprocess.run([LINNET, "say", "--print", "ids"], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == OK, done.stderr
    b = phoneme_ids.ID["b"]
    for symbol, more, line in zip(symbols, behind, done.stdout.splitlines(), strict=True):
        wanted = [phoneme_ids.ID[c] for c in phoneme_ids.characters(symbol)]
        assert [int(i) for i in line.split()][::2] == [1, b, *wanted, *([b] if more else []), 2], symbol


def test_speaks_as_it_is(tmp_path):
    """Without -m, another file or espeak-ng: sound of the expected length, the same in any number of threads."""
    wavs = [tmp_path / f"{k}.wav" for k in range(3)]
    for wav, threads in zip(wavs, (1, 2, 2)):
        done = subprocess.run([LINNET, "say", "Your tea is ready.", "--threads", str(threads), "-f", wav], capture_output=True, timeout=60,
                              env={**os.environ, "PATH": ""})
        assert done.returncode == OK, done.stderr
    tea = samples(wavs[0])
    assert 0.8 < len(tea) / 16000 < 2.5 and np.abs(tea).max() > 30000
    assert wavs[0].read_bytes() == wavs[1].read_bytes() == wavs[2].read_bytes()


@pytest.mark.parametrize("text", ["Battery at 12 %.", "It is -3.5 °C; the door opens at 7:45 p.m.", "Dr. Lee paid $3.50 for 2 kg.", "OK!",
                                  "a"])
def test_has_a_symbol_for_all_that_is_written(text, tmp_path):
    done = linnet("say", text, "-f", tmp_path / "x.wav")
    assert done.returncode == OK and not done.stderr
    assert len(samples(tmp_path / "x.wav")) > 2000


@pytest.mark.parametrize("path", TREE, ids=lambda path: path.stem)
def test_is_as_small_as_said(path):
    assert path.stat().st_size <= 2_500_000
    assert linnet("verify", path).returncode == OK


def test_a_man_and_a_woman():
    """By name; the same words at their own pitch."""
    texts = ["You will follow me now, will you?", "The door is open."]
    for name, low, high in (("robin", 70, 130), ("wren", 140, 230)):
        done = spoken(LINNET, "-m", name, *texts, "--output_raw")
        assert done.returncode == OK, done.stderr
        sound = np.frombuffer(done.stdout, "<i2").astype(float)
        assert 2 < len(sound) / 16000 < 8 and low < hertz(sound) < high
        page = (ROOT / "speech" / "voices" / "README.md").read_text()
        assert f"## {name}" in page and f"{(ROOT / 'speech/voices' / name).with_suffix('.lnt').stat().st_size:,} bytes" in page
    assert {path.stem for path in TREE} == {"robin", "wren"}


def test_tells_when_each_symbol_sounds(tmp_path):
    """In order, with a gap for the silence between sentences, up to the end of the sound."""
    text = ["Your tea is ready. It is hot.", "--sentence_silence", 0.25]
    assert linnet("say", *text, "-f", tmp_path / "x.wav").returncode == OK
    sound = len(samples(tmp_path / "x.wav")) / 16000
    times = json.loads(linnet("say", *text, "--print", "times", "--json").stdout)["texts"][0]["times"]
    phonemes = linnet("say", text[0], "--print", "ids").stdout.split()
    assert [phoneme_ids.ID[t["symbol"]] for t in times] == [int(i) for i in phonemes if int(i) > 2]
    edges = [(t["from"], t["to"]) for t in times]
    assert all(a <= b for a, b in edges) and edges[-1][1] <= sound + 1e-6
    gaps = [b[0] - a[1] for a, b in zip(edges, edges[1:])]
    assert all(g >= -1e-6 for g in gaps) and sum(g > 0.24 for g in gaps) == 1
    lines = linnet("say", *text, "--print", "times").stdout.splitlines()
    assert len(lines) == len(times) and abs(float(lines[0].split()[1]) - edges[0][1]) < 1e-3


def hertz(sound):
    """The median pitch, by autocorrelation."""
    found = []
    for at in range(0, len(sound) - 1024, 160):
        x = sound[at:at + 1024] - np.mean(sound[at:at + 1024])
        same = np.array([x[:-k] @ x[k:] / (np.linalg.norm(x[:-k]) * np.linalg.norm(x[k:]) + 1) for k in range(40, 250)])
        if same.max() > 0.6:
            found.append(16000 / (40 + np.argmax(same)))
    return np.median(found)


def test_pitch(tmp_path):
    """As high as was asked for, as long as before, and so are the times."""
    text = "You will follow me now, will you?"
    times, sound = [], []
    for pitch in (1, 1.4):
        told = json.loads(linnet("say", text, "--pitch", pitch, "--print", "times", "--json").stdout)
        times.append(told["texts"][0]["times"])
        sound.append(np.frombuffer(spoken(LINNET, text, "--pitch", pitch, "--output_raw").stdout, "<i2").astype(float))
    assert 1.25 < hertz(sound[1]) / hertz(sound[0]) < 1.55
    assert abs(len(sound[1]) / len(sound[0]) - 1) < 0.05
    assert len(times[1]) == len(times[0]) and abs(times[1][-1]["to"] / times[0][-1]["to"] - 1) < 0.05
    for wrong in (0, 0.4, 2.1, "nan"):
        assert linnet("say", text, "--pitch", wrong, "-f", tmp_path / "x.wav").returncode == USAGE


def test_a_voice_without_durations_says_so(voices):
    done = linnet("say", "-m", voices / "one.lnt", "--stream", "off", "--ids", "1 0 20 0 2", "--print", "times")
    assert done.returncode not in (OK, USAGE) and "durations" in done.stderr


def peak_kb(texts):
    """Of a process that speaks them, one a line."""
    words = [LINNET, "say", "--output_raw", "--threads", "1"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        process.stdin.write("".join(f"{t}\n" for t in texts).encode())
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == OK
    return used.ru_maxrss


def test_memory_is_that_of_the_longest():
    """Texts of random lengths, again and again, take no more than the longest of them alone."""
    rng = np.random.default_rng(1)
    words = "the water temperature is too high please close valve two before you start pump number seven again".split()
    texts = [" ".join(rng.choice(words, rng.integers(1, 60))) for _ in range(1000 if LONG else 40)]
    longest = max(texts, key=len)
    assert peak_kb([*texts, longest]) <= 1.05 * peak_kb([longest] * 3)
