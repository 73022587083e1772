"""ai.onnx.ml on numbers against onnxruntime: tree ensembles in every mode, form and type, linear models, tables, features;
what hostile models are told."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against, check_against_reference, linnet, reference, write_case
from linnet_ctypes import check_every_level

ML = "ai.onnx.ml"
WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", "3"), ("--opt", "all", "--level", "scalar"))
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
ONNX_TYPE = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.int64: TensorProto.INT64,
             np.int32: TensorProto.INT32}


def ml_model(node, inputs, outputs, version=3):
    """inputs: name -> array; outputs: name -> element type."""
    ins = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()]
    outs = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return helper.make_model(helper.make_graph([node], "g", ins, outs), opset_imports=opsets, ir_version=10)


def check(folder, op, inputs, outputs, version=3, options=("--rtol", "1e-5", "--atol", "1e-6"), **attributes):
    node = helper.make_node(op, list(inputs), list(outputs), domain=ML, **attributes)
    check_against_reference(folder, ml_model(node, inputs, outputs, version), inputs, *options, ways=WAYS)


def forest(seed, trees, depth, features, targets, modes, per_leaf, weight=lambda rng: rng.normal()):
    """Attributes of random trees whose thresholds are whole numbers and halves."""
    rng, a = np.random.default_rng(seed), {k: [] for k in (
        "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true".split())}
    leaves = []

    def add(tree, number, level):
        leaf = level == depth or (level > 1 and rng.random() < 0.2)
        at = len(a["treeids"])
        for key, value in zip(a, (tree, number[0], int(rng.integers(features)), "LEAF" if leaf else str(rng.choice(modes)),
                                  float(rng.integers(-4, 5)) / 2, 0, 0, int(rng.random() < 0.5))):
            a[key].append(value)
        if leaf:
            ids = rng.choice(targets, min(per_leaf, targets), replace=False)
            leaves.extend((tree, a["nodeids"][at], int(t), float(np.float32(weight(rng)))) for t in ids)
            return
        for side in ("truenodeids", "falsenodeids"):
            number[0] += 1
            a[side][at] = number[0]
            add(tree, number, level + 1)

    for tree in range(trees):
        add(tree, [0], 0)
    return {f"nodes_{k}": v for k, v in a.items()}, leaves


def with_weights(prefix, leaves):
    return {f"{prefix}_{k}": [leaf[i] for leaf in leaves] for i, k in enumerate(("treeids", "nodeids", "ids", "weights"))}


def features(rows, columns, dtype=np.float32, nan=True, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.integers(-6, 7, (rows, columns)) / (2 if np.dtype(dtype).kind == "f" else 1)
    x = x.astype(dtype)
    if nan and x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.15] = np.nan
    return x


@pytest.mark.parametrize("mode", [*MODES, "mixed"])
def test_modes(tmp_path, mode):
    """Values meet thresholds exactly; NaN goes where the node says."""
    nodes, leaves = forest(1, 9, 5, 4, 1, MODES if mode == "mixed" else [mode], 1)
    for rows in (1, 7, 8, 75):
        check(tmp_path, "TreeEnsembleRegressor", {"x": features(rows, 4)}, {"y": TensorProto.FLOAT}, n_targets=1, **nodes,
              **with_weights("target", leaves))


@pytest.mark.parametrize("dtype", ONNX_TYPE)
@pytest.mark.parametrize("targets, per_leaf", [(1, 1), (3, 3), (5, 1)])
def test_types_and_targets(tmp_path, dtype, targets, per_leaf):
    nodes, leaves = forest(2, 12, 4, 5, targets, MODES[:4], per_leaf)
    x = features(21, 5, dtype)
    if dtype is not np.float64:  # onnxruntime has floats and doubles, the latter in attributes of tensors only
        base = {"base_values": [0.5] * targets} if targets == per_leaf else {}  # it forgets it where no leaf spoke of a target
        node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=targets, **nodes,
                                **with_weights("target", leaves), **base)
        want = reference(ml_model(node, {"x": x.astype(np.float32)}, {"y": TensorProto.FLOAT}), {"x": x.astype(np.float32)})
        check_against(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}), {"x": x}, want, "--rtol", "1e-5",
                      "--atol", "1e-6", ways=WAYS)
        return
    weights = with_weights("target", leaves)
    tensors = {"nodes_values": nodes.pop("nodes_values"), "target_weights": weights.pop("target_weights")}
    check(tmp_path, "TreeEnsembleRegressor", {"x": features(21, 5, dtype)}, {"y": TensorProto.FLOAT}, n_targets=targets, **nodes,
          **weights, **{f"{k}_as_tensor": numpy_helper.from_array(np.array(v)) for k, v in tensors.items()})


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets, per_leaf", [(1, 1), (4, 2)])
def test_aggregates(tmp_path, how, targets, per_leaf):
    nodes, leaves = forest(3, 6, 4, 4, targets, MODES[:2], per_leaf)
    check(tmp_path, "TreeEnsembleRegressor", {"x": features(19, 4)}, {"y": TensorProto.FLOAT}, n_targets=targets,
          aggregate_function=how, **nodes, **with_weights("target", leaves))


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("base", [0, 3])
def test_classes(tmp_path, post, base):
    nodes, leaves = forest(4, 5, 3, 4, 3, MODES[:1], 3, lambda rng: rng.uniform(0.02, 0.15))
    loose = ("--rtol", "1e-3", "--atol", "2e-4")  # onnxruntime subtracts floats that are nearly the same for PROBIT
    check(tmp_path, "TreeEnsembleClassifier", {"x": features(30, 4)}, {"label": TensorProto.INT64, "p": TensorProto.FLOAT},
          options=loose if post == "PROBIT" else ("--rtol", "1e-5", "--atol", "1e-6"),
          classlabels_int64s=[7, -2, 5], post_transform=post, **nodes, **with_weights("class", leaves),
          **({"base_values": [0.01, 0.02, 0.03]} if base else {}))


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("signs", ["positive", "mixed"])
@pytest.mark.parametrize("base", [[], [0.25]])
def test_two_classes_of_one_weight(tmp_path, post, signs, base):
    """As skl2onnx writes forests, and LightGBM's and XGBoost's converters boosted trees."""
    nodes, leaves = forest(5, 6, 3, 4, 1, MODES[:1], 1, lambda rng: rng.uniform(0 if signs == "positive" else -0.2, 0.15))
    check(tmp_path, "TreeEnsembleClassifier", {"x": features(30, 4)}, {"label": TensorProto.INT64, "p": TensorProto.FLOAT},
          classlabels_int64s=[3, 4], post_transform=post, **nodes, **with_weights("class", leaves),
          **({"base_values": base} if base else {}))


def numbered(dtype):
    """TreeEnsemble of opset 5: a set of members, then thresholds, and a leaf that two nodes share."""
    def tensor(values, t=dtype):
        return numpy_helper.from_array(np.array(values, t))

    return dict(n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0, 3], nodes_featureids=[0, 1, 0, 1],
                nodes_modes=tensor([6, 0, 4, 6], np.uint8), nodes_splits=tensor([0, 0.5, 2, 0]), nodes_truenodeids=[1, 0, 1, 2],
                nodes_falsenodeids=[2, 1, 2, 0], nodes_trueleafs=[0, 1, 1, 1], nodes_falseleafs=[0, 1, 1, 1],
                leaf_targetids=[0, 1, 1], leaf_weights=tensor([5.5, 12, -3]),
                membership_values=tensor([1.5, -1, 2, 1, np.nan, 0.5, np.nan]), nodes_missing_value_tracks_true=[0, 1, 0, 1])


def numbered_value(row):
    a, b = row
    y = np.zeros(2)
    if a in (1.5, -1, 2, 1):
        leaf = 0 if b <= 0.5 or np.isnan(b) else 1
    else:
        leaf = 1 if a == 2 else 2
    for number in (leaf, 2 if b == 0.5 or np.isnan(b) else 0):
        y[min(number, 1)] += [5.5, 12, -3][number]
    return y


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbered_nodes(tmp_path, dtype):
    x = features(40, 2, dtype)
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **numbered(dtype))
    model = ml_model(node, {"x": x}, {"y": helper.np_dtype_to_tensor_dtype(x.dtype)}, 5)
    check_against(tmp_path, model, {"x": x}, [np.array([numbered_value(row) for row in x], dtype)], "--rtol", 0, "--atol", 0, ways=WAYS)


def test_threads_and_levels_give_the_same_bits(tmp_path):
    nodes, leaves = forest(6, 70, 6, 6, 3, MODES[:1], 3)
    x = features(203, 6)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=3, **nodes, **with_weights("target", leaves))
    case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}), {"x": x}, [])
    assert linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    want = np.array([one_row(nodes, leaves, row) for row in x], np.float32)
    check_every_level(tmp_path / "m.lnt", x, want, rtol=1e-6, atol=1e-6)


def one_row(nodes, leaves, row):
    y, at, start = np.zeros(3), {}, {}
    names = list(zip(nodes["nodes_treeids"], nodes["nodes_nodeids"]))
    at = {name: i for i, name in enumerate(names)}
    for tree in sorted(set(nodes["nodes_treeids"])):
        i = at[tree, 0]
        while nodes["nodes_modes"][i] != "LEAF":
            v, track = row[nodes["nodes_featureids"][i]], nodes["nodes_missing_value_tracks_true"][i]
            yes = v <= nodes["nodes_values"][i] or (track and np.isnan(v))
            i = at[tree, nodes["nodes_truenodeids" if yes else "nodes_falsenodeids"][i]]
        start.setdefault(names[i], [leaf for leaf in leaves if leaf[:2] == names[i]])
        for _, _, target, weight in start[names[i]]:
            y[target] += weight
    return y


STUMP = dict(n_targets=1, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
             nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0, 0], nodes_truenodeids=[1, 0, 0],
             nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
             target_weights=[1.0, 2.0])


@pytest.mark.parametrize("change, word", [
    ({"nodes_truenodeids": [0, 0, 0]}, "reached twice"),
    ({"nodes_truenodeids": [9, 0, 0]}, "no node 9 of tree 0"),
    ({"nodes_nodeids": [0, 1, 1]}, "same number"),
    ({"nodes_featureids": [-1, 0, 0]}, "nodes_featureids"),
    ({"nodes_modes": ["BRANCH_ODD", "LEAF", "LEAF"]}, "nodes_modes"),
    ({"nodes_values": [0.5]}, "differ in length"),
    ({"target_ids": [0, 1]}, "target"),
    ({"target_nodeids": [0, 2]}, "no leaf"),
    ({"target_weights": [1.0]}, "differ in length"),
    ({"n_targets": 0}, "n_targets"),
])
def test_hostile_trees(tmp_path, change, word):
    x = features(3, 2)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **{**STUMP, **change})
    case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}), {"x": x}, [])
    done = linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode not in (0, -6, -11) and word in done.stderr, done.stderr
    assert not (tmp_path / "m.lnt").exists()


def test_too_few_features(tmp_path):
    x = features(3, 2)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **{**STUMP, "nodes_featureids": [5, 0, 0]})
    case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}), {"x": x}, [np.zeros((3, 1), np.float32)])
    done = linnet("verify", case / "model.onnx")
    assert done.returncode != 0 and "ask for 6 features, x has 2" in done.stdout + done.stderr


@pytest.mark.parametrize("edit, word", [
    (lambda n: n.__setitem__((0, 2), 0), "leads to node 0"),
    (lambda n: n.__setitem__((0, 2), 7), "leads to node 7"),
    (lambda n: n.__setitem__((0, 1), 90), "feature 45"),
    (lambda n: n.__setitem__((1, 2), 2), "leads on"),
])
def test_hostile_files(tmp_path, edit, word):
    """The table of nodes in a file is checked before it is walked."""
    x = features(3, 2)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **STUMP)
    case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}), {"x": x}, [])
    assert linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    table = np.zeros((3, 3), np.uint32)
    table[:, 0] = np.array([0.5, 2, 1], np.float32).view(np.uint32)
    table[:, 1:] = [[0, 1], [2, 1], [2, 2]]
    data = (tmp_path / "m.lnt").read_bytes()
    assert data.count(table.tobytes()) == 1
    broken = table.copy()
    edit(broken)
    (tmp_path / "m.lnt").write_bytes(data.replace(table.tobytes(), broken.tobytes()))
    np.save(tmp_path / "x.npy", x)
    done = linnet("run", tmp_path / "m.lnt", "--input", f"x={tmp_path / 'x.npy'}")
    assert done.returncode not in (0, -6, -11) and word in done.stderr, done.stderr


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("classes", [1, 3])
def test_linear_classifier(tmp_path, post, classes):
    rng = np.random.default_rng(1)
    labels = [4, 9] if classes == 1 else [4, 9, 2]
    check(tmp_path, "LinearClassifier", {"x": features(11, 5, nan=False)}, {"label": TensorProto.INT64, "p": TensorProto.FLOAT}, 1,
          coefficients=rng.normal(size=classes * 5).tolist(), intercepts=rng.normal(size=classes).tolist(), multi_class=0,
          classlabels_ints=labels, post_transform=post)


@pytest.mark.parametrize("targets", [1, 4])
def test_linear_regressor(tmp_path, targets):
    rng = np.random.default_rng(1)
    check(tmp_path, "LinearRegressor", {"x": features(11, 5, nan=False)}, {"y": TensorProto.FLOAT}, 1, targets=targets,
          coefficients=rng.normal(size=targets * 5).tolist(), intercepts=rng.normal(size=targets).tolist())


@pytest.mark.parametrize("dtype", ONNX_TYPE)
def test_scaler_and_binarizer(tmp_path, dtype):
    x = features(6, 3, dtype)
    check(tmp_path, "Scaler", {"x": x}, {"y": TensorProto.FLOAT}, 1, offset=[0.5, -1.0, 2.0], scale=[2.0, 0.1, 3.0])
    check(tmp_path, "Scaler", {"x": x}, {"y": TensorProto.FLOAT}, 1, offset=[0.5], scale=[2.0])
    node = helper.make_node("Binarizer", ["x"], ["y"], domain=ML, threshold=0.5)
    check_against(tmp_path, ml_model(node, {"x": x}, {"y": ONNX_TYPE[dtype]}, 1), {"x": x}, [(x > 0.5).astype(dtype)], ways=WAYS)


@pytest.mark.parametrize("norm", ["L1", "L2"])
@pytest.mark.parametrize("dtype", ONNX_TYPE)
def test_normalizer(tmp_path, norm, dtype):
    x = features(6, 3, dtype, nan=False)
    x[2] = 0
    check(tmp_path, "Normalizer", {"x": x}, {"y": TensorProto.FLOAT}, 1, norm=norm)


def test_imputer(tmp_path):
    check(tmp_path, "Imputer", {"x": features(9, 3)}, {"y": TensorProto.FLOAT}, 1, imputed_value_floats=[1.0, 2.0, 3.0],
          replaced_value_float=float("nan"))
    check(tmp_path, "Imputer", {"x": features(9, 3, nan=False)}, {"y": TensorProto.FLOAT}, 1, imputed_value_floats=[9.0],
          replaced_value_float=1.5)
    check(tmp_path, "Imputer", {"x": features(9, 3, np.int64)}, {"y": TensorProto.INT64}, 1, imputed_value_int64s=[7, 8, 2**53 + 1],
          replaced_value_int64=2)


def test_one_hot(tmp_path):
    cats = [5, -1, 3, 2, 0]
    for dtype in (np.int64, np.float32, np.float64):
        check(tmp_path, "OneHotEncoder", {"x": features(9, 3, dtype, nan=False)}, {"y": TensorProto.FLOAT}, 1, cats_int64s=cats)
    x = np.array([[5], [4]])
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_int64s=cats, zeros=0)
    case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}, 1), {"x": x}, [np.zeros((2, 1, 5), np.float32)])
    done = linnet("verify", case / "model.onnx")
    assert done.returncode != 0 and "element 1, 4, is none of the 5 categories" in done.stdout + done.stderr


def test_tables_and_trees_keep_operators_of_their_own(tmp_path):
    x = features(4, 2, np.int64)
    for node, inside in ((helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_int64s=[1], values_int64s=[2]), "FindKey"),
                         (helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, **STUMP), "TreeEnsemble")):
        dtype = TensorProto.INT64 if inside == "FindKey" else TensorProto.FLOAT
        case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": dtype}, 2), {"x": x}, [])
        assert linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt").returncode == 0
        assert inside in linnet("info", tmp_path / "m.lnt", "--json").stdout


@pytest.mark.parametrize("indices", [np.array([2, 0]), np.array([[1, 1, 0]])])
def test_array_feature_extractor(tmp_path, indices):
    for x in (features(4, 3, nan=False), features(4, 3, np.int64)[0]):
        check(tmp_path, "ArrayFeatureExtractor", {"x": x, "i": indices}, {"y": helper.np_dtype_to_tensor_dtype(x.dtype)}, 1)


def test_feature_vectorizer(tmp_path):
    inputs = {"a": features(5, 3, nan=False), "b": features(5, 2, nan=False, seed=8)}
    check(tmp_path, "FeatureVectorizer", inputs, {"y": TensorProto.FLOAT}, 1, inputdimensions=[3, 2])


def test_label_encoder(tmp_path):
    x = features(9, 3, np.int64)
    check(tmp_path, "LabelEncoder", {"x": x}, {"y": TensorProto.FLOAT}, 2, keys_int64s=[3, -2, 5, 0], values_floats=[1.0, 2.0, 3.0, 4.0],
          default_float=-7.5)
    check(tmp_path, "LabelEncoder", {"x": features(9, 3)}, {"y": TensorProto.INT64}, 4, keys_floats=[3.0, -0.5, float("nan"), 0.0],
          values_int64s=[1, 2**60 + 1, 3, 4])
    tensors = {k: numpy_helper.from_array(np.array(v)) for k, v in
               {"keys_tensor": [1.0, 2.5, -3.0], "values_tensor": [0.1, 0.2, 0.3], "default_tensor": [0.9]}.items()}
    check(tmp_path, "LabelEncoder", {"x": features(9, 3, np.float64)}, {"y": TensorProto.DOUBLE}, 4, **tensors)


def names_of(model, folder):
    """The classes that metadata name, by output."""
    onnx.save(model, folder / "names.onnx")
    done = linnet("convert", folder / "names.onnx", "-o", folder / "names.lnt")
    assert done.returncode == 0, done.stderr
    metadata = json.loads(linnet("info", folder / "names.lnt", "--json").stdout)["metadata"]
    return {k.partition(".")[2]: json.loads(v) for k, v in metadata.items() if k.startswith("classes.")}


ODD = ["a \"b\"", "c\\d", "\té", ""]


@pytest.mark.parametrize("op, attributes", [
    ("LinearClassifier", {"coefficients": [1.0, 0, 0, 1, -1, 0, 0, -1], "intercepts": [0.0] * 4}),
    ("SVMClassifier", {"coefficients": [1.0, 0, 0, 1, -1, 0, 0, -1], "rho": [0.0], "kernel_params": [0.0] * 3}),
])
def test_labels_of_text_are_numbers_with_names(tmp_path, op, attributes):
    x = features(9, 2, nan=False) + np.float32([0.25, 0.125])
    node = helper.make_node(op, ["x"], ["label", "p"], domain=ML, classlabels_strings=ODD, **attributes)
    model = ml_model(node, {"x": x}, {"label": TensorProto.STRING, "p": TensorProto.FLOAT}, 1)
    labels, p = reference(model, {"x": x})
    assert len(set(labels)) == 4
    check_against(tmp_path, model, {"x": x}, [np.array([ODD.index(label) for label in labels]), p], "--rtol", "1e-5", "--atol", "1e-6",
                  ways=WAYS)
    assert names_of(model, tmp_path) == {"label": ODD}


def test_two_classes_of_text(tmp_path):
    x = features(9, 2, nan=False)
    node = helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain=ML, classlabels_strings=["no", "yes"],
                            coefficients=[1.0, -0.3], intercepts=[0.1])
    model = ml_model(node, {"x": x}, {"label": TensorProto.STRING, "p": TensorProto.FLOAT}, 1)
    labels, p = reference(model, {"x": x})
    check_against(tmp_path, model, {"x": x}, [(labels == "yes").astype(np.int64), p], "--rtol", "1e-5", "--atol", "1e-6", ways=WAYS)
    assert names_of(model, tmp_path) == {"label": ["no", "yes"]}


def words_model(nodes, dims=(3, 2), words=("b", "a", "b", "c", "", "a"), outputs=("y",)):
    """Constant text [3, 2], taken by an input of indices."""
    table = helper.make_tensor("words", TensorProto.STRING, dims, [w.encode() for w in words])
    ins = [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])]
    outs = [helper.make_tensor_value_info(name, TensorProto.STRING, None) for name in outputs]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 2)]
    return helper.make_model(helper.make_graph(nodes, "g", ins, outs, [table]), opset_imports=opsets, ir_version=10)


def test_text_is_moved(tmp_path):
    """Equal words are equal numbers, in the order in which they come."""
    nodes = [helper.make_node("Gather", ["words", "i"], ["taken"]), helper.make_node("Transpose", ["taken"], ["turned"]),
             helper.make_node("Cast", ["turned"], ["text"], to=TensorProto.STRING), helper.make_node("Identity", ["text"], ["y"])]
    i = np.array([2, 0, 1])
    want = np.array([[0, 1], [0, 2], [3, 1]])[i].T
    check_against(tmp_path, words_model(nodes), {"i": i}, [want], ways=WAYS)
    assert names_of(words_model(nodes), tmp_path) == {"y": ["b", "a", "c", ""]}


def test_label_encoder_from_and_to_text(tmp_path):
    def encoder(a, b, **attributes):
        return helper.make_node("LabelEncoder", [a], [b], domain=ML, **attributes)

    take = [helper.make_node("Gather", ["words", "i"], ["taken"])]
    i = np.array([0, 1, 2])
    to_ints = words_model([*take, encoder("taken", "y", keys_strings=["a", "b", "b"], values_int64s=[5, 6, 7], default_int64=-3)])
    to_ints.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    check_against(tmp_path, to_ints, {"i": i}, [np.array([[6, 5], [6, -3], [-3, 5]])], ways=WAYS)
    to_floats = words_model([*take, encoder("taken", "y", keys_strings=["", "c"], values_floats=[0.5, 1.5], default_float=9.0)])
    to_floats.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    check_against(tmp_path, to_floats, {"i": i}, [np.array([[9, 9], [9, 1.5], [0.5, 9]], np.float32)], ways=WAYS)
    to_words = words_model([*take, encoder("taken", "y", keys_strings=["a", "c"], values_strings=["z", "z"], default_string="?")])
    check_against(tmp_path, to_words, {"i": i}, [np.array([[1, 0], [1, 0], [1, 0]])], ways=WAYS)
    assert names_of(to_words, tmp_path) == {"y": ["z", "?"]}
    numbers = words_model([encoder("i", "y", keys_int64s=[7, 0], values_strings=["seven", "zero"])])
    check_against(tmp_path, numbers, {"i": np.array([0, 7, 5])}, [np.array([1, 0, 2])], ways=WAYS)
    assert names_of(numbers, tmp_path) == {"y": ["seven", "zero", "_Unused"]}


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [4, -1]}, {"classlabels_strings": ["x", "y"]}])
def test_zipmap_is_a_tensor_with_names(tmp_path, labels):
    x = features(5, 2, nan=False)
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, **labels)
    model = ml_model(node, {"x": x}, {"y": TensorProto.FLOAT}, 1)
    key, value = next(iter(labels.items()))
    maps = helper.make_map_type_proto(TensorProto.INT64 if "int" in key else TensorProto.STRING, helper.make_tensor_type_proto(1, []))
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(maps))
    check_against(tmp_path, model, {"x": x}, [x], "--rtol", 0, "--atol", 0, ways=WAYS)
    assert reference(model, {"x": x})[0] == [dict(zip(value, row)) for row in x.tolist()]
    assert names_of(model, tmp_path) == {"y": value}


def test_a_name_given_by_hand_stays(tmp_path):
    onnx.save(words_model([helper.make_node("Gather", ["words", "i"], ["y"])]), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--meta", "classes.y=mine").returncode == 0
    assert json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)["metadata"]["classes.y"] == "mine"


@pytest.mark.parametrize("model, word", [
    (words_model([helper.make_node("Equal", ["words", "words"], ["y"])]), "it reads text"),
    (words_model([helper.make_node("Gather", ["words", "words"], ["y"])]), "it reads text"),
    (words_model([helper.make_node("Cast", ["words"], ["y"], to=TensorProto.INT64)]), "it reads text"),
    (words_model([helper.make_node("LabelEncoder", ["words"], ["y"], domain=ML, keys_int64s=[1], values_int64s=[2])]), "text"),
])
def test_text_that_would_be_computed_with(tmp_path, model, word):
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode not in (0, -6, -11) and word in done.stderr, done.stderr


def test_text_of_the_wrong_length(tmp_path):
    model = words_model([helper.make_node("Identity", ["words"], ["y"])])
    del model.graph.initializer[0].string_data[5:]
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode not in (0, -6, -11) and "5 strings" in done.stderr, done.stderr


@pytest.mark.parametrize("op, attributes, word", [
    ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "text"),
    ("OneHotEncoder", {"cats_strings": ["a"]}, "text"),
    ("CategoryMapper", {"cats_strings": ["a"], "cats_int64s": [1]}, "text"),
])
def test_what_is_no_number_is_refused_with_the_way_out(tmp_path, op, attributes, word):
    x = features(2, 2, nan=False)
    node = helper.make_node(op, ["x"], ["y"], domain=ML, **attributes)
    case = write_case(tmp_path, ml_model(node, {"x": x}, {"y": TensorProto.INT64}, 2), {"x": x}, [])
    done = linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode != 0 and word in done.stderr, done.stderr
