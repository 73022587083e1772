"""`linnet say`: from text to phonemes and ids as Piper does it."""

import json
import re
import shutil
import subprocess
import sys
import unicodedata

import pytest
import voice

import english
import piper_rules
from harness import ROOT, linnet

sys.path.insert(0, str(ROOT / "speech/training"))
import corpus  # noqa: E402

MAP = voice.piper_config()["phoneme_id_map"]


def printed(voices, *options, what="ids", name="one.lnt"):
    done = linnet("say", "-m", voices / name, "--print", what, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def clauses(tmp_path_factory):
    """examples/espeak, built as its page says."""
    folder = tmp_path_factory.mktemp("espeak")
    page = (ROOT / "examples" / "espeak" / "README.md").read_text()
    command, = re.findall("^    (cc .*)$", page, re.M)
    shutil.copy(ROOT / "examples" / "espeak" / "espeak_clauses.c", folder)
    done = subprocess.run(command.replace("cc ", "cc -Wall -Wextra -Werror ", 1), shell=True, cwd=folder, capture_output=True, text=True)
    if "speak_lib.h: No such file" in done.stderr:
        pytest.skip("no libespeak-ng-dev")
    assert done.returncode == 0, done.stderr
    return folder / "espeak_clauses"


def test_a_program_that_tells_clauses_answers_sense(voices, tmp_path):
    """Else it is an error, and not waited for."""
    program = tmp_path / "espeak_clauses"
    for answer, why in (("həlˈoʊ", "no clause"), ("həlˈoʊ\t.x", "no clause"), ("\\377\t.", "no UTF-8")):
        program.write_text(f"#!/bin/sh\nread line\nprintf '{answer}\\n\\n'\nsleep 9\n")
        program.chmod(0o755)
        done = linnet("say", "-m", voices / "one.lnt", "--espeak", program, "Hello.", "--print", "ids")
        assert done.returncode not in (0, None) and why in done.stderr, done.stderr


@pytest.mark.parametrize("by", ["espeak-ng", "espeak_clauses"])
def test_agrees_with_pipers_rules(voices, tmp_path, by, request):
    """A thousand: hard ones, and prompts as devices have them, with their numbers and units. By the program that tells clauses all
    of them, by the other but for one in a hundred at most."""
    program = request.getfixturevalue("clauses") if by == "espeak_clauses" else by
    texts = english.sentences()
    texts += corpus.prompts(1000 - len(texts), corpus.PROMPTS + corpus.UNHEARD + corpus.UNHEARD_NUMBERS)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    done = linnet("say", "-m", voices / "one.lnt", "-i", tmp_path / "texts.txt", "--print", "ids", "--json", "--espeak", program)
    assert done.returncode == 0, done.stderr
    espeak = piper_rules.Espeak()
    wrong = []
    for text, found in zip(texts, json.loads(done.stdout)["texts"], strict=True):
        expected = [piper_rules.ids(s, MAP) for s in piper_rules.sentences(espeak, text)]
        if [s["ids"] for s in found["sentences"]] != expected:
            wrong.append(text)
    assert len(texts) == 1000 and len(wrong) <= (len(texts) // 100 if by == "espeak-ng" else 0), wrong


def test_clauses_and_marks(voices):
    assert printed(voices, "Hello, world. How are you?", what="phonemes") == ["həlˈoʊ, wˈɜːld.", "hˈaʊ ɑːɹ juː?"]
    assert printed(voices, "Yes: no; so", what="phonemes") == ["jˈɛs: nˈoʊ; sˈoʊ"]


def test_a_paragraph_ends_a_sentence(voices, tmp_path):
    (tmp_path / "line.json").write_text(json.dumps({"text": "One\n\ntwo\nthree"}) + "\n")
    assert printed(voices, "--json-input", "-i", tmp_path / "line.json", what="phonemes") == ["wˈʌn", "tˈuː θɹˈiː"]


def test_long_clauses(voices):
    """Longer than the line that espeak-ng reads at once."""
    line, = printed(voices, " ".join(["seven"] * 500), what="phonemes")
    assert line == " ".join(["sˈɛvən"] * 500)
    assert len(printed(voices, "x" * 3000, what="phonemes")) == 1


def test_flags_of_languages_are_left_out(voices, tmp_path):
    config = voice.piper_config(espeak={"voice": "de"})
    (tmp_path / "de.json").write_text(json.dumps(config))
    line, = printed(voices, "-c", tmp_path / "de.json", "Das ist ein Computer", what="phonemes")
    assert "(" not in line and ")" not in line and "en" not in re.sub(r"[ˈ ]", "", line)[:6]


@pytest.mark.parametrize("text, phonemes", [
    ("[[ hˈaɪ ]]", ["hˈaɪ"]),
    ("yes [[hˈaɪ]] no.", ["jˈɛs hˈaɪ nˈoʊ."]),
    ("yes. [[hˈaɪ]] no. So", ["jˈɛs. hˈaɪ nˈoʊ.", "sˈoʊ"]),
    ("yes[[hˈaɪ]]no.", ["jˈɛshˈaɪnˈoʊ."]),
    ("[[a]] [[b]]", ["a  b"]),
    ("[[]]yes", ["jˈɛs"]),
])
def test_raw_phonemes(voices, text, phonemes):
    assert printed(voices, text, what="phonemes") == phonemes


def test_ids_and_phonemes_as_input(voices):
    assert printed(voices, "--phonemes", "hˈaɪ") == ["1 0 20 0 120 0 14 0 74 0 2"]
    assert printed(voices, "--ids", "1 0 20, 0 2") == ["1 0 20 0 2"]
    assert printed(voices, "--ids", "1 2", "--ids", "3", "--phonemes", "a", "yes") == [
        "1 0 14 0 2", "1 2", "3", printed(voices, "yes")[0]]


def test_unknown_symbols_are_left_out_and_counted(voices):
    done = linnet("say", "-m", voices / "one.lnt", "--phonemes", "hΩaΩ", "--print", "ids", "--json")
    sentence, = json.loads(done.stdout)["texts"][0]["sentences"]
    assert sentence["ids"] == [1, 0, 20, 0, 14, 0, 2] and sentence["missing"] == 2


def test_a_symbol_may_have_several_ids(voices, tmp_path):
    symbols = {"^": [1, 9], "_": [0], "$": [2], "a": [5, 6, 7], "b": []}
    (tmp_path / "c.json").write_text(json.dumps(voice.piper_config(phoneme_id_map=symbols)))
    assert printed(voices, "-c", tmp_path / "c.json", "--phonemes", "ab") == ["1 9 0 5 6 7 0 0 2"]


@pytest.mark.parametrize("text", [
    "Ünïcödé", "Привіт, світе!", "한국어 말", "ự ộ Ǖ", "a\u0323\u0307 a\u0307\u0323", "שָׁלוֹם", "\u212b ﬁ", "Ελληνικά Ώ"])
def test_voices_that_read_characters(voices, tmp_path, text):
    """phoneme_type text: code points in normalization form D; of a voice without capital letters small ones."""
    expected = unicodedata.normalize("NFD", text)
    symbols = {c: [k] for k, c in enumerate(dict.fromkeys("_^$" + expected.lower()))}
    (tmp_path / "c.json").write_text(json.dumps(voice.piper_config(phoneme_type="text", phoneme_id_map=symbols)))
    assert printed(voices, "-c", tmp_path / "c.json", text, what="phonemes") == [expected]
    ids, = printed(voices, "-c", tmp_path / "c.json", text)
    assert [int(i) for i in ids.split()] == piper_rules.ids(expected.lower(), symbols)
