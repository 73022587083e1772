"""`linnet say --cache`: sounds of before, by command line, lines and requests."""

import json
import os

import numpy as np
import pytest
import test_say_serve
from test_say import OK, USAGE, raw, say

TEA, DOOR = "Your tea is ready.", "The door is open. Please close it."


def cached(voices, cache, *args, name="three.lnt", **how):
    """Is the text's sound from the cache? And the sound."""
    wav = cache.parent / "sound.wav"
    done = say(voices, *args, "--cache", cache, "--json", "-f", wav, name=name, **how)
    assert done.returncode == OK, done.stderr
    return [text["cached"] for text in json.loads(done.stdout)["texts"]], wav.read_bytes()


def test_the_same_text_is_read(voices, tmp_path):
    cache = tmp_path / "cache"
    found, first = cached(voices, cache, TEA)
    assert found == [False] and len(list(cache.iterdir())) == 1
    assert cached(voices, cache, TEA) == ([True], first)
    assert np.array_equal(raw(voices, TEA, "--cache", cache, name="three.lnt"), raw(voices, TEA, name="three.lnt"))


def test_lines(voices, tmp_path):
    found, _ = cached(voices, tmp_path / "cache", "--json-input",
                      stdin="".join(json.dumps({"text": text}) + "\n" for text in (TEA, DOOR, DOOR)).encode())
    assert found == [False, False, True]


@pytest.mark.parametrize("options", [("--seed", 1), ("--speed", 2), ("--pitch", 1.2), ("-s", "bert"), ("--volume", 0.5),
                                     ("--no-normalize",), ("--sentence_silence", 1), ("--noise_w", 0), ("--phoneme_silence", ",", 0.1)])
def test_what_decides_a_sound(voices, tmp_path, options):
    cache = tmp_path / "cache"
    text = "The door, is open. Please close it."
    assert cached(voices, cache, text)[0] == [False]
    found, sound = cached(voices, cache, text, *options)
    assert found == [False]
    assert cached(voices, cache, text, *options) == ([True], sound)
    assert cached(voices, cache, text)[0] == [True]
    assert cached(voices, cache, text, name="one.lnt")[0] == [False]  # another voice


def test_damage_is_no_sound(voices, tmp_path):
    cache = tmp_path / "cache"
    _, sound = cached(voices, cache, TEA)
    file, = cache.iterdir()
    whole = file.read_bytes()
    size = len(whole)
    for at in (*range(0, 64), size // 3, size // 2, size - 1):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        assert cached(voices, cache, TEA) == ([False], sound), at
        assert file.read_bytes() == whole
    for cut in (0, 10, 24, size - 1):
        file.write_bytes(whole[:cut])
        assert cached(voices, cache, TEA) == ([False], sound)


def test_the_oldest_goes(voices, tmp_path):
    cache = tmp_path / "cache"
    texts = [f"This is text {word}." for word in ("one", "two", "three")]
    stamps = []
    for age, text in enumerate(texts):
        cached(voices, cache, text)
        file, = set(cache.iterdir()) - set(stamps)
        os.utime(file, (1e9 + age, 1e9 + age))
        stamps.append(file)
    (cache / "notes.txt").write_text("somebody's own")
    most = sum(file.stat().st_size for file in stamps) - 1
    assert cached(voices, cache, DOOR, "--cache-bytes", most)[0] == [False]
    left = [file for file in stamps if file.exists()]
    assert stamps[0] not in left and left == stamps[len(stamps) - len(left):]
    assert sum(file.stat().st_size for file in cache.glob("*.sound")) <= most and (cache / "notes.txt").exists()
    assert cached(voices, cache, DOOR, "--cache-bytes", most)[0] == [True]
    assert cached(voices, cache, "Nothing is kept.", "--cache-bytes", 100)[0] == [False]
    assert not list(cache.glob("*.sound"))


def test_what_cannot_be_kept(voices, tmp_path):
    done = say(voices, TEA, "--cache", tmp_path / "no" / "folder", "--output_raw", name="three.lnt")
    assert done.returncode not in (OK, USAGE) and b"no/folder" in done.stderr
    (tmp_path / "file").write_text("x")
    done = say(voices, TEA, "--cache", tmp_path / "file", "--output_raw", name="three.lnt")
    assert done.returncode != OK and b"no folder" in done.stderr
    done = say(voices, TEA, "--cache", tmp_path / "cache", "--print", "ids", name="three.lnt")
    assert done.returncode == USAGE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_only_read(voices, tmp_path):
    cache = tmp_path / "cache"
    cached(voices, cache, TEA)
    cache.chmod(0o500)
    assert cached(voices, cache, TEA)[0] == [True]
    done = say(voices, DOOR, "--cache", cache, "--output_raw", name="three.lnt")
    assert done.returncode == OK and b"not kept" in done.stderr


def test_requests_share_it(voices, tmp_path):
    cache = tmp_path / "cache"
    with test_say_serve.Server(voices, "--serve=0", "--cache", cache) as server:
        first, second = (test_say_serve.ask(server, {"text": TEA}).content for _ in range(2))
    assert first == second and len(list(cache.iterdir())) == 1
