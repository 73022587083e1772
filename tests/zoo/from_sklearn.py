#!/usr/bin/env python3
"""from_sklearn.py [--out DIR] [--flat] [--list] [NAME ...]: pipelines of scikit-learn, LightGBM and XGBoost as skl2onnx and
onnxmltools export them: DIR/NAME/ with model.onnx and test_data_set_0/ as the ONNX suite has them, outputs by the library
that trained the model: predict and predict_proba, decision_function, transform.

--flat writes DIR/NAME.onnx and DIR/NAME.npz instead. Small data, fixed seeds; runs under .deps/sklearn (`make
zoo-sklearn`). Text labels are expected as numbers of classes."""

import argparse
import pathlib
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from skl2onnx import to_onnx, update_registered_converter
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType
from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes as classifier_shapes
from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes as regressor_shapes
from sklearn import (calibration, cluster, datasets, decomposition, discriminant_analysis, ensemble, feature_selection,
                     gaussian_process, impute, linear_model, mixture, multiclass, naive_bayes, neighbors,
                     neural_network, pipeline, preprocessing, svm, tree)
from sklearn.base import is_outlier_detector
from sklearn.cross_decomposition import PLSRegression
from sklearn.compose import ColumnTransformer

HERE = pathlib.Path(__file__).resolve().parent
OPSET = {"": 18, "ai.onnx.ml": 3}
ROWS = 50  # that are asked about

scale = preprocessing.StandardScaler


def whole_floats(data):
    """What was trained on is what is asked: floats, exactly."""
    x, y = data
    return x.astype(np.float32), y


def holes(x, share=0.1):
    x = x.copy()
    x[np.random.default_rng(7).random(x.shape) < share] = np.nan
    return x


def iris():
    return whole_floats(datasets.load_iris(return_X_y=True))


def iris_holes():
    x, y = iris()
    return holes(x), y


def iris_names():
    x, y = iris()
    return x, datasets.load_iris().target_names[y].astype(str)


def wine():
    return whole_floats(datasets.load_wine(return_X_y=True))


def cancer():
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return whole_floats((x[:200, :10], y[:200]))


def cancer_names():
    x, y = cancer()
    return x, np.array(["malignant", "benign"])[y]


def digits():
    x, y = datasets.load_digits(return_X_y=True)
    return whole_floats((x[:400], y[:400]))


def counts():
    x, y = iris()
    return np.round(x * 3).astype(np.float32), y


def codes():
    """Numbers of categories: columns of 4, 3 and 5."""
    rng = np.random.default_rng(5)
    x = np.stack([rng.integers(0, n, 150) for n in (4, 3, 5)], 1)
    return x, (x.sum(1) + rng.integers(0, 2, 150) > 4).astype(int)


def line():
    return whole_floats(datasets.load_diabetes(return_X_y=True))


def lines():
    return whole_floats(datasets.make_regression(120, 6, n_targets=3, noise=3, random_state=2))


def one_column():
    x, y = line()
    return x[:, 2:3], y


def chain(*steps):
    return pipeline.make_pipeline(*steps)


def mixed(estimator):
    """Columns each in their own way: scaled, cut into bins, coded one hot."""
    columns = ColumnTransformer([("scaled", scale(), [0, 1]),
                                 ("bins", preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="linear"), [2]),
                                 ("one hot", preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [3])])
    return chain(columns, estimator)


def logistic(**how):
    return linear_model.LogisticRegression(max_iter=500, **how)


def soft_vote():
    parts = [("a", logistic()), ("b", naive_bayes.GaussianNB())]
    return ensemble.VotingClassifier(parts, voting="soft", flatten_transform=False)


def lightgbm(kind, **how):
    import lightgbm as library

    small = dict(n_estimators=12, num_leaves=7, min_child_samples=5, random_state=1, verbose=-1, n_jobs=1)
    return getattr(library, "LGBM" + kind)(**small, **how)


def xgboost(kind, **how):
    import xgboost as library

    return getattr(library, "XGB" + kind)(n_estimators=12, max_depth=3, random_state=1, n_jobs=1, **how)


