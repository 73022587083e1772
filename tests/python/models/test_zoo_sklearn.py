"""Pipelines of scikit-learn, LightGBM and XGBoost as skl2onnx and onnxmltools export them (tests/zoo/from_sklearn.py) give
what predict and predict_proba give: labels equal, probabilities within 1e-5, regressions within 1e-5 of what they are. A few
stand in tests/data/sklearn; the others are exported where .deps/sklearn has the packages, and skipped where it has not."""

import json
import re
import subprocess

import numpy as np
import onnx
import pytest

from harness import LONG, ROOT, linnet, write_case

PYTHON = ROOT / ".deps/sklearn/bin/python"
SCRIPT = ROOT / "tests/zoo/from_sklearn.py"
OUT = ROOT / "build/zoo-sklearn"
KEPT = ROOT / "tests/data/sklearn"
NAMES = re.findall(r'^    "(\w+)": ', SCRIPT.read_text().partition("\nZOO = {")[2].partition("\n}")[0], re.M)
FEW = {"knn_names", "logistic_names_zipped", "mixed_columns", "svc_names", "xgboost_binary"}
WAYS = (("--opt", "none"), ("--opt", "all"), *((("--opt", "all", "--level", "scalar"), ("--opt", "all", "--threads", "2")) if LONG else ()))


def check(folder):
    classifies = (folder / "test_data_set_0" / "output_1.pb").exists()
    for way in WAYS:
        done = linnet("verify", folder / "model.onnx", "--rtol", 0 if classifies else "1e-5", "--atol", "1e-5", *way)
        assert done.returncode == 0, f"{way}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", sorted(FEW))
def test_kept(tmp_path, name):
    asked, *outputs = np.load(KEPT / f"{name}.npz").values()
    check(write_case(tmp_path, onnx.load(KEPT / f"{name}.onnx"), {"x": asked}, outputs))


def test_kept_ones_are_small():
    """Made by from_sklearn.py --flat --out tests/data/sklearn NAME ..."""
    assert {path.stem for path in KEPT.iterdir()} == FEW
    assert all(path.stat().st_size <= 16384 for path in KEPT.iterdir())


@pytest.fixture(scope="module")
def exported():
    """The folder of exports, made anew if the script is."""
    if not (ROOT / ".deps/sklearn/ready").exists():
        pytest.skip("no scikit-learn: make zoo-sklearn installs it")
    stamp = OUT / ".exported"
    if not stamp.exists() or stamp.stat().st_mtime < SCRIPT.stat().st_mtime:
        done = subprocess.run([PYTHON, SCRIPT, "--out", OUT], capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr[-2000:]
        stamp.touch()
    return OUT


@pytest.mark.parametrize("name", NAMES)
def test_gives_what_the_library_gives(exported, name):
    check(exported / name)


@pytest.mark.parametrize("name, classes", [
    ("svc_names", {"label": ["setosa", "versicolor", "virginica"]}),
    ("logistic_names_zipped", {"output_label": ["setosa", "versicolor", "virginica"],
                               "output_probability": ["setosa", "versicolor", "virginica"]}),
    ("knn_names", {"label": ["setosa", "versicolor", "virginica"]}),
    ("mixed_columns", {}),
])
def test_names_of_classes(tmp_path, name, classes):
    done = linnet("convert", KEPT / f"{name}.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode == 0, done.stderr
    assert ("outputs of text as numbers" in done.stdout) == ("label" in "".join(classes))
    assert ("maps as tensors" in done.stdout) == name.endswith("zipped")
    found = json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)["metadata"]
    assert {k.partition(".")[2]: json.loads(v) for k, v in found.items() if k.startswith("classes.")} == classes
