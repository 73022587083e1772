"""`linnet say`: the options of both of Piper's programs, where sound goes, what it is, and how failures end."""

import io
import json
import os
import pathlib
import stat
import subprocess
import wave

import numpy as np
import onnxruntime
import pytest
import voice

from harness import LINNET, linnet

OK, USAGE, FILE, UNSUPPORTED = 0, 2, 3, 4
TEXT = "Hello, world. How are you?"


def say(voices, *args, name="one.lnt", stdin=b"", program=(LINNET, "say"), env=None):
    return subprocess.run([*program, "-m", str(voices / name), *map(str, args)], input=stdin, capture_output=True, timeout=300,
                          env={**os.environ, **(env or {})})


def raw(voices, *args, **how):
    done = say(voices, "--output_raw", *args, **how)
    assert done.returncode == OK, done.stderr.decode()
    return np.frombuffer(done.stdout, "<i2")


def samples(source):
    with wave.open(source if hasattr(source, "read") else str(source)) as w:
        assert (w.getnchannels(), w.getsampwidth(), w.getframerate()) == (1, 2, 16000)
        return np.frombuffer(w.readframes(w.getnframes()), "<i2")


# ---- what is computed ----

def test_sound_is_the_models(voices):
    """Without noise, against onnxruntime, brought to int16 as Piper does it."""
    ids = [1, 0, 20, 0, 120, 0, 14, 0, 74, 0, 2]
    session = onnxruntime.InferenceSession(voices / "three.onnx", providers=["CPUExecutionProvider"])
    audio, = session.run(None, {"input": np.array([ids]), "input_lengths": np.array([len(ids)]),
                                "scales": np.array([0, 1.5, 0], np.float32), "sid": np.array([2])})
    found = raw(voices, "--ids", " ".join(map(str, ids)), "--noise-scale", 0, "--noise_w", 0, "--length_scale", 1.5, "-s", 2,
                "--stream", "off", name="three.lnt")
    expected = (audio.ravel() / np.abs(audio).max() * 32767).astype(np.int16)
    assert len(found) == len(expected) > 1000
    assert np.abs(found.astype(int) - expected).max() <= 8  # of 32,767: sums in another order


def test_same_seed_same_bytes(voices):
    first = raw(voices, TEXT, "--seed", 7)
    assert np.array_equal(first, raw(voices, TEXT, "--seed", 7, "--threads", 1))
    assert np.array_equal(first, raw(voices, TEXT, "--seed", 7, "--threads", 2, name="one.onnx"))
    assert not np.array_equal(first, raw(voices, TEXT, "--seed", 8))
    assert np.array_equal(raw(voices, TEXT), raw(voices, TEXT, "--seed", 0))


def test_a_text_is_its_sentences(voices):
    """Sentence k has seed + k; between sentences is silence, and nothing else."""
    first, second = raw(voices, "Hello, world."), raw(voices, "How are you?", "--seed", 1)
    assert np.array_equal(raw(voices, TEXT), np.concatenate([first, second]))
    apart = raw(voices, TEXT, "--sentence-silence", 0.25)
    assert np.array_equal(apart, np.concatenate([first, np.zeros(4000, np.int16), second]))


def test_volume_and_peak(voices):
    quiet = ["--noise_scale", 0, "--noise_w", 0, "--stream", "off"]
    full = raw(voices, TEXT, *quiet)
    assert np.abs(full.astype(int)).max() == 32767
    half = raw(voices, TEXT, *quiet, "--volume", 0.5)
    assert np.abs(half - full / 2).max() <= 1
    as_computed = raw(voices, "Hello, world.", *quiet, "--no-normalize")
    assert 0 < np.abs(as_computed.astype(int)).max() < 32767
    loud = raw(voices, TEXT, *quiet, "--volume", 3)
    assert np.abs(loud.astype(int)).max() == 32767 and (np.abs(loud.astype(int)) == 32767).sum() > 10
    assert not raw(voices, TEXT, "--volume", 0).any()


def test_speed(voices):
    def length(*args):
        return len(raw(voices, TEXT, "--noise_w", 0, *args))

    assert length("--speed", 0.5) == length("--length-scale", 2) > 1.4 * length()
    assert length("--speed", 2) == length("--length_scale=0.5") < length()