FOREST = dict(n_estimators=12, max_depth=5, random_state=1)
ZIPPED = {"zipmap": True}
# Outputs that exporters give other extents.
SHAPES = {("qda", 0): (1, -1), ("mixture", 0): (-1, 1), ("mlp_regressor", 0): (-1, 1)}
ZOO = {
    # linear models
    "logistic": (iris, lambda: chain(scale(), logistic())),
    "logistic_binary": (cancer, lambda: chain(scale(), logistic())),
    "logistic_names": (iris_names, lambda: chain(scale(), logistic())),
    "logistic_binary_names": (cancer_names, lambda: chain(scale(), logistic())),
    "logistic_zipped": (iris, lambda: chain(scale(), logistic()), ZIPPED),
    "logistic_names_zipped": (iris_names, lambda: chain(scale(), logistic()), ZIPPED),
    "logistic_columns": (iris_names, lambda: chain(scale(), logistic()), {"zipmap": "columns"}),
    "one_versus_rest": (iris, lambda: multiclass.OneVsRestClassifier(logistic())),
    "sgd_log": (wine, lambda: chain(scale(), linear_model.SGDClassifier(loss="log_loss", random_state=1))),
    "sgd_huber": (wine, lambda: chain(scale(), linear_model.SGDClassifier(loss="modified_huber", random_state=1))),
    "ridge_classifier": (wine, lambda: chain(scale(), linear_model.RidgeClassifier())),
    "linear_svc": (iris, lambda: svm.LinearSVC(random_state=1), {"raw_scores": True}),
    "perceptron": (wine, lambda: chain(scale(), linear_model.Perceptron(random_state=1))),
    "lda": (wine, lambda: discriminant_analysis.LinearDiscriminantAnalysis()),
    "qda": (iris, lambda: discriminant_analysis.QuadraticDiscriminantAnalysis()),
    "linear_regression": (lines, lambda: linear_model.LinearRegression()),
    "ridge_polynomial": (line, lambda: chain(preprocessing.PolynomialFeatures(2), linear_model.Ridge(0.1))),
    "lasso": (line, lambda: chain(scale(), linear_model.Lasso(0.5))),
    "huber": (line, lambda: chain(preprocessing.RobustScaler(), linear_model.HuberRegressor(max_iter=1000))),
    "poisson": (line, lambda: chain(preprocessing.MinMaxScaler(), linear_model.PoissonRegressor())),
    "bayesian_ridge": (line, lambda: chain(scale(), linear_model.BayesianRidge())),
    "pls": (lines, lambda: PLSRegression(3)),
    # support vectors
    "svc_rbf": (iris, lambda: svm.SVC(probability=True, random_state=1)),
    "svc_rbf_binary": (cancer, lambda: chain(scale(), svm.SVC(probability=True, random_state=1))),
    "svc_names": (iris_names, lambda: svm.SVC(probability=True, random_state=1)),
    "svc_poly": (wine, lambda: chain(scale(), svm.SVC(kernel="poly", probability=True, random_state=1))),
    "svc_sigmoid": (wine, lambda: chain(scale(), svm.SVC(kernel="sigmoid", probability=True, random_state=1))),
    "svc_digits": (digits, lambda: chain(preprocessing.MaxAbsScaler(), svm.SVC(kernel="linear", probability=True, random_state=1))),
    "svc_decisions": (wine, lambda: chain(scale(), svm.SVC())),
    "svc_decisions_binary": (cancer, lambda: chain(scale(), svm.SVC())),
    "nu_svc": (iris, lambda: svm.NuSVC(nu=0.3, probability=True, random_state=1)),
    "svr": (line, lambda: chain(scale(), svm.SVR(C=50))),
    "svr_poly": (line, lambda: chain(scale(), svm.NuSVR(kernel="poly", degree=2, C=20))),
    "one_class": (iris, lambda: chain(scale(), svm.OneClassSVM(nu=0.2))),
    # trees
    "tree": (wine, lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=1)),
    "tree_names": (iris_names, lambda: tree.DecisionTreeClassifier(max_depth=4, random_state=1)),
    "forest": (wine, lambda: ensemble.RandomForestClassifier(**FOREST)),
    "forest_binary": (cancer, lambda: ensemble.RandomForestClassifier(**FOREST)),
    "extra_trees": (wine, lambda: ensemble.ExtraTreesClassifier(**FOREST)),
    "boosting": (wine, lambda: ensemble.GradientBoostingClassifier(n_estimators=10, random_state=1)),
    "boosting_binary": (cancer, lambda: ensemble.GradientBoostingClassifier(n_estimators=10, random_state=1)),
    "adaboost": (wine, lambda: ensemble.AdaBoostClassifier(n_estimators=10, random_state=1)),
    "isolation_forest": (iris, lambda: ensemble.IsolationForest(n_estimators=10, random_state=1)),
    "forest_regressor": (lines, lambda: ensemble.RandomForestRegressor(**FOREST)),
    "boosting_regressor": (line, lambda: ensemble.GradientBoostingRegressor(n_estimators=12, random_state=1)),
    # neighbors, probabilities, networks
    "knn": (iris, lambda: neighbors.KNeighborsClassifier(5)),
    "knn_names": (iris_names, lambda: neighbors.KNeighborsClassifier(5)),
    "knn_regressor": (lines, lambda: chain(scale(), neighbors.KNeighborsRegressor(4))),
    "gaussian_nb": (iris, lambda: naive_bayes.GaussianNB()),
    "multinomial_nb": (counts, lambda: naive_bayes.MultinomialNB()),
    "bernoulli_nb": (iris, lambda: chain(preprocessing.Binarizer(threshold=1.5), naive_bayes.BernoulliNB())),
    "complement_nb": (counts, lambda: naive_bayes.ComplementNB()),
    "mlp": (iris, lambda: chain(scale(), neural_network.MLPClassifier((12,), max_iter=300, random_state=1))),
    "mlp_names": (cancer_names, lambda: chain(scale(), neural_network.MLPClassifier((8,), max_iter=200, random_state=1))),
    "mlp_regressor": (lines, lambda: chain(scale(), neural_network.MLPRegressor(activation="tanh", max_iter=200, random_state=1))),
    "gaussian_process": (line, lambda: chain(scale(), gaussian_process.GaussianProcessRegressor(alpha=10))),
    # models of models
    "calibrated": (wine, lambda: calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), cv=2)),
    "bagging": (iris, lambda: ensemble.BaggingClassifier(logistic(), n_estimators=4, random_state=1)),
    "voting": (iris, soft_vote),
    "voting_names": (iris_names, soft_vote),
    "stacking": (iris, lambda: ensemble.StackingClassifier([("a", tree.DecisionTreeClassifier(max_depth=2, random_state=1)),
                                                            ("b", naive_bayes.GaussianNB())], logistic(), cv=3)),
    # features
    "imputed": (iris_holes, lambda: chain(impute.SimpleImputer(), scale(), logistic())),
    "mixed_columns": (counts, lambda: mixed(logistic())),
    "one_hot": (codes, lambda: chain(preprocessing.OneHotEncoder(sparse_output=False), logistic())),
    "ordinal": (codes, lambda: chain(preprocessing.OrdinalEncoder(), tree.DecisionTreeClassifier(max_depth=5, random_state=1))),
    "pca": (wine, lambda: chain(scale(), decomposition.PCA(4, random_state=1), svm.SVC(probability=True, random_state=1))),
    "selected": (wine, lambda: chain(feature_selection.SelectKBest(k=5), preprocessing.Normalizer(), logistic())),
    "power": (iris, lambda: chain(preprocessing.PowerTransformer(), logistic())),
    "union": (iris, lambda: chain(pipeline.make_union(scale(), decomposition.PCA(2)), logistic())),
    "kmeans": (iris, lambda: chain(scale(), cluster.KMeans(4, n_init=2, random_state=1))),
    "mixture": (iris, lambda: mixture.GaussianMixture(3, random_state=1)),
    # other libraries
    "lightgbm": (iris, lambda: lightgbm("Classifier")),
    "lightgbm_binary": (cancer, lambda: lightgbm("Classifier")),
    "lightgbm_names": (iris_names, lambda: lightgbm("Classifier")),
    "lightgbm_holes": (iris_holes, lambda: lightgbm("Classifier", boosting_type="dart")),
    "lightgbm_regressor": (line, lambda: lightgbm("Regressor")),
    "lightgbm_poisson": (line, lambda: chain(scale(), lightgbm("Regressor", objective="poisson"))),
    "xgboost": (wine, lambda: xgboost("Classifier")),
    "xgboost_binary": (cancer, lambda: xgboost("Classifier")),
    "xgboost_holes": (iris_holes, lambda: xgboost("Classifier")),
    "xgboost_forest": (cancer, lambda: xgboost("RFClassifier")),
    "xgboost_regressor": (line, lambda: xgboost("Regressor")),
    "xgboost_poisson": (line, lambda: xgboost("Regressor", objective="count:poisson")),
}


