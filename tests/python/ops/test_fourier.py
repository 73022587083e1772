"""DFT and STFT of lengths with factors of every kind, several transforms at a time and the last ones alone: every level and
several threads against numpy."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness import linnet
from linnet_ctypes import check_every_level

LENGTHS = [1, 2, 4, 6, 8, 25, 60, 97, 128, 131, 512]


def check(tmp_path, op, x, inputs, want, close=None, **attributes):
    """inputs: constants behind the signal. close: of the largest magnitude."""
    names = [f"c{i}" if c is not None else "" for i, c in enumerate(inputs)]
    of_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([helper.make_node(op, ["x", *names], ["y"], **attributes)], "fourier",
                              [helper.make_tensor_value_info("x", of_type, x.shape)],
                              [helper.make_tensor_value_info("y", of_type, None)],
                              [numpy_helper.from_array(c, n) for c, n in zip(inputs, names) if n])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "f.onnx")
    done = linnet("convert", tmp_path / "f.onnx", "-o", tmp_path / "f.lnt")
    assert done.returncode == 0, done.stderr
    bound = close or (1e-12 if x.dtype == np.float64 else 1e-5)
    check_every_level(tmp_path / "f.lnt", x, want, rtol=0 if close else bound, atol=bound * np.abs(want).max())


def parts(z):
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("length", LENGTHS)
def test_dft(tmp_path, kind, length):
    x = np.random.default_rng(length).standard_normal((3, length, 5, 2)).astype(kind)
    z, axis = x[..., 0] + 1j * x[..., 1].astype(np.float64), np.array(1)
    check(tmp_path, "DFT", x, [None, axis], parts(np.fft.fft(z, axis=1)))
    check(tmp_path, "DFT", x, [None, axis], parts(np.fft.ifft(z, axis=1)), inverse=1)
    check(tmp_path, "DFT", x, [np.array(length + 3), axis], parts(np.fft.fft(z, length + 3, axis=1)))
    real = x[..., :1].copy()
    check(tmp_path, "DFT", real, [None, axis], parts(np.fft.rfft(real[..., 0], axis=1)), onesided=1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("length", LENGTHS[1:])
def test_back_from_one_side(tmp_path, kind, length):
    """Two signals at a time. Imaginary parts that no real signal has count for nothing."""
    x = np.random.default_rng(length).standard_normal((3, length // 2 + 1, 3, 2)).astype(kind)
    z = x[..., 0].astype(np.float64) + 1j * x[..., 1].astype(np.float64)
    want = np.fft.irfft(z, length, axis=1)[..., None]
    inputs, close = [np.array(length), np.array(1)], {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-13}[kind]
    check(tmp_path, "DFT", x, inputs, want, close, inverse=1, onesided=1)


@pytest.mark.parametrize("signals", [1, 2, 7, 8, 9, 17])
@pytest.mark.parametrize("length", [480, 512, 1000])
def test_floats_are_near_double_precision(tmp_path, length, signals):
    """Real and complex, both sides and one: to a millionth of the largest magnitude."""
    x = np.random.default_rng(length).standard_normal((signals, length, 2)).astype(np.float32)
    z, real = x[..., 0] + 1j * x[..., 1].astype(np.float64), x[..., :1].copy()
    check(tmp_path, "DFT", x, [None, np.array(1)], parts(np.fft.fft(z, axis=1)), 1e-6)
    check(tmp_path, "DFT", real, [None, np.array(1)], parts(np.fft.fft(z.real, axis=1)), 1e-6)
    check(tmp_path, "DFT", real, [None, np.array(1)], parts(np.fft.rfft(z.real, axis=1)), 1e-6, onesided=1)


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_stft(tmp_path, length):
    x, hop = np.random.default_rng(length).standard_normal((3, length + 17)).astype(np.float32), 4
    window = np.hanning(length).astype(np.float32)
    frames = np.stack([x[:, s:s + length] * window for s in range(0, 18, hop)], 1)
    check(tmp_path, "STFT", x[..., None], [np.array(hop), window, np.array(length)],
          parts(np.fft.rfft(frames, axis=-1)), onesided=1)
