"""What a conversion may take: memory in proportion to its input, and never more than it is allowed."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

from harness import LINNET
from test_bad_input import RESOURCE, SANITIZED, USAGE, constant, floats, linnet, model, node, refused

MB = 1 << 20
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(done.returncode)
"""


def peak(tmp_path, data):
    """Bytes that the converter has had at most; its parent is a small process, as a child starts with its size."""
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    done = subprocess.run([sys.executable, "-c", PEAK, LINNET, "convert", path, "-o", tmp_path / "m.lnt"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


# ---- a family: a model of size n ----

def chain(n):
    """Alternating, so that nothing is the same or undoes the other."""
    nodes = [helper.make_node(("Sin", "Exp")[i % 2], [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    return model(nodes, [floats("v0", 4)], [floats(f"v{n}", 4)])


def constants(n):
    nodes = [helper.make_node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(n)]
    weights = [constant(f"w{i}", np.full(4, i, np.float32)) for i in range(n)]
    return model(nodes, [floats("v0", 4)], [floats(f"v{n}", 4)], weights)


def weights(n):
    return model([node("Add", "x w", "y")], [floats("x", n)], [floats("y", n)],
                 [constant("w", np.arange(n, dtype=np.float32))])


def functions(n):
    """As many functions, each called once."""
    opsets = [helper.make_opsetid("", 18)]
    made = [helper.make_function("own", f"F{i}", ["x"], ["y"], [helper.make_node("Sin", ["x"], ["y"])], opsets)
            for i in range(n)]
    nodes = [helper.make_node(f"F{i}", [f"v{i}"], [f"v{i + 1}"], domain="own") for i in range(n)]
    graph = helper.make_graph(nodes, "g", [floats("v0", 4)], [floats(f"v{n}", 4)])
    return helper.make_model(graph, functions=made, opset_imports=[*opsets, helper.make_opsetid("own", 1)],
                             ir_version=8).SerializeToString()


def groups(n):
    return model([node("ConvTranspose", "x w", "y", group=n)], [floats("x", 1, n, 4, 4)], [floats("y", 1, n, 6, 6)],
                 [constant("w", np.ones((n, 1, 3, 3), np.float32))])


def attributes(n):
    """A list of so many numbers, as a constant."""
    return model([node("Constant", "", "c", value_floats=[float(i) for i in range(n)]), node("Add", "x c", "y")],
                 [floats("x", n)], [floats("y", n)])


def concat(n):
    return model([node("Concat", " ".join(["x"] * n), "y", axis=0)], [floats("x", 1)], [floats("y", n)])


# The smallest size, and the bytes of peak that one more node, element, ... may cost: a quarter more than it does.
FAMILIES = {chain: (2000, 7500), constants: (2000, 9500), weights: (1 << 20, 40), functions: (1000, 8000),
            groups: (1 << 14, 1750), attributes: (1 << 18, 110), concat: (2000, 500)}


@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps what is freed")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_memory_grows_with_the_model(tmp_path, family):
    n, most = FAMILIES[family]
    peaks = [peak(tmp_path, family(size)) for size in (n, 2 * n, 4 * n)]
    slopes = [(peaks[1] - peaks[0]) / n, (peaks[2] - peaks[1]) / (2 * n)]
    assert max(slopes) < most, f"bytes each: {slopes}, of {peaks}"


# ---- --memory-limit ----

@pytest.mark.parametrize("limit, code", [("20M", RESOURCE), ("20480K", RESOURCE), ("10M", RESOURCE), ("1000", RESOURCE), ("1G", 0)])
def test_a_conversion_keeps_to_its_limit(tmp_path, limit, code):
    path = tmp_path / "m.onnx"
    path.write_bytes(weights(2 * MB))
    done = linnet("convert", path, "-o", tmp_path / "m.lnt", "--memory-limit", limit)
    assert (tmp_path / "m.lnt").exists() == (code == 0)
    if code:
        refused(done, code, ["--memory-limit allows"])
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("limit", ["0", "-1", "1X", "1KK", "K", "", "17179869184G", "99999999999999999999"])
def test_limits_that_are_none(tmp_path, limit):
    refused(linnet("convert", "m.onnx", "-o", tmp_path / "m.lnt", "--memory-limit", limit), USAGE, ["BYTES[K|M|G]"])