def register_others(name):
    """skl2onnx learns of the other library's estimators."""
    if name.startswith("lightgbm"):
        import lightgbm as library
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm as convert

        kinds = {"LGBMClassifier": classifier_shapes, "LGBMRegressor": regressor_shapes}
    else:
        import xgboost as library
        from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost as convert

        kinds = {"XGBClassifier": classifier_shapes, "XGBRFClassifier": classifier_shapes, "XGBRegressor": regressor_shapes}
    for kind, shapes in kinds.items():
        options = {"zipmap": [True, False, "columns"], "nocl": [True, False]} if "Classifier" in kind else {"split": None}
        update_registered_converter(getattr(library, kind), kind, shapes, convert, options=options)


def expected(model, x, y):
    """What the library says of x, in the order of the exported model's outputs."""
    if hasattr(model, "classes_") or isinstance(model, multiclass.OneVsRestClassifier):
        numbers = np.searchsorted(model.classes_, model.predict(x)) if y.dtype.kind == "U" else model.predict(x)
        ask = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
        scores = ask(x)
        return [numbers.astype(np.int64), scores if scores.ndim > 1 else np.stack([scores, -scores], 1)]
    if is_outlier_detector(model):
        return [model.predict(x).reshape(-1, 1), model.decision_function(x).reshape(-1, 1)]
    last = model[-1] if isinstance(model, pipeline.Pipeline) else model
    if isinstance(last, cluster.KMeans):
        return [model.predict(x), model.transform(x)]
    if isinstance(last, mixture.GaussianMixture):
        return [model.predict(x), model.predict_proba(x)]
    return [model.predict(x).reshape(len(x), -1)]


