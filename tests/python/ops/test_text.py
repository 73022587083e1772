"""Operators on words against onnxruntime: TfIdfVectorizer of integers."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness import check_against_reference, linnet

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", "3"))
TYPES = {np.int32: TensorProto.INT32, np.int64: TensorProto.INT64}
POOL = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
        "weights": [0.5, 2, 3, 1.5, 4, 0.25, 7]}


def tfidf_model(x, **attributes):
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TYPES[x.dtype.type], [None] * x.ndim)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_tfidf(tmp_path, mode, dtype):
    x = np.random.default_rng(3).integers(2, 9, (5, 40)).astype(dtype)
    for i, (least, most, skip, x) in enumerate([(1, 2, 0, x), (1, 2, 5, x), (2, 2, 100, x), (1, 1, 3, x[0])]):
        model = tfidf_model(x, mode=mode, min_gram_length=least, max_gram_length=most, max_skip_count=skip, **POOL)
        check_against_reference(tmp_path / str(i), model, {"x": x}, ways=WAYS)


@pytest.mark.parametrize("changed, told", [
    ({"ngram_counts": [0, 5]}, "do not cut the pool"), ({"ngram_counts": [0, 11]}, "do not cut the pool"),
    ({"ngram_indexes": [0, 1, 2, 3, 4, 5]}, "as many ngram_indexes"), ({"ngram_indexes": [-1] * 7}, "must name columns"),
    ({"weights": [1.0]}, "as many ngram_indexes and weights"), ({"mode": "DF"}, "mode must be"),
    ({"min_gram_length": 0}, "n-grams of 0 to 2"), ({"max_gram_length": 0}, "n-grams of 1 to 0")])
def test_bad_pool(tmp_path, changed, told):
    attributes = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, **POOL, **changed}
    path = tmp_path / "bad.onnx"
    onnx.save(tfidf_model(np.zeros(3, np.int64), **attributes), path)
    done = linnet("run", path, "--input", "x=[1, 2, 3]")
    assert done.returncode > 0 and told in done.stdout + done.stderr
