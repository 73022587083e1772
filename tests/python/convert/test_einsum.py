"""Einsum that is a product of matrices becomes one, in which constants are packed and attention is recognized."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from builder import Builder
from harness import linnet, reference, write_case

SIZES = dict(zip("abcdhijklmn", (2, 3, 12, 16, 4, 7, 9, 10, 5, 6, 8)))


def operators(folder, model, feeds, want):
    case = write_case(folder, model, feeds, want)
    done = linnet("convert", case / "model.onnx", "-o", case / "model.lnt")
    assert done.returncode == 0, done.stderr
    done = linnet("verify", case / "model.onnx", "--max-rel", "1e-4")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(linnet("info", case / "model.lnt", "--json").stdout)["operators"]


def extents(term):
    leading, letters = ([3, 2], term[3:]) if term.startswith("...") else ([], term)
    return leading + [SIZES[c] for c in letters]


def made_of(folder, equation, weights):
    """Operators of one Einsum, which has to compute what NumPy does."""
    terms, out = equation.replace(" ", "").split("->")
    a, b = terms.split(",")
    build = Builder(3)
    second = build.rng.standard_normal(extents(b)).astype(np.float32)
    feeds = {"a": build.rng.standard_normal(extents(a)).astype(np.float32)}
    build.input("a", TensorProto.FLOAT, extents(a))
    if weights:
        name = build.constant(second)
    else:
        name, feeds["b"] = build.input("b", TensorProto.FLOAT, extents(b)), second
    want = np.einsum(equation, feeds["a"], second, optimize=True)
    build.output(build.op("Einsum", "a", name, equation=equation), "y", want.shape)
    return operators(folder, build.model("einsum"), feeds, [want])


@pytest.mark.parametrize("equation", [
    "ij,jk->ik", "ij, kj -> ik", "bij,bjk->bik", "bij,bkj->bik", "abij,abjk->abik", "...ij,...kj->...ik", "bij,jk->bik",
    "bij,kj->bik", "jk,ij->ik", "bkj,bij->bik"])
def test_matrices(tmp_path, equation):
    made = made_of(tmp_path, equation, weights=False)
    assert "Einsum" not in made and made.get("MatMul", 0) + made.get("FusedMatMul", 0) == 1, made


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,kj->ik", "abi,ikl->abkl", "abkl,ikl->abi", "abkl,kli->abi", "ai,lik->akl",
                                      "abkl,lki->abi", "ai,ilk->akl"])
def test_weights(tmp_path, equation):
    made = made_of(tmp_path, equation, weights=True)
    assert "Einsum" not in made and "Transpose" not in made and made["MatMul"] == 1, made


@pytest.mark.parametrize("equation", [
    "bihd,bjhd->bhij", "ij,j->i", "bij,bij->bi", "ij,ij->ij", "i,j->ij", "bhmc,hkc->bhmk", "abij,bjk->abik", "ii,ik->ik", "ij,jk->k",
    "...ij,jk->...ik", "bji,bjk->bik", "abij,aijk->abk", "bij,bjk->ikb"])
def test_others_are_right(tmp_path, equation):
    made_of(tmp_path, equation, weights=False)
    made_of(tmp_path, equation, weights=True)


@pytest.mark.parametrize("equation", ["...ijl,...jlk->......ik", "......ij,jk->ik", "ijk,jkl->", "ij,jk->iik", "i..j,jk->ik"])
def test_bad_equations_are_told(tmp_path, equation):
    build = Builder(5)
    for name, term in zip("ab", equation.split("->")[0].split(",")):
        build.input(name, TensorProto.FLOAT, [2] * (3 * term.count("...") + sum(c.isalpha() for c in term)))
    build.output(build.op("Einsum", "a", "b", equation=equation), "y", [2])
    onnx.save(build.model("einsum"), tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode == 0 or "Einsum" in done.stderr, done.stderr


@pytest.mark.parametrize("scores, mix, axes", [
    ("bihd,bjhd->bhij", "bhij,bjhd->bihd", "bihd"), ("bhid,bhjd->bhij", "bhij,bhjd->bhid", "bhid"),
    ("bhjd,bhid->bhij", "bhjd,bhij->bhid", "bhid"), ("...ihd,...jhd->...hij", "...hij,...jhd->...ihd", "bihd")])
def test_attention(tmp_path, scores, mix, axes):
    b = Builder(4)
    sizes = [{"b": 2, "h": 4, "i": 20, "d": 16}[c] for c in axes]
    feeds = {n: b.rng.standard_normal(sizes).astype(np.float32) for n in "qkv"}
    for n in feeds:
        b.input(n, TensorProto.FLOAT, sizes)
    q, k = ("k", "q") if scores.startswith("bhjd") else ("q", "k")
    logits = b.op("Mul", b.op("Einsum", q, k, equation=scores), 0.25)
    weights = b.op("Softmax", logits, axis=-1)
    operands = ("v", weights) if mix.startswith("bhjd") else (weights, "v")
    b.output(b.op("Einsum", *operands, equation=mix), "y", sizes)
    model = b.model("attention")
    made = operators(tmp_path, model, feeds, reference(model, feeds))
    assert made.get("Attention") == 1 and "Einsum" not in made and "Softmax" not in made, made