def test_silence_behind_phonemes(voices, tmp_path):
    parts = [raw(voices, "--phonemes", "həlˈoʊ,"), np.zeros(1600, np.int16), raw(voices, "--phonemes", " wˈɜːld.", "--seed", 1)]
    assert np.array_equal(raw(voices, "Hello, world.", "--phoneme_silence", ",", "0.1"), np.concatenate(parts))
    config = voice.piper_config()
    config["inference"]["phoneme_silence"] = {",": 0.1}
    (tmp_path / "c.json").write_text(json.dumps(config))
    assert np.array_equal(raw(voices, "Hello, world.", "-c", tmp_path / "c.json"), np.concatenate(parts))


def test_speakers_have_numbers_and_names(voices):
    three = [raw(voices, "yes", "-s", k, name="three.lnt") for k in range(3)]
    assert not np.array_equal(three[0], three[1]) and not np.array_equal(three[1], three[2])
    assert np.array_equal(three[0], raw(voices, "yes", name="three.onnx"))
    assert np.array_equal(three[2], raw(voices, "yes", "--speaker", "carl", name="three.lnt"))
    for wrong in ("3", "nobody", "-1"):
        assert say(voices, "yes", f"--speaker={wrong}", "--output_raw", name="three.lnt").returncode == USAGE


# ---- where texts come from ----

def test_lines_are_texts(voices, tmp_path):
    expected = np.concatenate([raw(voices, "Hello."), raw(voices, "Yes.")])
    (tmp_path / "a.txt").write_text("  Hello. \n\n")
    (tmp_path / "b.txt").write_text("Yes.")
    assert np.array_equal(raw(voices, stdin=b"Hello.\n \nYes.\n"), expected)
    assert np.array_equal(raw(voices, "-i", tmp_path / "a.txt", "--input_file", tmp_path / "b.txt"), expected)
    assert np.array_equal(raw(voices, "Hello", "there."), raw(voices, "Hello there."))
    assert np.array_equal(raw(voices, "--", "-5 degrees"), raw(voices, stdin=b"-5 degrees"))
    assert len(raw(voices, stdin=b"")) == 0


def test_json_lines(voices, tmp_path):
    lines = [{"text": "Hello."}, {"text": "Yes.", "speaker_id": 2, "other": [1, None, True]},
             {"text": "No \u00e9\U0001f600 \"q\".", "speaker": "bert", "output_file": str(tmp_path / "own.wav")}]
    done = say(voices, "--json-input", "-f", tmp_path / "all.wav", name="three.lnt",
               stdin="".join(json.dumps(line) + "\n" for line in lines).encode())
    assert done.returncode == OK and done.stdout.decode().split() == [str(tmp_path / "own.wav"), str(tmp_path / "all.wav")]
    expected = np.concatenate([raw(voices, "Hello.", name="three.lnt"), raw(voices, "Yes.", "-s", 2, name="three.lnt")])
    assert np.array_equal(samples(tmp_path / "all.wav"), expected)
    assert np.array_equal(samples(tmp_path / "own.wav"), raw(voices, "No é😀 \"q\".", "-s", 1, name="three.lnt"))


@pytest.mark.parametrize("line", [
    b"{", b"[]", b"{}", b'{"text": 5}', b'{"text": "a"} x', b'{"text": "a", "speaker_id": -1}', b'{"text": "a", "speaker_id": 9}',
    b'{"text": "a", "speaker": "nobody"}', b'{"text": "\\ud800"}', b'{"text": "\xff"}', b'{"text": "a",}', b'{"text": "\x01"}',
    b'{"text": 01}', b'{"text": "a", "speaker_id": 1.5e400}', b"[" * 100000, b'{"text": "\\u0000"}'])
def test_json_that_is_wrong(voices, line):
    done = say(voices, "--json-input", "--output_raw", stdin=b'{"text": "a"}\n' + line + b"\n", name="three.lnt")
    assert done.returncode == USAGE and done.stderr


# ---- where sound goes ----

