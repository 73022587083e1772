"""SVMClassifier and SVMRegressor against onnxruntime: kernels, votes, probabilities, types; what hostile models are told."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import check_against, linnet, write_case
from test_ml import ML, POSTS, WAYS, check, ml_model

KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
BOTH = {"label": TensorProto.INT64, "p": TensorProto.FLOAT}


def machine(classes, per_class, width, seed=1, probability=False, kernel="RBF", params=(0.3, 0.5, 3)):
    """Attributes of a classifier whose decisions come out near 0 as often as not."""
    rng = np.random.default_rng(seed)
    n, pairs = sum(per_class), classes * (classes - 1) // 2
    a = dict(kernel_type=kernel, kernel_params=list(params), vectors_per_class=per_class, rho=rng.normal(0, 0.2, pairs).tolist(),
             support_vectors=rng.normal(size=n * width).tolist(), coefficients=rng.normal(size=(classes - 1) * n).tolist(),
             classlabels_ints=[3, -4, 8, 0, 5, 6, 1][:classes])
    return a | ({"prob_a": rng.uniform(-3, -0.5, pairs).tolist(), "prob_b": rng.normal(0, 0.3, pairs).tolist()} if probability else {})


def points(rows, width, dtype=np.float32, seed=2):
    x = np.random.default_rng(seed).normal(0, 1.3, (rows, width))
    return (x * 3).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("per_class", [[4, 3], [3, 1, 5], [2, 3, 4, 1, 2, 3, 2]])
def test_decisions(tmp_path, kernel, per_class):
    for rows in (1, 17):
        check(tmp_path, "SVMClassifier", {"x": points(rows, 5)}, BOTH, 1, **machine(len(per_class), per_class, 5, kernel=kernel))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("per_class", [[4, 3], [3, 1, 5], [2, 3, 4, 1, 2, 3, 2]])
def test_probabilities(tmp_path, kernel, per_class):
    """onnxruntime couples floats, which may stop a step sooner or later than doubles: the seeds are such that none does."""
    a = machine(len(per_class), per_class, 5, kernel=kernel, probability=True)
    check(tmp_path, "SVMClassifier", {"x": points(31, 5)}, BOTH, 1, options=("--rtol", "1e-4", "--atol", "2e-6"), **a)


def coupled(r):
    """Probabilities of the classes, r[i, j] that of i among i and j, written down from LIBSVM's description."""
    n = len(r)
    q = -r.T * r
    q[np.diag_indices(n)] = (r**2).sum(0) - np.diag(r) ** 2
    p = np.full(n, 1 / n)
    for _ in range(max(100, n)):
        qp = q @ p
        whole = p @ qp
        if abs(qp - whole).max() < 0.005 / n:
            break
        for t in range(n):
            step = (whole - qp[t]) / q[t, t]
            p[t] += step
            whole = (whole + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            p, qp = p / (1 + step), (qp + step * q[t]) / (1 + step)
    return p


def test_rows_stop_by_themselves(tmp_path):
    """One row near certainty and one near even among others: each as if it were alone. Decisions are the features."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    x = np.zeros((9, 6), np.float32)
    x[1:] = np.random.default_rng(4).normal(0, 4, (8, 6))
    x[1] *= 10
    vectors, weights = np.zeros((12, 6)), np.zeros((3, 12))
    for pair, (i, j) in enumerate(pairs):  # a vector of class i for each pair, a linear kernel
        at = 3 * i + j - 1
        vectors[at, pair], weights[j - 1, at] = 1, 1
    a = dict(kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], vectors_per_class=[3] * 4, rho=[0.0] * 6, classlabels_ints=[0, 1, 2, 3],
             support_vectors=vectors.ravel().tolist(), coefficients=weights.ravel().tolist(), prob_a=[-1.0] * 6, prob_b=[0.0] * 6)
    want = np.zeros((9, 4))
    votes = np.zeros((9, 4), int)
    for row in range(9):
        r = np.zeros((4, 4))
        for pair, (i, j) in enumerate(pairs):
            r[i, j] = np.clip(1 / (1 + np.exp(-np.float64(x[row, pair]))), 1e-7, 1 - 1e-7)
            r[j, i] = 1 - r[i, j]
            votes[row, i if x[row, pair] > 0 else j] += 1
        want[row] = coupled(r)
    node = helper.make_node("SVMClassifier", ["x"], ["label", "p"], domain=ML, **a)
    check_against(tmp_path, ml_model(node, {"x": x}, BOTH, 1), {"x": x}, [votes.argmax(1), want.astype(np.float32)], "--rtol", "1e-6",
                  "--atol", "1e-7", ways=WAYS)


@pytest.mark.parametrize("classes, probability, post", [(classes, probability, post) for classes, probability in
                                                        ((2, True), (3, False), (3, True)) for post in POSTS[:4 + probability]])
def test_post_transforms(tmp_path, classes, probability, post):
    loose = ("--rtol", "2e-3", "--atol", "5e-4")  # onnxruntime subtracts floats that are nearly the same for PROBIT
    check(tmp_path, "SVMClassifier", {"x": points(13, 4)}, BOTH, 1,
          options=loose if post == "PROBIT" else ("--rtol", "1e-4", "--atol", "2e-6"), post_transform=post,
          **machine(classes, [3, 4, 2][:classes], 4, probability=probability))


@pytest.mark.parametrize("post", POSTS[:4])
def test_scores_of_two(tmp_path, post):
    check(tmp_path, "SVMClassifier", {"x": points(13, 4)}, BOTH, 1, post_transform=post, **machine(2, [3, 4], 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_types(tmp_path, dtype):
    check(tmp_path, "SVMClassifier", {"x": points(9, 4, dtype)}, BOTH, 1, options=("--rtol", "1e-4", "--atol", "2e-5"),
          **machine(3, [3, 4, 2], 4, probability=True, params=(0.05, 0.5, 3)))


def test_weights_of_features(tmp_path):
    """Without support vectors; onnxruntime has a rule of its own where there are two classes."""
    rng = np.random.default_rng(5)
    check(tmp_path, "SVMClassifier", {"x": points(9, 4)}, BOTH, 1, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], rho=[0.25],
          coefficients=rng.normal(size=12).tolist(), classlabels_ints=[4, 5, 9])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressor(tmp_path, kernel, one_class):
    rng = np.random.default_rng(6)
    for rows in (1, 20):
        check(tmp_path, "SVMRegressor", {"x": points(rows, 3)}, {"y": TensorProto.FLOAT}, 1, kernel_type=kernel,
              kernel_params=[0.4, 0.5, 2.0], n_supports=7, support_vectors=rng.normal(size=21).tolist(), rho=[0.1],
              coefficients=rng.normal(size=7).tolist(), one_class=one_class)


def test_regressor_of_features(tmp_path):
    check(tmp_path, "SVMRegressor", {"x": points(8, 3)}, {"y": TensorProto.FLOAT}, 1, kernel_type="LINEAR",
          kernel_params=[0.0, 0.0, 0.0], n_supports=0, coefficients=[0.5, -1.0, 2.0], rho=[0.1])


def regressor(vectors, gamma, x, want, folder):
    a = dict(kernel_type="RBF", kernel_params=[gamma, 0.0, 3.0], n_supports=len(vectors), rho=[0.0],
             support_vectors=np.ravel(vectors).tolist(), coefficients=[1.0] * len(vectors))
    node = helper.make_node("SVMRegressor", ["x"], ["y"], domain=ML, **a)
    check_against(folder, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}, 1), {"x": x}, [want], "--rtol", "1e-6", "--atol", 0, ways=WAYS)


def test_far_from_the_origin(tmp_path):
    """Distances of 1 at 100,000: squares of floats would cancel."""
    vectors = np.array([[1e5, -1e5], [1e5 + 1, -1e5]])
    x = np.array([[1e5, -1e5 - 1], [1e5 + 0.5, -1e5]], np.float32)
    want = np.exp(-0.5 * ((x[:, None].astype(np.float64) - vectors) ** 2).sum(2)).sum(1, keepdims=True)
    regressor(vectors, 0.5, x, want.astype(np.float32), tmp_path)


def test_what_is_no_number(tmp_path):
    """Infinitely far is far; NaN is NaN; no rows give none."""
    vectors = np.array([[1.0, 0.0], [0.0, -2.0]])
    x = np.array([[np.inf, 0], [0, -np.inf], [np.nan, 1], [1, 0]], np.float32)
    want = np.array([[0], [0], [np.nan], [1 + np.exp(-2.5)]], np.float32)
    regressor(vectors, 0.5, x, want, tmp_path)
    regressor(vectors, 0.5, x[:0], want[:0], tmp_path)
    a = machine(3, [2, 2, 2], 2, probability=True)
    node = helper.make_node("SVMClassifier", ["x"], ["label", "p"], domain=ML, **a)
    check_against(tmp_path, ml_model(node, {"x": x[:0]}, BOTH, 1), {"x": x[:0]},
                  [np.zeros(0, np.int64), np.zeros((0, 3), np.float32)], ways=WAYS)


@pytest.mark.parametrize("change, word", [
    ({"support_vectors": [1.0] * 7}, "support_vectors"),
    ({"vectors_per_class": [4, -1, 5]}, "vectors_per_class"),
    ({"vectors_per_class": [4, 4]}, "vectors_per_class"),
    ({"vectors_per_class": [2**62, 2**62, 2**62]}, "vectors_per_class"),
    ({"coefficients": [1.0] * 5}, "coefficients"),
    ({"rho": [0.5]}, "rho"),
    ({"prob_a": [0.5]}, "prob_a"),
    ({"kernel_params": [0.5]}, "kernel_params"),
    ({"kernel_type": "ROUND"}, "kernel_type"),
    ({"classlabels_ints": [5]}, "vectors_per_class"),
])
def test_hostile_machines(tmp_path, change, word):
    x = points(2, 4)
    node = helper.make_node("SVMClassifier", ["x"], ["label", "p"], domain=ML, **{**machine(3, [3, 4, 2], 4, probability=True), **change})
    case = write_case(tmp_path, ml_model(node, {"x": x}, BOTH, 1), {"x": x}, [])
    done = linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode not in (0, -6, -11) and word in done.stderr, done.stderr
    assert not (tmp_path / "m.lnt").exists()
