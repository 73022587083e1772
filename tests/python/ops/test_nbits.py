"""MatMulNBits against the same weights taken apart by numpy: widths, blocks, zero points packed and not, few rows and many,
every level."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import linnet, write_case
from linnet_ctypes import check_every_level
from small_int8 import model_of

RNG = np.random.default_rng(5)


def take_apart(packed, bits, columns):
    """[..., bytes] as [..., columns], lowest bits first."""
    per_byte = 8 // bits
    parts = [packed >> (i * bits) & (2 ** bits - 1) for i in range(per_byte)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)[..., :columns].astype(np.int32)


def product(bits, block, k, n, zeros):
    """Constants of the operator, and its weights as [k, n] of float."""
    blocks = -(-k // block)
    packed = RNG.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = RNG.uniform(0.01, 0.1, n * blocks).astype(np.float32)
    constants, zero = {"w": packed, "s": scales}, np.full((n, blocks, 1), 2 ** (bits - 1))
    if zeros == "packed":
        constants["z"] = RNG.integers(0, 256, n * -(-blocks * bits // 8)).astype(np.uint8)
        zero = take_apart(constants["z"].reshape(n, -1), bits, blocks)[..., None]
    if zeros == "floats":
        constants["z"] = RNG.uniform(0, 2 ** bits, n * blocks).astype(np.float32)
        zero = constants["z"].reshape(n, blocks, 1)
    weights = (take_apart(packed, bits, block) - zero) * scales.reshape(n, blocks, 1)
    return constants, weights.reshape(n, -1)[:, :k].T


def as_int8(x):
    """What rows stand for once each 32 of their numbers are multiples of a 127th of the largest."""
    rows, k = x.shape
    groups = np.pad(x, ((0, 0), (0, -k % 32))).reshape(rows, -1, 32)
    largest = np.abs(groups).max(2, keepdims=True)
    inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    return (np.round(groups * inverse) * (largest / 127.0)).reshape(rows, -1)[:, :k]


def check(folder, x, constants, want, **attributes):
    model = model_of([helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **attributes)],
                     [("x", TensorProto.FLOAT, x.shape)], [("y", TensorProto.FLOAT, None)],
                     {k: v for k, v in constants.items() if k}, microsoft=True)
    case = write_case(folder, model, {"x": x}, [want])
    assert linnet("convert", case / "model.onnx", "-o", folder / "m.lnt").returncode == 0
    check_every_level(folder / "m.lnt", x, want, rtol=1e-4, atol=1e-4 * float(np.nanmax(np.abs(want), initial=1)))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("rows", [1, 4, 5, 27])
@pytest.mark.parametrize("zeros", [None, "packed", "floats"])
def test_against_numpy(tmp_path, bits, block, rows, zeros):
    k, n = int(RNG.integers(1, 400)), int(RNG.integers(1, 50))
    constants, weights = product(bits, block, k, n, zeros)
    x = RNG.uniform(-1, 1, (rows, k)).astype(np.float32)
    check(tmp_path, x, constants, (x @ weights).astype(np.float32), K=k, N=n, bits=bits, block_size=block)


@pytest.mark.parametrize("rows", [8, 15, 16, 23])
@pytest.mark.parametrize("n", [16, 37])
def test_long_sums_with_bias(tmp_path, rows, n):
    """K in several parts, the bias once."""
    k, block = 1700, 64
    constants, weights = product(4, block, k, n, "packed")
    constants |= {"": None, "b": RNG.uniform(-90, 90, n).astype(np.float32)}
    x = RNG.uniform(-1, 1, (rows, k)).astype(np.float32)
    check(tmp_path, x, constants, (x @ weights + constants["b"]).astype(np.float32), K=k, N=n, bits=4, block_size=block)


@pytest.mark.parametrize("rows", [1, 9])
def test_permuted_blocks_and_bias(tmp_path, rows):
    k, n, block = 96, 20, 32
    constants, _ = product(4, block, k, n, "packed")
    groups = RNG.integers(0, k // block, k).astype(np.int32)
    bias = RNG.uniform(-1, 1, n).astype(np.float32)
    numbers = take_apart(constants["w"], 4, block).reshape(n, k)
    zero = take_apart(constants["z"].reshape(n, -1), 4, k // block)[:, groups]
    weights = (numbers - zero) * constants["s"].reshape(n, -1)[:, groups]
    x = RNG.uniform(-1, 1, (rows, k)).astype(np.float32)
    want = (x @ weights.T + bias).astype(np.float32)
    check(tmp_path, x, constants | {"g": groups, "b": bias}, want, K=k, N=n, bits=4, block_size=block)
    del constants["z"]
    plain = (numbers - 8) * np.repeat(constants["s"].reshape(n, -1), block, 1)
    check(tmp_path, x, constants, (x @ plain.T).astype(np.float32), K=k, N=n, bits=4, block_size=block)


@pytest.mark.parametrize("block", [32, 64, 128, 256])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("zeros", [None, "packed"])
@pytest.mark.parametrize("k", [33, 256, 517, 1000])
def test_activations_of_8_bits(tmp_path, block, rows, zeros, k):
    """accuracy_level 4: sums of the rounded rows, exact over 32 numbers."""
    n, block = int(RNG.integers(16, 50)), min(block, 32 if k < 64 else 256)
    constants, weights = product(4, block, k, n, zeros)
    constants |= {"": None, "b": RNG.uniform(-1, 1, n).astype(np.float32)} if zeros else {}
    x = RNG.standard_normal((rows, k)).astype(np.float32)
    x[0, :32] = 0
    want = as_int8(x) @ weights.astype(np.float64) + (constants["b"] if zeros else 0)
    check(tmp_path, x, constants, want.astype(np.float32), K=k, N=n, bits=4, block_size=block, accuracy_level=4)


@pytest.mark.parametrize("bits, block", [(4, 16), (8, 16), (8, 32), (8, 128)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("zeros", [None, "packed"])
@pytest.mark.parametrize("k, n", [(16, 64), (240, 79), (517, 66), (1000, 19)])
def test_rows_that_are_int8(tmp_path, bits, block, rows, zeros, k, n):
    """Rows whose every 16 numbers are whole ones up to 127 are the same rounded and not: levels may take either."""
    constants, weights = product(bits, block, k, n, zeros)
    constants |= {"": None, "b": RNG.uniform(-1, 1, n).astype(np.float32)} if zeros else {}
    x = RNG.integers(-127, 128, (rows, k)).astype(np.float32)
    x[:, ::16] = 127
    want = x @ weights + (constants["b"] if zeros else 0)
    check(tmp_path, x, constants, want.astype(np.float32), K=k, N=n, bits=bits, block_size=block, accuracy_level=4)


@pytest.mark.parametrize("bits, block, zeros, n", [(2, 32, None, 70), (4, 32, "floats", 70), (4, 32, None, 15), (8, 16, "packed", 15)])
@pytest.mark.parametrize("rows", [1, 5])
def test_what_stays_float(tmp_path, bits, block, zeros, n, rows):
    constants, weights = product(bits, block, 200, n, zeros)
    x = RNG.standard_normal((rows, 200)).astype(np.float32)
    check(tmp_path, x, constants, (x @ weights).astype(np.float32), K=200, N=n, bits=bits, block_size=block, accuracy_level=4)


def test_numbers_that_are_none(tmp_path):
    """A row that holds one is NaN, the others are what they were."""
    constants, weights = product(4, 32, 100, 20, "packed")
    x = RNG.standard_normal((6, 100)).astype(np.float32)
    x[1, 50], x[4, 99] = np.inf, np.nan
    want = (as_int8(np.nan_to_num(x, nan=0, posinf=0)) @ weights.astype(np.float64)).astype(np.float32)
    want[[1, 4]] = np.nan
    check(tmp_path, x, constants, want, K=100, N=20, bits=4, block_size=32, accuracy_level=4)
