"""Compressed .npz files: what numpy and zip write is read, what is damaged is refused."""

import struct
import zipfile
import zlib

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import LONG, linnet

FILE = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "m.onnx"
    onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> m (uint8[n] x) => (uint8[n] y) { y = Identity (x) }'), path)
    assert linnet("convert", path).returncode == 0
    return path.with_suffix(".lnt")


def npy(array):
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(array)},), }}".encode()
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + array.tobytes()


def archive(path, plain, stream, size=None):
    """A zip file whose one member has this stream, which says to be of size bytes."""
    size, name = len(plain) if size is None else size, b"x.npy"
    fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, zlib.crc32(plain), len(stream), size, len(name), 0)
    local = b"PK\3\4" + fields + name + stream
    entry = b"PK\1\2" + b"\x14\0" + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    path.write_bytes(local + entry + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0))


def read(model, path):
    out = path.with_suffix(".out.npy")
    done = linnet("run", model, "--input", f"x={path}", "--output", f"y={out}")
    return done, np.load(out) if done.returncode == 0 else None


def contents(rng, kind, n):
    return {"noise": lambda: rng.integers(0, 256, n), "few": lambda: rng.integers(0, 3, n), "zeros": lambda: np.zeros(n),
            "runs": lambda: np.repeat(rng.integers(0, 256, n // 50 + 1), 50)[:n],
            "far": lambda: np.tile(rng.integers(0, 256, 32768), n // 32768 + 1)[:n],
            "text": lambda: np.frombuffer((b"the quick brown fox " * (n // 20 + 1))[:n], np.uint8)}[kind]().astype(np.uint8)


STREAMS = [(level, zlib.Z_DEFAULT_STRATEGY) for level in (0, 1, 6, 9)] + [(6, zlib.Z_FIXED), (6, zlib.Z_HUFFMAN_ONLY), (6, zlib.Z_RLE)]


@pytest.mark.parametrize("kind", ["noise", "few", "zeros", "runs", "far", "text"])
@pytest.mark.parametrize("level, strategy", STREAMS)
def test_streams_of_zlib(model, tmp_path, kind, level, strategy):
    """Stored, fixed and given codes, long words, short and far distances, several blocks."""
    rng = np.random.default_rng(level)
    for n in (1, 300, 200_000):
        x = contents(rng, kind, n)
        packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
        plain = npy(x)
        stream = packer.compress(plain[:n // 2]) + packer.flush(zlib.Z_FULL_FLUSH) + packer.compress(plain[n // 2:]) + packer.flush()
        archive(tmp_path / "x.npz", plain, stream)
        done, y = read(model, tmp_path / "x.npz")
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(y, x)


def test_what_numpy_and_zipfile_write(model, tmp_path):
    x = np.arange(100_000).astype(np.uint8)
    np.savez_compressed(tmp_path / "a.npz", x=x)
    np.savez_compressed(tmp_path / "b.npz", x=x, other=x[:3])
    with zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("x.npy", npy(x))
    for name in ("a.npz", "b.npz:x", "c.npz"):
        done = linnet("run", model, "--input", f"x={tmp_path / name}", "--output", f"y={tmp_path}/y.npy")
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x)
    with zipfile.ZipFile(tmp_path / "d.npz", "w", zipfile.ZIP_BZIP2) as z:
        z.writestr("x.npy", npy(x))
    done, _ = read(model, tmp_path / "d.npz")
    assert done.returncode != 0 and "method 12" in done.stderr


def test_calibration_reads_them(tmp_path):
    onnx.save(onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> m (float[n, 4] x) => (float[n, 2] y)
        <float[4, 2] w = {1, -1, 0.5, 2, 3, -2, 1, 1}> { y = MatMul (x, w) }"""), tmp_path / "m.onnx")
    for k in range(3):
        np.savez_compressed(tmp_path / f"{k}.npz", x=np.random.default_rng(k).standard_normal((8, 4)).astype(np.float32))
    recorded = [word for k in range(3) for word in ("--calibrate", tmp_path / f"{k}.npz")]
    done = linnet("convert", tmp_path / "m.onnx", "--int8", "static", *recorded)
    assert done.returncode == 0, done.stderr


def bits(*fields):
    """(value, width) each, lowest bit first, as bytes."""
    value = at = 0
    for number, width in fields:
        value |= number << at
        at += width
    return value.to_bytes(at // 8 + 1, "little")


@pytest.mark.parametrize("what, stream", [
    ("nothing", b""),
    ("a block of the fourth kind", bits((1, 1), (3, 2))),
    ("a stored block whose length is damaged", bits((1, 1), (0, 2), (0, 5), (5, 16), (5, 16)) + b"abcde"),
    ("a stored block that ends early", bits((1, 1), (0, 2), (0, 5), (500, 16), (65535 - 500, 16))),
    ("a distance before the beginning", bits((1, 1), (1, 2), (0b0000001 << 0, 7), (0, 5))),
    ("more literals than there are", bits((1, 1), (2, 2), (30, 5), (0, 5), (0, 4))),
    ("no words for lengths", bits((1, 1), (2, 2), (0, 5), (0, 5), (0, 4), (0, 12), (0, 40))),
    ("too many short words", bits((1, 1), (2, 2), (0, 5), (0, 5), (0, 4), (1, 3), (1, 3), (1, 3), (1, 3))),
])
def test_streams_that_nothing_writes(model, tmp_path, what, stream):
    archive(tmp_path / "x.npz", npy(np.zeros(64, np.uint8)), stream)
    done, _ = read(model, tmp_path / "x.npz")
    assert done.returncode == FILE and "compressed bytes are damaged" in done.stderr, (what, done.stderr)


def test_damaged_streams(model, tmp_path):
    """Whatever is changed ends in an error, or in what zlib makes of it too."""
    rng = np.random.default_rng(2)
    plain = npy(contents(rng, "text", 4000) ^ (rng.random(4000) < 0.1))
    whole = zlib.compress(plain, wbits=-15)
    for turn in range(300 if LONG else 60):
        stream = bytearray(whole)
        if turn % 3:
            for at in rng.integers(0, len(stream), 1 + turn % 4):
                stream[at] ^= 1 << rng.integers(8)
        else:
            del stream[rng.integers(len(stream)):]
        archive(tmp_path / "x.npz", plain, bytes(stream))
        done, y = read(model, tmp_path / "x.npz")
        assert done.returncode in (0, FILE), done.stderr
        if done.returncode == 0:
            assert zlib.decompressobj(-15).decompress(bytes(stream))[-4000:] == y.tobytes()


@pytest.mark.parametrize("size", [0, 63, 1000, 2**31, 2**32 - 2])
def test_a_size_that_is_not_the_streams(model, tmp_path, size):
    """None of them takes the memory that the archive claims."""
    plain = npy(np.zeros(64, np.uint8))
    archive(tmp_path / "x.npz", plain, zlib.compress(plain, wbits=-15), size)
    done, _ = read(model, tmp_path / "x.npz")
    assert done.returncode == FILE and "npz: " in done.stderr
