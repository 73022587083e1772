"""`linnet say --pack` and `--prompts`: prompts ahead of time, by command line, lines of JSON and requests."""

import json
import struct

import numpy as np
import pytest
import requests
import test_say_serve
from test_say import FILE, OK, USAGE, raw, samples, say

DOOR, TEA = "The door is open. Please close it.", "Your tea is ready."
LIST = f"""# prompts of a device
door_open | {DOOR}
tea|{TEA}

battery|Battery at {{level:unit %}}, {{who}}.
clock|It is {{t:time}}, {{degrees:number}} degrees.
"""


@pytest.fixture(scope="module")
def packs(voices, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    (folder / "prompts.txt").write_text(LIST)
    for sound in ("none", "pcm", "adpcm"):
        done = say(voices, "--pack", folder / "prompts.txt", "-o", folder / f"{sound}.lpk", "--sound", sound, name="three.lnt")
        assert done.returncode == OK and done.stdout.decode() == f"{folder / sound}.lpk\n", done.stderr
    return folder


def prompt(voices, pack, *words, name="three.lnt", **how):
    return raw(voices, "--prompts", pack, *words, name=name, **how)


def test_a_prompt_sounds_as_its_text(voices, packs):
    """Without espeak-ng where the text has no slots: its ids are in the pack."""
    door = raw(voices, DOOR, name="three.lnt")
    for sound in ("none", "pcm"):
        assert np.array_equal(prompt(voices, packs / f"{sound}.lpk", "door_open", "--espeak", "/bin/false"), door)
    slow = raw(voices, DOOR, "--speed", 0.8, "-s", "bert", name="three.lnt")
    assert np.array_equal(prompt(voices, packs / "pcm.lpk", "door_open", "--speed", 0.8, "-s", "bert"), slow)
    high = raw(voices, DOOR, "--pitch", 1.5, name="three.lnt")
    assert np.array_equal(prompt(voices, packs / "pcm.lpk", "door_open", "--pitch", 1.5), high)
    assert not np.array_equal(slow, door)


def test_sound_of_four_bits(voices, packs):
    door = raw(voices, DOOR, name="three.lnt").astype(float)
    found = prompt(voices, packs / "adpcm.lpk", "door_open")
    assert len(found) == len(door)
    assert 10 * np.log10((door ** 2).sum() / ((found - door) ** 2).sum()) > 12  # seeded weights: nearly noise
    none, pcm, adpcm = ((packs / f"{sound}.lpk").stat().st_size for sound in ("none", "pcm", "adpcm"))
    assert none < 3000 and 3.7 < (pcm - none) / (adpcm - none) < 4.1


def test_values_of_slots(voices, packs):
    for sound in ("none", "adpcm"):
        for words, text in ((["battery", "level=12.5", "who=Anna B."], "Battery at 12.5 %, Anna B.."),
                            (["clock", "degrees=-3", "t=9:05"], "It is 9:05, -3 degrees.")):
            assert np.array_equal(prompt(voices, packs / f"{sound}.lpk", *words), raw(voices, text, name="three.lnt"))


def test_prompts_in_turn(voices, packs, tmp_path):
    expected = np.concatenate([raw(voices, text, name="three.lnt") for text in (TEA, "It is 9:05, 7 degrees.", TEA)])
    words = ["tea", "clock", "degrees=7", "t=9:05", "tea"]
    assert np.array_equal(prompt(voices, packs / "pcm.lpk", *words), expected)
    done = say(voices, "--prompts", packs / "pcm.lpk", *words, "-d", tmp_path / "d", "--output-dir-naming", "text", name="three.lnt")
    assert done.returncode == OK and {p.name for p in (tmp_path / "d").iterdir()} == {"tea.wav", "clock.wav"}
    lines = [{"prompt": "tea"}, {"prompt": "clock", "values": {"degrees": 7, "t": "9:05"}, "speaker_id": 0}, {"text": TEA}]
    assert np.array_equal(prompt(voices, packs / "pcm.lpk", "--json-input",
                                 stdin="".join(json.dumps(line) + "\n" for line in lines).encode()), expected)


def test_a_server_knows_prompts(voices, packs):
    with test_say_serve.Server(voices, "--serve=0", "--prompts", packs / "pcm.lpk") as server:
        done = test_say_serve.ask(server, {"prompt": "clock", "values": {"degrees": 7, "t": "9:05"}, "seed": 3}, "/stream")
        assert done.content[44:] == raw(voices, "It is 9:05, 7 degrees.", "--seed", 3, name="three.lnt").tobytes()
        done = test_say_serve.ask(server, {"prompt": "tea"})
        assert np.array_equal(test_say_serve.samples(done.content), raw(voices, TEA, name="three.lnt"))
        assert np.array_equal(test_say_serve.samples(test_say_serve.ask(server, {"text": TEA}).content),
                              test_say_serve.samples(requests.get(server.at[0], params={"text": TEA}, timeout=60).content))
        for body, says in (({"prompt": "none"}, "none"), ({"prompt": "clock"}, "slot"), ({"prompt": 5}, "prompt"), ({}, "prompt"),
                           ({"prompt": "tea", "values": [1]}, "values"), ({"prompt": "clock", "values": {"t": None}}, "t")):
            done = test_say_serve.ask(server, body)
            assert done.status_code == 400 and says in done.json()["error"], body


@pytest.mark.parametrize("words, says", [
    (["nothing"], "no prompt called nothing"), (["clock", "t=9:05"], "degrees has no value"), (["tea", "x=1"], "no slot called x"),
    (["clock", "t=9:65", "degrees=1"], "no time"), (["clock", "t=9:05", "degrees=warm"], "no number"), (["x=1", "tea"], "behind"),
    (["clock", "t=9:05", "t=9:06", "degrees=1"], "two values"), ([], "which prompt")])
def test_prompts_that_are_none(voices, packs, words, says):
    done = say(voices, "--prompts", packs / "none.lpk", *words, "--output_raw", name="three.lnt")
    assert done.returncode == USAGE and says in done.stderr.decode() and not done.stdout


def test_another_voice_is_told(voices, packs):
    done = say(voices, "--prompts", packs / "pcm.lpk", "tea", "--output_raw", name="one.lnt")
    assert done.returncode == USAGE and b"another voice" in done.stderr and not done.stdout


@pytest.mark.parametrize("text, says", [
    ("door|a\ndoor|b\n", "two prompts are called door"), ("a|b\nno bar\n", "line 2"), ("a b|c\n", "name"), ("a|{b\n", "slot"),
    ("a|{b:date}\n", "date"), ("# nothing\n", "no prompts"), ("a|\udcff\n", "UTF-8")])
def test_lists_that_are_wrong(voices, tmp_path, text, says):
    (tmp_path / "p.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "p.lpk").write_bytes(b"as it was")
    done = say(voices, "--pack", tmp_path / "p.txt", "-o", tmp_path / "p.lpk")
    assert done.returncode == USAGE and says in done.stderr.decode()
    assert (tmp_path / "p.lpk").read_bytes() == b"as it was" and sorted(p.name for p in tmp_path.iterdir()) == ["p.lpk", "p.txt"]


@pytest.mark.parametrize("args", [
    ["--pack", "p.txt"], ["-o", "p.lpk", "text"], ["--sound", "pcm", "text"], ["--pack", "p.txt", "-o", "p.lpk", "text"],
    ["--pack", "p.txt", "-o", "p.lpk", "-f", "x.wav"], ["--prompts", "p.lpk", "a", "--print", "ids"],
    ["--prompts", "p.lpk", "a", "--ids", "1"], ["--prompts", "p.lpk", "-i", "t"]])
def test_usage_errors(voices, args):
    assert say(voices, *args).returncode == USAGE


def test_files_that_are_no_packs(voices, packs, tmp_path):
    for content in (b"", b"no pack" * 20, (packs / "pcm.lpk").read_bytes()[:-1]):
        (tmp_path / "x.lpk").write_bytes(content)
        done = say(voices, "--prompts", tmp_path / "x.lpk", "tea", "--output_raw")
        assert done.returncode == FILE and b"x.lpk: pack" in done.stderr
    assert say(voices, "--prompts", tmp_path / "none.lpk", "tea", "--output_raw").returncode == FILE
    damaged = bytearray((packs / "pcm.lpk").read_bytes())
    damaged[-200] ^= 1
    (tmp_path / "x.lpk").write_bytes(damaged)
    done = [say(voices, "--prompts", tmp_path / "x.lpk", name, "-f", tmp_path / "x.wav", name="three.lnt") for name in ("tea", "door_open")]
    assert sorted(d.returncode for d in done) == [OK, FILE] and any(b"damaged" in d.stderr for d in done)


def test_the_file_is_as_documented(voices, packs, tmp_path):
    """By docs/say.md, and the sound by the definition of IMA ADPCM."""
    data = (packs / "adpcm.lpk").read_bytes()
    assert data[:8] == b"\x89LPK\r\n\x1a\n"
    version, n, rate, _, front, size, _ = struct.unpack_from("<4I3Q", data, 8)
    assert (version, n, rate, size) == (1, 4, 16000, len(data)) and front % 64 == 0
    names = {}
    for k in range(n):
        record = struct.unpack_from("<4Q6I2HI", data, 64 + 64 * k)
        _, _, _, _, at, sound, parts, ids, count, text_bytes, name_bytes, kind, _ = record
        text = data[64 * at + 16 * parts + 4 * ids:]
        name = text[:name_bytes].decode()
        names[name] = text[name_bytes + 1:name_bytes + 1 + text_bytes].decode()
        if name == "tea":
            assert kind == 2
            assert np.array_equal(ima(data[64 * sound:], count), prompt(voices, packs / "adpcm.lpk", "tea"))
    assert names["door_open"] == DOOR and names["battery"] == "Battery at {level:unit %}, {who}." and len(names) == 4


def ima(data, n):
    """Blocks of 512 bytes: the first sample, the index of the step, 0, then 4 bits a sample, the low ones first."""
    table = ("7 8 9 10 11 12 13 14 16 17 19 21 23 25 28 31 34 37 41 45 50 55 60 66 73 80 88 97 107 118 130 143 157 173 190 209 230 253 "
             "279 307 337 371 408 449 494 544 598 658 724 796 876 963 1060 1166 1282 1411 1552 1707 1878 2066 2272 2499 2749 3024 3327 "
             "3660 4026 4428 4871 5358 5894 6484 7132 7845 8630 9493 10442 11487 12635 13899 15289 16818 18500 20350 22385 24623 27086 "
             "29794 32767")
    steps = [int(s) for s in table.split()]
    pcm = []
    while len(pcm) < n:
        sample, index, _ = struct.unpack_from("<hBB", data)
        codes = [code for byte in data[4:512] for code in (byte & 15, byte >> 4)]
        pcm.append(sample)
        for code in codes[:min(1016, n - len(pcm))]:
            step = steps[index]
            way = (step >> 3) + (step if code & 4 else 0) + (step >> 1 if code & 2 else 0) + (step >> 2 if code & 1 else 0)
            sample = max(-32768, min(32767, sample - way if code & 8 else sample + way))
            index = max(0, min(88, index + (-1, -1, -1, -1, 2, 4, 6, 8)[code & 7]))
            pcm.append(sample)
        data = data[512:]
    return np.array(pcm, np.int16)


def test_report(voices, packs, tmp_path):
    done = say(voices, "--pack", packs / "prompts.txt", "-o", tmp_path / "p.lpk", "--json")
    assert json.loads(done.stdout) == {"file": str(tmp_path / "p.lpk"), "prompts": 4, "bytes": (tmp_path / "p.lpk").stat().st_size}
    report = json.loads(say(voices, "--prompts", tmp_path / "p.lpk", "tea", "-f", tmp_path / "x.wav", "--json").stdout)
    assert report["texts"][0]["prompt"] == "tea" and report["texts"][0]["samples"] == len(samples(tmp_path / "x.wav"))