def test_files(voices, tmp_path):
    expected = raw(voices, TEXT)
    for option in ("-f", "--output_file", "--output-file"):
        done = say(voices, TEXT, option, tmp_path / "out.wav")
        assert done.returncode == OK and done.stdout.decode() == f"{tmp_path / 'out.wav'}\n"
        assert np.array_equal(samples(tmp_path / "out.wav"), expected)
    done = say(voices, TEXT, "-f", "-")
    assert done.stdout == (tmp_path / "out.wav").read_bytes()
    assert np.array_equal(samples(io.BytesIO(done.stdout)), expected)


def test_folder(voices, tmp_path):
    folder = tmp_path / "a" / "b"
    done = say(voices, "-d", folder, stdin=b"Hello.\nYes.\nHello.\n")
    names = [pathlib.Path(line) for line in done.stdout.decode().split()]
    assert done.returncode == OK and len(set(names)) == 3 and sorted(names) == names and set(names) == set(folder.iterdir())
    assert np.array_equal(samples(names[0]), samples(names[2])) and np.array_equal(samples(names[1]), raw(voices, "Yes."))
    done = say(voices, "--output-dir", folder, "--output-dir-naming", "text", stdin="Häl/lo?.\n..\n".encode() + b"x" * 300 + b"\n")
    assert done.returncode == OK, done.stderr.decode()
    assert {p.name for p in folder.iterdir()} - {p.name for p in names} == {"Hällo..wav", "_.wav", "x" * 200 + ".wav"}


def fake_player(tmp_path, script):
    player = tmp_path / "aplay"
    player.write_text(f"#!/bin/sh\n{script}\n")
    player.chmod(player.stat().st_mode | stat.S_IEXEC)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_plays_where_nothing_is_said_of_output(voices, tmp_path):
    env = fake_player(tmp_path, f'echo "$@" > {tmp_path}/args; cat > {tmp_path}/played')
    assert say(voices, TEXT, env=env).returncode == OK
    assert (tmp_path / "args").read_text() == "-q -t raw -f S16_LE -c 1 -r 16000\n"
    assert np.array_equal(np.frombuffer((tmp_path / "played").read_bytes(), "<i2"), raw(voices, TEXT))


def test_a_player_that_fails(voices, tmp_path):
    assert say(voices, TEXT, env=fake_player(tmp_path, "cat > /dev/null; exit 7")).returncode == FILE
    assert say(voices, "yes. " * 50, env=fake_player(tmp_path, "exit 0")).returncode in (OK, FILE)
    done = say(voices, TEXT, "--espeak", "/usr/bin/espeak-ng", env={"PATH": str(tmp_path / "none")})
    assert done.returncode == UNSUPPORTED and b"alsa-utils" in done.stderr


