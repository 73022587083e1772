"""`linnet say --serve`: the interface of Piper's web server by requests, Wyoming by its own client, what is no request."""

import asyncio
import concurrent.futures
import io
import json
import os
import re
import signal
import socket
import subprocess
import wave

import numpy as np
import pytest
import requests
from test_say import raw, say
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.tts import (Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped, SynthesizeVoice)

from harness import LINNET

TEXT = "Hello, world. How are you?"
USAGE, FILE = 2, 3


class Server:
    """A server of three.lnt at ports of its own, in this process's care."""

    def __init__(self, voices, *args):
        self.process = subprocess.Popen([LINNET, "say", "-m", voices / "three.lnt", *map(str, args)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.at = [re.search(r" at (.*?)/?$", self.process.stdout.readline())[1]
                   for word in args if str(word).startswith("--serve")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and not out and not err, err


@pytest.fixture(scope="module")
def server(voices):
    with Server(voices, "--serve=0", "--serve=wyoming:0") as running:
        yield running


def samples(content):
    with wave.open(io.BytesIO(content)) as w:
        assert (w.getnchannels(), w.getsampwidth(), w.getframerate()) == (1, 2, 16000)
        return np.frombuffer(w.readframes(w.getnframes()), "<i2")


def ask(server, body, path="/synthesize", **how):
    return requests.post(server.at[0] + path, **({"json": body} if isinstance(body, dict) else {"data": body}), timeout=120, **how)


# ---- Piper's web server ----

def test_sound_is_the_programs(server, voices):
    assert np.array_equal(samples(ask(server, {"text": TEXT}).content), raw(voices, TEXT, name="three.lnt"))
    done = ask(server, {"text": TEXT, "speaker": "carl", "length_scale": 1.3, "noise_scale": 0.2, "noise_w_scale": 0.1, "seed": 5,
                        "volume": 0.5, "sentence_silence": 0.1, "voice": "another"}, "/")
    assert done.headers["Content-Type"] == "audio/wav"
    assert np.array_equal(samples(done.content), raw(voices, TEXT, "-s", "carl", "--length_scale", 1.3, "--noise_scale", 0.2,
                                                     "--noise_w", 0.1, "--seed", 5, "--volume", 0.5, "--sentence_silence", 0.1,
                                                     name="three.lnt"))
    by_id = samples(ask(server, {"text": TEXT, "speaker_id": 1, "speaker": "carl"}).content)
    assert np.array_equal(by_id, raw(voices, TEXT, "-s", 1, name="three.lnt"))


def test_plain_text_and_query(server, voices):
    want = raw(voices, "Ol\u00e9, hello.", name="three.lnt")
    assert np.array_equal(samples(ask(server, "Ol\u00e9, hello.".encode(), "/").content), want)
    assert np.array_equal(samples(requests.get(server.at[0] + "/", params={"text": "Ol\u00e9, hello."}, timeout=60).content), want)


def test_a_stream_begins_before_it_ends(server, voices):
    want = raw(voices, TEXT, name="three.lnt").tobytes()
    with ask(server, {"text": TEXT}, "/stream", stream=True) as done:
        pieces = list(done.iter_content(chunk_size=None))
    assert done.headers["Transfer-Encoding"] == "chunked" and len(pieces) > 1
    assert b"".join(pieces)[44:] == want and pieces[0][:4] == b"RIFF"
    with socket.create_connection(address(server.at[0])) as old:  # HTTP/1.0 knows no chunks
        old.sendall(b"POST /stream HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(TEXT), TEXT.encode()))
        head, body = b"".join(iter(lambda: old.recv(65536), b"")).split(b"\r\n\r\n", 1)
    assert b"chunked" not in head and body[44:] == want


def test_what_is_told_of_the_voice(server, voices):
    info = requests.get(server.at[0] + "/info", timeout=60).json()
    assert info["voice"] == {"name": "three", "language": "en-us", "num_speakers": 3, "sample_rate": 16000}
    assert info["last"] is None or info["last"]["text"]
    ask(server, {"text": TEXT})
    last = requests.get(server.at[0] + "/info", timeout=60).json()["last"]
    assert last["text"] == TEXT and last["synthesize_seconds"] > 0 and len(last["phonemes"]) == 2
    known = requests.get(server.at[0] + "/voices", timeout=60).json()
    assert known == {"three": json.loads((voices / "three.onnx.json").read_text())}
    page = requests.get(server.at[0], timeout=60)
    assert page.headers["Content-Type"].startswith("text/html") and "<textarea" in page.text
    assert requests.get(server.at[0] + "/health", timeout=60).json() == {"status": "ok"}


@pytest.mark.parametrize("body, status, says", [
    ({"text": 5}, 400, "text"), ({}, 400, "text"), ({"text": " "}, 400, "no text"), (b"", 400, "no text"), (b"{", 400, "JSON"),
    ({"text": "a", "speaker": "nobody"}, 400, "nobody"), ({"text": "a", "speaker_id": 9}, 400, "speaker 9"),
    ({"text": "a", "speaker_id": -1}, 400, "speaker"), ({"text": "a", "length_scale": 0}, 400, "scales"),
    ({"text": "a", "noise_scale": "x"}, 400, "noise_scale"), ({"text": "a", "seed": -1}, 400, "seed"), (b"a\0b", 400, "NUL"),
    (b"\xff\xfe", 400, "UTF-8"), (b"x" * 1200000, 413, "1 MB")])
def test_requests_that_are_wrong(server, body, status, says):
    try:
        done = ask(server, body)
    except requests.exceptions.ConnectionError:  # it was still sending
        assert status == 413
        return
    assert done.status_code == status and says in done.json()["error"]


def test_places_that_are_none(server):
    assert requests.get(server.at[0] + "/nothing", timeout=60).status_code == 404
    assert requests.get(server.at[0] + "/synthesize", timeout=60).status_code == 405
    assert requests.post(server.at[0] + "/stream", data=iter([b"a"]), timeout=60).status_code == 411


def address(url):
    host, port = url.split("//")[1].rsplit(":", 1)
    return host, int(port)


@pytest.mark.parametrize("bytes_", [b"\r\n", b"\xff\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"G" * 20000, b"",
                                    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
                                    b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
                                    b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"])
def test_what_is_no_request(server, bytes_):
    """It is refused or left, and the next one is answered."""
    with socket.create_connection(address(server.at[0])) as client:
        client.sendall(bytes_)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert not answer or re.match(rb"HTTP/1.1 4\d\d ", answer)
    assert requests.get(server.at[0] + "/health", timeout=60).ok


def test_many_at_once_lose_nothing(server, voices):
    want = {k: raw(voices, "yes", "--seed", k, name="three.lnt") for k in range(4)}
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        found = list(pool.map(lambda k: samples(ask(server, {"text": "yes", "seed": k % 4}).content), range(64)))
    assert all(np.array_equal(x, want[k % 4]) for k, x in enumerate(found))


def test_one_connection_serves_many_requests(server):
    with requests.Session() as session:
        sizes = {len(session.post(server.at[0], json={"text": "yes"}, timeout=60).content) for _ in range(5)}
    assert len(sizes) == 1


def test_stop_ends_what_is_spoken(server):
    long = " ".join([TEXT] * 200)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask, server, {"text": long}) for _ in range(2)]
        while not all(answer.done() for answer in answers):
            requests.post(server.at[0] + "/stop", timeout=60)
    assert [answer.result().status_code for answer in answers] == [503, 503]
    assert ask(server, {"text": "yes"}).ok


def test_a_client_that_leaves_costs_no_other(server):
    long = " ".join([TEXT] * 200).encode()
    with socket.create_connection(address(server.at[0])) as client:
        client.sendall(b"POST /stream HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(long), long))
        assert client.recv(1000)
    assert ask(server, {"text": "yes"}).ok


# ---- Wyoming ----

def converse(server, events, last, at=1):
    """What the server sends until an event of the last type."""
    async def run():
        uri = server.at[at].replace("wyoming at ", "")
        async with AsyncClient.from_uri(uri) as client:
            for event in events:
                await client.write_event(event.event() if hasattr(event, "event") else event)
            answers = []
            while not answers or not last.is_type(answers[-1].type):
                answers.append(await asyncio.wait_for(client.read_event(), 120))
                assert answers[-1] is not None
            return answers
    return asyncio.run(run())


def sound_of(events):
    return np.frombuffer(b"".join(AudioChunk.from_event(e).audio for e in events if AudioChunk.is_type(e.type)), "<i2")


def test_describe(server):
    info = Info.from_event(converse(server, [Describe()], Info)[0])
    program, = info.tts
    found, = program.voices
    assert found.name == "three" and found.languages == ["en_US"] and program.installed and program.supports_synthesize_streaming
    assert [speaker.name for speaker in found.speakers] == ["anna", "bert", "carl"] and not info.asr


def test_synthesize(server, voices):
    events = converse(server, [Synthesize(TEXT, voice=SynthesizeVoice(name="three", speaker="bert"))], AudioStop)
    start = AudioStart.from_event(events[0])
    assert (start.rate, start.width, start.channels) == (16000, 2, 1)
    assert np.array_equal(sound_of(events), raw(voices, TEXT, "-s", "bert", name="three.lnt"))


def test_a_text_in_pieces(server, voices):
    """Each sentence is spoken when it is whole; the event for servers that take no pieces changes nothing."""
    pieces = [SynthesizeStart(), SynthesizeChunk("Hel"), SynthesizeChunk("lo, world. How "), SynthesizeChunk("are you?"),
              Synthesize(TEXT), SynthesizeStop()]
    events = converse(server, pieces, SynthesizeStopped)
    assert [e.type for e in events if not AudioChunk.is_type(e.type)] == [
        "audio-start", "audio-stop", "audio-start", "audio-stop", "synthesize-stopped"]
    want = [raw(voices, text, name="three.lnt") for text in ("Hello, world.", " How are you?")]
    assert np.array_equal(sound_of(events), np.concatenate(want))


def test_errors_of_wyoming(server):
    for wrong in (Synthesize("a", voice=SynthesizeVoice(name="three", speaker="nobody")), Event("synthesize", {"text": 5})):
        error = Error.from_event(converse(server, [Event("unknown"), wrong], Error)[-1])
        assert error.text and error.code
    for garbage in (b"no json\n", b"[]\n", b"{}\n", b'{"type": "describe", "data_length": -1}\n', b'{"type": 5}\n',
                    b'{"type": "describe", "data_length": 2}\nxx', b"\xff" * 1000, b'{"type": "describe", "payload_length": 1e30}\n'):
        with socket.create_connection(address(server.at[1])) as client:
            client.sendall(garbage)
            client.shutdown(socket.SHUT_WR)
            assert not client.recv(100)
    assert converse(server, [Describe()], Info)


# ---- addresses ----

def test_unix_sockets(voices, tmp_path):
    """Both protocols; a dead server's socket is taken over, a living one's is not; the end takes it away."""
    path, other = tmp_path / "say", tmp_path / "wyoming"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with Server(voices, f"--serve=unix:{path}", f"--serve=wyoming:unix:{other}"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert b"200 OK" in client.recv(1000)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(other))
            client.sendall(b'{"type": "ping"}\n')
            assert b"pong" in client.recv(1000)
        second = say(voices, f"--serve=unix:{path}", name="three.lnt")
        assert second.returncode == FILE and b"in use" in second.stderr
    assert not os.path.exists(path) and not os.path.exists(other)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "http:[::]"])
def test_hosts(voices, host):
    if ":" in host.replace("http:", "") and not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("no IPv6")
    with Server(voices, f"--serve={host}:0") as running:
        assert requests.get(running.at[0].replace("[::]", "[::1]") + "/health", timeout=60).ok


@pytest.mark.parametrize("args", [["--serve=x"], ["--serve=0", "text"], ["--serve=0", "--json"], ["--serve=0", "--output_raw"],
                                  ["--serve=nowhere:"], ["--serve=host.invalid:0"], ["--serve=1.2.3:0"],
                                  ["--serve=http:99999999"], ["--serve=unix:"], ["--serve=unix:" + "a" * 200]])
def test_options_that_are_wrong(voices, args):
    done = say(voices, *args)
    assert done.returncode == USAGE and done.stderr


def test_a_port_that_is_taken(voices, server):
    done = say(voices, f"--serve={address(server.at[0])[1]}")
    assert done.returncode == FILE and b"in use" in done.stderr