def export(name):
    """The exported model, what it is asked, what it has to answer."""
    data, build, *options = ZOO[name]
    x, y = data()
    order = np.random.default_rng(3).permutation(len(x))
    asked, known = x[order[:ROWS]], order[ROWS:]
    model = build().fit(x[known], y[known])
    if name.startswith(("lightgbm", "xgboost")):
        register_others(name)
    how = None
    if hasattr(model, "classes_"):
        plain = {"zipmap": False} if hasattr(model, "predict_proba") else {"zipmap": False, "raw_scores": True}
        how = {id(model): options[0] if options else plain}
    kind = Int64TensorType if x.dtype.kind == "i" else FloatTensorType
    exported = to_onnx(model, initial_types=[("x", kind([None, x.shape[1]]))], target_opset=OPSET, options=how)
    outputs = expected(model, asked, y)
    if "columns" in (options[0].values() if options else ()):
        outputs[1:] = outputs[1].T
    outputs = [value.reshape(SHAPES.get((name, k), value.shape)) for k, value in enumerate(outputs)]
    return exported, asked, [value.astype(np.float32 if value.dtype.kind == "f" else np.int64) for value in outputs]


def write(name, folder):
    model, asked, outputs = export(name)
    cases = folder / name / "test_data_set_0"
    cases.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / name / "model.onnx")
    (cases / "input_0.pb").write_bytes(numpy_helper.from_array(asked, "x").SerializeToString())
    for k, (value, info) in enumerate(zip(outputs, model.graph.output)):
        (cases / f"output_{k}.pb").write_bytes(numpy_helper.from_array(value, info.name).SerializeToString())


def write_flat(name, folder):
    model, asked, outputs = export(name)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", asked, *outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parents[1] / "build" / "zoo-sklearn")
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.list:
        print("\n".join(ZOO))
        return
    warnings.simplefilter("ignore")
    for name in args.names or ZOO:
        (write_flat if args.flat else write)(name, args.out)


if __name__ == "__main__":
    main()