def test_a_full_disk_is_an_error(voices):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([LINNET, "say", "-m", voices / "one.lnt", "--output_raw", TEXT], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == FILE


def test_report_of_one_file(voices, tmp_path):
    report = json.loads(say(voices, TEXT, "-f", tmp_path / "x.wav", "--json").stdout)
    assert report["file"] == str(tmp_path / "x.wav") and report["texts"][0]["file"] is None


def test_report(voices, tmp_path):
    done = say(voices, TEXT, "-d", tmp_path, "--json")
    report = json.loads(done.stdout)
    text, = report["texts"]
    assert report["file"] is None
    assert (report["rate"], report["speakers"], text["text"]) == (16000, 1, TEXT)
    assert len(text["sentences"]) == 2 and text["samples"] == len(raw(voices, TEXT)) and pathlib.Path(text["file"]).exists()


# ---- options ----

# Every option of both programs, in a spelling of each, and what it does here: the same, or a refusal that names it.
FLAGS = [
    (["-c", "CONFIG"], OK), (["--config", "CONFIG"], OK),
    (["-i", "TEXTS"], OK), (["--input-file", "TEXTS"], OK), (["--input_file", "TEXTS"], OK),
    (["-f", "OUT"], OK), (["--output_file", "OUT"], OK), (["--output-file", "OUT"], OK),
    (["-d", "DIR"], OK), (["--output_dir", "DIR"], OK), (["--output-dir", "DIR"], OK),
    (["-d", "DIR", "--output-dir-naming", "timestamp"], OK), (["-d", "DIR", "--output_dir_naming", "text"], OK),
    (["--output_raw"], OK), (["--output-raw"], OK),
    (["-s", "0"], OK), (["--speaker", "0"], OK),
    (["--length_scale", "1.1"], OK), (["--length-scale", "1.1"], OK),
    (["--noise_scale", "0.5"], OK), (["--noise-scale", "0.5"], OK),
    (["--noise_w", "0.5"], OK), (["--noise-w", "0.5"], OK), (["--noise_w_scale", "0.5"], OK), (["--noise-w-scale", "0.5"], OK),
    (["--sentence_silence", "0.2"], OK), (["--sentence-silence", "0.2"], OK),
    (["--phoneme_silence", ",", "0.2"], OK), (["--phoneme-silence", ",", "0.2"], OK),
    (["--volume", "0.5"], OK), (["--no-normalize"], OK), (["--no_normalize"], OK),
    (["--data-dir", "DIR"], OK), (["--data_dir", "DIR"], OK),
    (["--espeak_data", "/usr/lib/x86_64-linux-gnu/espeak-ng-data"], OK), (["--debug"], OK), (["-q"], OK), (["--quiet"], OK),
    (["--json-input"], OK), (["--json_input"], OK),
    (["-h"], OK), (["--help"], OK), (["--version"], OK),
    (["--cuda"], UNSUPPORTED), (["--use_cuda"], UNSUPPORTED), (["--use-cuda"], UNSUPPORTED),
    (["--tashkeel_model", "m.ort"], UNSUPPORTED), (["--tashkeel-model", "m.ort"], UNSUPPORTED),
]


@pytest.mark.parametrize("flags, code", FLAGS, ids=lambda x: " ".join(x) if isinstance(x, list) else str(x))
def test_options_of_piper(voices, tmp_path, flags, code):
    places = {"CONFIG": voices / "one.onnx.json", "OUT": tmp_path / "o.wav", "DIR": tmp_path / "d", "TEXTS": tmp_path / "t"}
    (tmp_path / "t").write_text("Hello.\n")
    words = [str(places.get(f, f)) for f in flags]
    to = [] if {"OUT", "DIR", "--output_raw", "--output-raw"} & set(flags) and "data" not in flags[0] else ["-f", tmp_path / "x.wav"]
    line = b'{"text": "Hello."}' if "json" in flags[0] else b"Hello."
    done = say(voices, *words, *to, stdin=line)
    assert done.returncode == code, done.stderr.decode()
    if code == UNSUPPORTED:
        assert flags[0].replace("_", "-")[2:6] in done.stderr.decode().replace("_", "-")


@pytest.mark.parametrize("args", [
    ["--nonsense"], ["-f"], ["-f", "a.wav", "-d", "b"], ["-f", "-", "--json"], ["--output_raw", "--json"], ["--print", "ids", "-f", "x"],
    ["--print", "nothing"], ["--speed", "2", "--length_scale", "2"], ["--speed", "0"], ["--volume", "-1"], ["--phoneme_silence", ","],
    ["--phoneme_silence", "ab", ".1", "--output_raw"], ["--phoneme_silence", ",", "long", "--output_raw"],
    ["--sentence_silence", "1e9", "--output_raw"], ["--length_scale", "0", "--output_raw"], ["--ids", "1 -2", "--output_raw"],
    ["--ids", "1 x", "--output_raw"], ["--ids", "1 0 9999", "--output_raw"], ["--json-input"], ["-i", "t"]])
def test_usage_errors(voices, args):
    assert say(voices, "Hello.", *args).returncode == USAGE


def test_failures_say_what_and_how_on(voices, tmp_path):
    done = linnet("say", "-m", tmp_path / "none.lnt", "Hello.")
    assert done.returncode == FILE and "none.lnt" in done.stderr
    (tmp_path / "v.onnx").write_bytes((voices / "one.onnx").read_bytes())
    done = linnet("say", "-m", tmp_path / "v.onnx", "Hello.")
    assert done.returncode == FILE and "v.onnx.json" in done.stderr and "-c" in done.stderr
    assert linnet("convert", tmp_path / "v.onnx", "-o", tmp_path / "v.lnt").returncode == OK
    done = linnet("say", "-m", tmp_path / "v.lnt", "Hello.")
    assert done.returncode == USAGE and "--config" in done.stderr
    done = linnet("say", "-m", voices / "one.lnt", "--espeak", "no-such-espeak", "Hello.", "-f", tmp_path / "x.wav")
    assert done.returncode == UNSUPPORTED and "espeak-ng" in done.stderr and not (tmp_path / "x.wav").exists()
    done = linnet("say", "-m", voices / "one.lnt", "--espeak", "true", "Hello.", "--output_raw")
    assert done.returncode in (FILE, UNSUPPORTED)
    done = say(voices, "--output_raw", stdin=b"\xff\n")
    assert done.returncode == USAGE and b"UTF-8" in done.stderr
    assert say(voices, "--output_raw", stdin=b"a\0b\n").returncode == USAGE


@pytest.mark.parametrize("change, code", [
    ({"phoneme_type": "pinyin"}, UNSUPPORTED), ({"vowel_clusters": [["a", "ɪ"]]}, UNSUPPORTED), ({"phoneme_id_map": None}, USAGE),
    ({"phoneme_id_map": {"a": [1]}}, USAGE), ({"phoneme_id_map": {"^": 1, "_": [0], "$": [2]}}, USAGE), ({"audio": {}}, USAGE),
    ({"audio": {"sample_rate": 0}}, USAGE), ({"espeak": {}}, USAGE), ({"num_speakers": 2}, USAGE), ({"num_speakers": 0.5}, USAGE),
    ({"inference": {"noise_scale": "x"}}, USAGE), ({"speaker_id_map": {"a": 7}}, USAGE),
    ({"espeak": {"voice": "zz-none"}}, UNSUPPORTED)])
def test_configurations_that_are_none(voices, tmp_path, change, code):
    (tmp_path / "c.json").write_text(json.dumps({**voice.piper_config(), **change}))
    done = say(voices, "-c", tmp_path / "c.json", "Hello.", "--output_raw")
    assert done.returncode == code and done.stderr, done.stderr
    done = linnet("convert", voices / "one.onnx", "--config", tmp_path / "c.json", "-o", tmp_path / "v.lnt")
    known_later = change.get("num_speakers") == 2 or "zz-none" in str(change)
    assert (done.returncode, (tmp_path / "v.lnt").exists()) == ((OK, True) if known_later else (code, False))


def test_a_model_that_is_no_voice(voices, tmp_path):
    import onnx

    onnx.save(voice.build(), tmp_path / "v.onnx")
    done = linnet("say", "-m", tmp_path / "v.onnx", "-c", voices / "one.onnx.json", "Hello.", "--output_raw")
    assert done.returncode == USAGE and "input" in done.stderr


def test_called_as_piper(voices, tmp_path):
    (tmp_path / "piper").symlink_to(LINNET)
    program = (str(tmp_path / "piper"),)
    done = say(voices, "--output_file", tmp_path / "x.wav", stdin=TEXT.encode(), program=program)
    assert done.returncode == OK and np.array_equal(samples(tmp_path / "x.wav"), raw(voices, TEXT, "--stream", "off"))
    assert subprocess.run([*program, "--version"], capture_output=True).returncode == OK


def test_voices_by_name(voices, tmp_path):
    expected = raw(voices, "yes")
    for name in ("one", "one.lnt"):
        done = linnet("say", "-m", name, "--data-dir", tmp_path, "--data-dir", voices, "yes", "-f", tmp_path / "x.wav")
        assert done.returncode == OK and np.array_equal(samples(tmp_path / "x.wav"), expected)


def test_many_texts_in_one_process(voices):
    """The program espeak-ng is asked again and again; no text changes another's sound."""
    texts = [f"Number {k} is {'very ' * (k % 7)}good." for k in range(40)]
    together = raw(voices, stdin="\n".join(texts).encode())
    assert np.array_equal(together[:len(first := raw(voices, texts[0]))], first)
    assert np.array_equal(together[-len(last := raw(voices, texts[-1])):], last)
