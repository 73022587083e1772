"""How English words sound: lexicons that speech/training makes, read by the program and by the reader in Python, and attached
to voices."""

import json
import random
import re
import subprocess
import sys

import pytest

from harness import LINNET, LONG, ROOT, linnet

TRAINING = ROOT / "speech" / "training"
DATA = ROOT / "tests" / "data"
CMUDICT = ROOT / ".deps" / "cmudict.dict"
sys.path.insert(0, str(TRAINING))
import dictionary  # noqa: E402
from lexicon_file import Lexicon  # noqa: E402

SMALL = 40  # every so-manieth word of CMUdict


def make(words, output, *options):
    done = subprocess.run([sys.executable, TRAINING / "make_lexicon.py", words, "-o", output, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(path, words):
    """What the program says of each word."""
    done = subprocess.run([LINNET, "say", "--lexicon", path, "--print", "phonemes"], input="".join(f"{w}\n" for w in words),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == len(words)
    return lines


@pytest.fixture(scope="module")
def cmudict():
    if not CMUDICT.is_file():
        pytest.skip("no CMUdict (make deps-test)")
    return dictionary.read(CMUDICT)


@pytest.fixture(scope="module")
def small(cmudict, tmp_path_factory):
    """(a lexicon of few words, the words, what the tool prints)"""
    path = tmp_path_factory.mktemp("lexicon") / "small.lex"
    printed = make(CMUDICT, path, "--every", str(SMALL), "--rare", "2")
    return path, dictionary.of_number(cmudict, SMALL, 0), printed


def test_two_runs_write_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        make(DATA / "words.dict", tmp_path / name, "--rare", "1")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (DATA / "words.lex").read_bytes()


RULES = (ROOT / "speech" / "homographs.c").read_text() + (ROOT / "speech" / "normalize.c").read_text()


def is_plain(word):
    """The lexicon's to say: no word with a rule for its sense, no abbreviation, no letter, no apostrophe at an end."""
    return f'{{"{word}", ' not in RULES and len(word) > 1 and word.strip("'") == word


def test_all_its_words_are_right(small):
    path, words, _ = small
    plain = [w for w in words if is_plain(w)]
    assert len(plain) > len(words) * 0.95
    wrong = [(w, got) for w, got in zip(plain, said(path, plain)) if got != " ".join(words[w])]
    # The normalizer knows abbreviations and months that CMUdict has as words.
    assert len(wrong) <= len(words) * 0.01, wrong


def strange_words(n):
    rng = random.Random(7)
    ends = ["'s", "s", "es", "ies", "ed", "ied", "ing", "ly", "er", "ers", "ness", "man", "ville", ""]
    return ["x" + "".join(rng.choices("aaeeiioouytnshrdlcmfpgwybvkxjqz", k=rng.randint(1, 12))) + rng.choice(ends) for _ in range(n)] + \
        ["k" * n for n in (63, 64, 65, 200)] + ["ab" * 32 + "s"]


def test_both_readers_say_the_same(small, cmudict):
    path, _, _ = small
    lexicon = Lexicon(path.read_bytes())
    words = [w for w in dictionary.of_number(cmudict, 53, 7) if is_plain(w)] + strange_words(400)
    differ = [(w, got) for w, got in zip(words, said(path, words)) if got != " ".join(lexicon.phonemes(w))]
    assert len(differ) <= 12, differ  # of these the normalizer has something to say


def test_the_table_of_the_tool(small):
    path, words, printed = small
    assert re.search(rf"^words +{len(words):,}$", printed, re.M)
    assert re.search(rf"^bytes +{path.stat().st_size:,}$", printed, re.M)
    assert re.search(r"^by all .* 100.00 % right with stress, 100.00 % without$", printed, re.M)


@pytest.mark.skipif(not LONG, reason="minutes: LINNET_LONG=1")
def test_the_whole_dictionary(cmudict, tmp_path):
    path = tmp_path / "english.lex"
    printed = make(CMUDICT, path, "--measure", "10")
    print(printed)
    assert path.stat().st_size <= 500_000
    for what, least in (("by all", 99), ("held out, by trees and rules for endings", 60)):
        assert float(re.search(rf"^{what} .* ([0-9.]+) % without$", printed, re.M)[1]) >= least
    plain = [w for w in cmudict if is_plain(w)]
    right = sum(got == " ".join(cmudict[w]) for w, got in zip(plain, said(path, plain)))
    assert right >= 0.99 * len(cmudict)


# ---- attached ----

SYMBOLS = "_^$ .,?!:;ˈˌɑæʌəɔWIbʧdðɛɝɚAfɡhɪiʤklmnŋOYpɹsʃtθʊuvwjzʒ"


@pytest.fixture(scope="module")
def english(voices):
    """Voices that read by a lexicon: english.lnt, and mute.lnt, which has none."""
    import voice

    assert len(set(SYMBOLS)) == len(SYMBOLS) <= 64
    config = voices / "english.json"
    config.write_text(json.dumps(voice.piper_config(phoneme_type="arpabet", phoneme_id_map={s: [k] for k, s in enumerate(SYMBOLS)})))
    attach = ["--attach", f"lexicon={DATA / 'words.lex'}", "--attach", f"notes={DATA / 'words.dict'}"]
    for name, options in (("english", attach), ("mute", [])):
        done = linnet("convert", voices / "one.onnx", "--config", config, *options, "-o", voices / f"{name}.lnt")
        assert done.returncode == 0, done.stderr
    return voices


@pytest.fixture(scope="module")
def attached(english):
    return english / "english.lnt"


def test_a_voice_has_its_lexicon_with_it(attached):
    done = linnet("say", "-m", attached, "--print", "phonemes", "the colonel's door")
    assert done.stdout == "DH AH0 | K ER1 N AH0 L Z | D AO1 R\n", done.stderr
    done = linnet("say", "-m", attached, "--print", "phonemes", "--json", "go!")
    assert json.loads(done.stdout)["texts"][0]["phonemes"] == "G OW1 !"
    sizes = {"lexicon": (DATA / "words.lex").stat().st_size, "notes": (DATA / "words.dict").stat().st_size}
    assert json.loads(linnet("info", attached, "--json").stdout)["attachments"] == sizes
    assert "lexicon, " in linnet("info", attached).stdout
    dumped = subprocess.run([sys.executable, ROOT / "formats" / "dump_lnt.py", attached], capture_output=True, text=True)
    assert json.loads(dumped.stdout)["attachments"] == sizes


def test_a_damaged_attachment_is_found(attached, tmp_path):
    data = bytearray(attached.read_bytes())
    at = data.index(b"\x89LEX")
    assert at % 64 == 0
    data[at + 100] ^= 4
    (tmp_path / "m.lnt").write_bytes(data)
    done = linnet("say", "-m", tmp_path / "m.lnt", "--print", "phonemes", "go")
    assert done.returncode == 3 and "attached bytes" in done.stderr


@pytest.mark.parametrize("options, message", [
    (["--attach", "lexicon"], "--attach NAME=FILE"),
    (["--attach", "a=no-such-file"], "no-such-file"),
    (["--attach", "a={0}", "--attach", "a={0}"], "--attach a twice"),
])
def test_what_cannot_be_attached(voices, tmp_path, options, message):
    words = DATA / "words.dict"
    done = linnet("convert", voices / "one.onnx", *(o.format(words) for o in options), "-o", tmp_path / "m.lnt")
    assert done.returncode != 0 and message in done.stderr
    assert not (tmp_path / "m.lnt").exists()


@pytest.mark.parametrize("options, message", [
    (["--print", "phonemes", "--lexicon", "no-such-file", "x"], "no-such-file"),
    (["--print", "phonemes", "--lexicon", DATA / "words.dict", "x"], "not a lexicon's file"),
    (["--print", "ids", "--lexicon", DATA / "words.lex", "x"], "--lexicon is for --print phonemes"),
    (["--print", "phonemes", "--lexicon", DATA / "words.lex", "[[X]]"], "phonemes of ARPAbet"),
])
def test_what_is_refused(options, message):
    done = linnet("say", *options)
    assert done.returncode != 0 and message in done.stderr and not done.stdout


# ---- a voice that reads by its lexicon ----

def ids_of(symbols):
    return " ".join(map(str, [1, 0] + [n for s in symbols for n in (SYMBOLS.index(s), 0)] + [2]))


@pytest.mark.parametrize("text, sentences", [
    ("The church, the island. Your colonel!", ["ðə ʧˈɝʧ,ði ˈIlənd.", "jˈɔɹ kˈɝnəl!"]),
    ("okay: [[ G OW2 , OY1 ]] warning", ["ˌOkˈA:ɡˌO,ˈY wˈɔɹnɪŋ"]),
    ("A TV? No; yes.", ["ə tˈi vˈi?", "nˈO;jˈɛs."]),
    ("measure that bread", ["mˈɛʒɚ ðˈæt bɹˈɛd"]),
])
def test_ids_of_a_voice_with_a_lexicon(english, text, sentences):
    done = linnet("say", "-m", english / "english.lnt", "--print", "ids", text)
    assert done.stdout.split("\n")[:-1] == [ids_of(s) for s in sentences], done.stderr
    assert "warning" not in linnet("say", "-m", english / "english.lnt", "-f", english / "x.wav", text).stderr


def test_phonemes_of_its_own_are_its_symbols(english):
    done = linnet("say", "-m", english / "english.lnt", "--print", "ids", "--phonemes", "W I")
    assert done.stdout == ids_of("W I") + "\n"


def test_a_voice_without_its_lexicon(english):
    done = linnet("say", "-m", english / "mute.lnt", "x", "-f", english / "x.wav")
    assert done.returncode != 0 and "--attach lexicon=FILE" in done.stderr
