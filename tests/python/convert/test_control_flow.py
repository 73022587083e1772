"""If, Loop and Scan against onnxruntime: outer names, nesting, growing values, empty loops, slices on any axis."""

import numpy as np
import onnx.parser
import pytest

from harness import check_against_reference

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", "2"))
HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def check(tmp_path, text, inputs):
    check_against_reference(tmp_path, onnx.parser.parse_model(HEAD + text), inputs, ways=WAYS)


@pytest.mark.parametrize("flag", [True, False])
def test_if_reads_outer_values_and_passes_them_through(tmp_path, flag):
    text = """
    f (bool c, float[N] x) => (float[N] y, float[M] z) {
        two = Constant <value = float {2.0}> ()
        y, z = If (c) <
            then_branch = t () => (float[N] a, float[M] b) { a = Mul (x, two)  b = Identity (x) },
            else_branch = e () => (float[N] a2, float[M] b2) { a2 = Identity (x)  b2 = Concat <axis = 0> (x, x) }
        >
    }"""
    check(tmp_path, text, {"c": np.array(flag), "x": np.arange(5, dtype=np.float32)})


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_nested_if_on_a_data_dependent_condition(tmp_path, rate):
    text = """
    f (int64 rate, float[N] x) => (float[N] y) {
        r8 = Constant <value = int64 {8000}> ()
        r16 = Constant <value = int64 {16000}> ()
        zero = Constant <value = float {0.0}> ()
        total = ReduceSum <keepdims = 0> (x)
        positive = Greater (total, zero)
        is8 = Equal (rate, r8)
        y = If (is8) <
            then_branch = t () => (float[N] a) { a = Neg (x) },
            else_branch = e () => (float[N] b) {
                is16 = Equal (rate, r16)
                b = If (is16) <
                    then_branch = t2 () => (float[N] c) { c = If (positive) <
                        then_branch = t3 () => (float[N] d) { d = Exp (x) },
                        else_branch = e3 () => (float[N] d2) { d2 = Abs (x) }
                    > },
                    else_branch = e2 () => (float[N] c2) { c2 = Add (x, x) }
                >
            }
        >
    }"""
    for x in ([1.0, -2.0, 3.0], [-1.0, -2.0, 0.5]):
        check(tmp_path, text, {"rate": np.array(rate, np.int64), "x": np.array(x, np.float32)})


LOOP = """
    f (int64 n, bool go, float[2] x) => (float[2] last, float[K, 2] all, int64[K] turns) {
        limit = Constant <value = float {50.0}> ()
        last, all, turns = Loop (n, go, x) <
            body = b (int64 i, bool c, float[2] v) => (bool c2, float[2] v2, float[2] s, int64 j) {
                w = Add (v, x)
                v2 = Add (w, v)
                s = Mul (v, x)
                j = Identity (i)
                m = ReduceMax <keepdims = 0> (v2)
                c2 = Less (m, limit)
            }
        >
    }"""


@pytest.mark.parametrize("n,go", [(0, True), (3, True), (100, True), (5, False)])
def test_loop_counts_stops_and_stacks(tmp_path, n, go):
    check(tmp_path, LOOP, {"n": np.array(n, np.int64), "go": np.array(go), "x": np.array([1, 2], np.float32)})


@pytest.mark.parametrize("n", [0, 1, 4])
def test_loop_with_growing_state(tmp_path, n):
    text = """
    f (int64 n, float[1] x) => (float[G] grown, float[H] swapped) {
        yes = Constant <value = bool {1}> ()
        two = Constant <value = float {2.0}> ()
        y = Mul (x, two)
        grown, a, swapped = Loop (n, yes, x, x, y) <
            body = b (int64 i, bool c, float[G] g, float[1] p, float[1] q)
                => (bool c2, float[G2] g2, float[1] q2, float[1] p2) {
                c2 = Identity (c)
                d = Mul (p, two)
                g2 = Concat <axis = 0> (g, d)
                q2 = Identity (q)
                p2 = Identity (p)
            }
        >
    }"""
    check(tmp_path, text, {"n": np.array(n, np.int64), "x": np.array([3], np.float32)})


def test_loop_in_loop_with_if(tmp_path):
    text = """
    f (int64 n, float[3] x) => (float[3] y) {
        yes = Constant <value = bool {1}> ()
        one = Constant <value = float {1.0}> ()
        y = Loop (n, yes, x) <
            body = outer (int64 i, bool c, float[3] v) => (bool c2, float[3] v2) {
                c2 = Identity (c)
                v2 = Loop (i, yes, v) <
                    body = inner (int64 j, bool d, float[3] u) => (bool d2, float[3] u2) {
                        d2 = Identity (d)
                        odd = Equal (i, j)
                        u2 = If (odd) <
                            then_branch = t () => (float[3] a) { a = Sub (u, x) },
                            else_branch = e () => (float[3] b) { b = Add (u, one) }
                        >
                    }
                >
            }
        >
    }"""
    check(tmp_path, text, {"n": np.array(5, np.int64), "x": np.array([1, 2, 3], np.float32)})


@pytest.mark.parametrize("axis,out_axis,directions", [(0, 0, (0, 0)), (1, 1, (1, 0)), (1, 0, (0, 1)), (0, -1, (1, 1))])
def test_scan(tmp_path, axis, out_axis, directions):
    text = f"""
    f (float[3] s, float[3, 3] x) => (float[3] last, float[3, 3] y) {{
        last, y = Scan (s, x) <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_output_axes = [{out_axis}],
            scan_input_directions = [{directions[0]}], scan_output_directions = [{directions[1]}],
            body = b (float[3] state, float[3] slice) => (float[3] next, float[3] out) {{
                next = Add (state, slice)
                out = Mul (next, slice)
            }}
        >
    }}"""
    x = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
    check(tmp_path, text, {"s": np.array([1, 2, 3], np.float32), "x": x})


def test_shapes_from_data_inside_and_after_a_loop(tmp_path):
    text = """
    f (int64[3] lengths) => (int64[T] y) {
        yes = Constant <value = bool {1}> ()
        zero = Constant <value = int64 {0}> ()
        one = Constant <value = int64 {1}> ()
        axes = Constant <value = int64[1] {0}> ()
        empty = Constant <value = int64[1] {-7}> ()
        n = Size (lengths)
        y = Loop (n, yes, empty) <
            body = b (int64 i, bool c, int64[T] v) => (bool c2, int64[T2] v2) {
                c2 = Identity (c)
                len = Gather <axis = 0> (lengths, i)
                r = Range (zero, len, one)
                v2 = Concat <axis = 0> (v, r)
            }
        >
    }"""
    check(tmp_path, text, {"lengths": np.array([2, 0, 4], np.int64)})
