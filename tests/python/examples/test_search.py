"""examples/search: tokens as BERT has them, and lines that mean what is asked, by a model whose words have a vector each."""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness import ROOT, import_package

import_package()
sys.path.append(str(ROOT / "examples" / "search"))
import wordpiece  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "open", "##ing", "##s", "the", "jar", "lid", "train", "leave", "at", "noon", "cake", "is",
         "sweet", ".", "?", "how", "do", "i", "cafe", "\u4eba"]
WIDTH = 24
TEXT = ["The train leaves at noon.", "Opening the lid opens the jar.", "", "Cake is sweet.", "Is the cake at the lid?"]
TOKENS = """<ir_version: 8, opset_import: ["" : 17]>
words (int64[n, t] input_ids, int64[n, t] attention_mask, int64[n, t] token_type_ids) => (float[n, t, w] hidden) {
    hidden = Gather (table, input_ids)
}"""
SENTENCES = """<ir_version: 8, opset_import: ["" : 17]>
words (int64[n, t] input_ids, int64[n, t] attention_mask) => (float[n, w] sentence) {
    hidden = Gather (table, input_ids)
    mask = Cast <to = 1> (attention_mask)
    axis = Constant <value_ints = [2]> ()
    column = Unsqueeze (mask, axis)
    kept = Mul (hidden, column)
    first = Constant <value_ints = [1]> ()
    sentence = ReduceSum <keepdims = 0> (kept, first)
}"""


@pytest.fixture
def place(tmp_path):
    """notes.txt, vocab.txt and two models: words count, what is around them does not."""
    table = np.random.default_rng(1).standard_normal((len(WORDS), WIDTH)).astype(np.float32)
    for word in ("[CLS]", "[SEP]", "[UNK]", "the", "at", "is", "how", "do", "i", ".", "?"):
        table[WORDS.index(word)] *= 0.01
    table[0] = 100  # padding is not averaged
    for name, text in (("tokens", TOKENS), ("sentences", SENTENCES)):
        model = onnx.parser.parse_model(text)
        model.graph.initializer.append(numpy_helper.from_array(table, "table"))
        onnx.save(model, tmp_path / f"{name}.onnx")
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    (tmp_path / "notes.txt").write_text("\n".join(TEXT))
    return tmp_path


def run(folder, program, *words, **more):
    return subprocess.run([sys.executable, ROOT / "examples" / program, *words], cwd=folder, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, **more)


def test_tokens(place):
    t = wordpiece.Tokenizer(place / "vocab.txt")
    words = lambda text, most=99: [WORDS[k] for k in t.encode(text, most)][1:-1]  # noqa: E731
    assert words("Opening the LIDS.") == ["open", "##ing", "the", "lid", "##s", "."]
    assert words("Caf\u00e9 \u4eba\u4ebaopen?\t?") == ["cafe", "\u4eba", "\u4eba", "open", "?", "?"]
    assert words("openly jar") == ["[UNK]", "jar"] and words("a" * 200) == ["[UNK]"] and words("") == []
    assert words("the jar is open", 4) == ["the", "jar"]


@pytest.mark.parametrize("model", ["tokens", "sentences"])
def test_the_nearest_line_is_first(place, model):
    done = run(place, "search/search.py", f"{model}.onnx", "vocab.txt", "index", "notes.txt", "notes.npz")
    assert done.returncode == 0 and done.stdout == "4 lines\n", done.stderr
    for question, answer in (("How do I open the jar?", 1), ("trains leaving noon", 0), ("sweet sweet cake", 3)):
        done = run(place, "search/search.py", f"{model}.onnx", "vocab.txt", "find", "notes.npz", question, "-n", "2")
        assert done.returncode == 0, done.stderr
        found = [line.split("  ", 1) for line in done.stdout.splitlines()]
        assert len(found) == 2 and found[0][1] == TEXT[answer] and 1.001 > float(found[0][0]) > float(found[1][0])


def test_what_is_wrong_is_named(place):
    (place / "empty.txt").write_text("\n")
    (place / "short.txt").write_text("[CLS]\n")
    for words, why in ((("none.onnx", "vocab.txt", "index", "notes.txt", "n.npz"), "none.onnx"),
                       (("tokens.onnx", "short.txt", "index", "notes.txt", "n.npz"), "no vocabulary"),
                       (("tokens.onnx", "vocab.txt", "index", "empty.txt", "n.npz"), "no lines"),
                       (("tokens.onnx", "vocab.txt", "find", "none.npz", "x"), "none.npz")):
        done = run(place, "search/search.py", *words)
        assert done.returncode == 1 and done.stderr.startswith("search: ") and why in done.stderr, done.stderr
        assert not (place / "n.npz").exists()


def test_an_operator_in_python(tmp_path):
    """examples/custom, as its page says."""
    subprocess.run([sys.executable, ROOT / "examples/custom/make_model.py", tmp_path / "switch.onnx"], check=True)
    done = run(tmp_path, "custom/hysteresis.py", "switch.onnx", input="0 5 9 6 4 2 6 8")
    assert done.returncode == 0 and done.stdout == "0 0 1 1 1 0 0 1\n", done.stderr
    done = run(tmp_path, "custom/hysteresis.py", "none.onnx", input="1")
    assert done.returncode == 1 and "hysteresis: " in done.stderr
