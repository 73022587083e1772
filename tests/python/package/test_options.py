"""Options, providers, errors, the log and asynchronous runs, as scripts for onnxruntime use them."""

import re
import threading
import warnings

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from harness import import_package

linnet = import_package()
MODEL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
two (float[N, 4] x, float[4] w) => (float[N, 4] sum, float[N, 4] product) {
    inner = Neg (x)
    sum = Sub (w, inner)
    product = Mul (x, w)
}""").SerializeToString()
X, W = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones(4, np.float32)
FEED = {"x": X, "w": W}
BOTH = pytest.mark.parametrize("rt", [linnet, onnxruntime], ids=["linnet", "onnxruntime"])


def session(rt, options=None, **more):
    return rt.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"], **more)


# What a script does wrong, and the names it catches it under.
FAULTS = {
    "an output that does not exist": (lambda rt: session(rt).run(["zz"], FEED), "InvalidArgument"),
    "an input that does not exist": (lambda rt: session(rt).run(None, {**FEED, "zz": X}), "InvalidArgument"),
    "another extent": (lambda rt: session(rt).run(None, {**FEED, "x": X[:, :3]}), "InvalidArgument"),
    "another rank": (lambda rt: session(rt).run(None, {**FEED, "x": X[0]}), "InvalidArgument"),
    "another type": (lambda rt: session(rt).run(None, {**FEED, "x": X.astype(float)}), "InvalidArgument"),
    "a missing input": (lambda rt: session(rt).run(None, {"x": X}), ValueError),
    "a missing file": (lambda rt: rt.InferenceSession("/no/such.onnx"), "NoSuchFile"),
    "bytes that are no model": (lambda rt: rt.InferenceSession(b"not a model"), "InvalidProtobuf"),
    "a model of another kind": (lambda rt: rt.InferenceSession(3), TypeError),
    "a misspelt option": (lambda rt: setattr(rt.SessionOptions(), "intra_op_num_thread", 1), AttributeError),
    "an option of another kind": (lambda rt: setattr(rt.SessionOptions(), "intra_op_num_threads", "1"), TypeError),
    "a level that does not exist": (lambda rt: setattr(rt.SessionOptions(), "graph_optimization_level", 9), TypeError),
    "a misspelt run option": (lambda rt: setattr(rt.RunOptions(), "terminat", True), AttributeError),
    "an entry nobody made": (lambda rt: rt.SessionOptions().get_session_config_entry("zz"), RuntimeError),
    "an entry of a run nobody made": (lambda rt: rt.RunOptions().get_run_config_entry("zz"), RuntimeError),
    "a severity that does not exist": (lambda rt: rt.set_default_logger_severity(9), RuntimeError),
}


@BOTH
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught_under_the_same_names(rt, fault):
    work, kind = FAULTS[fault]
    kind = getattr(rt.capi.onnxruntime_pybind11_state, kind) if isinstance(kind, str) else kind
    with pytest.raises(kind):
        work(rt)


@BOTH
def test_every_exception_of_onnxruntimes_is_there(rt):
    state = rt.capi.onnxruntime_pybind11_state
    for name in ("EPFail EngineError Fail InvalidArgument InvalidGraph InvalidProtobuf ModelLoaded NoModel NoSuchFile "
                 "NotImplemented RuntimeException").split():
        assert issubclass(getattr(state, name), Exception)


def test_misspelt_names_have_a_suggestion():
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'"):
        linnet.SessionOptions().intra_op_num_thread = 1
    options = linnet.SessionOptions()
    options.add_session_config_entry("session.disable_prepackin", "1")
    with pytest.raises(linnet.LinnetError, match="did you mean 'session.disable_prepacking'"):
        session(linnet, options)
    with pytest.raises(linnet.LinnetError, match="did you mean 'memory.enable_memory_arena_shrinkage'"):
        linnet.RunOptions().add_run_config_entry("memory.enable_memory_arena_shrinkag", "cpu:0")
    with pytest.raises(TypeError, match="kep"):
        session(linnet, kep=["inner"])
    with pytest.raises(linnet.LinnetError, match="keep.*converted already"):
        linnet.InferenceSession(linnet.convert(MODEL), keep=["inner"])


@BOTH
def test_a_provider_that_is_not_there_is_a_warning(rt):
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider names"):
        made = rt.InferenceSession(MODEL, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert made.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_array_equal(made.run(["sum"], FEED)[0], X + W)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rt.InferenceSession(MODEL, providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kNextPowerOfTwo"})])


@pytest.mark.parametrize("providers, options", [("CPUExecutionProvider", None), (["CPUExecutionProvider"], []), ([3], None)])
def test_providers_that_make_no_sense(providers, options):
    with pytest.raises(ValueError, match="providers"):
        linnet.InferenceSession(MODEL, providers=providers, provider_options=options)


def test_a_run_gives_memory_back_where_its_options_say_so():
    made, how = session(linnet), linnet.RunOptions()
    how.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    for n in (1, 5000, 1):
        x = np.full((n, 4), n, np.float32)
        np.testing.assert_array_equal(made.run(["sum"], {"x": x, "w": W}, how)[0], x + 1)


def test_the_log_prints_from_a_severity_on(capfd):
    def lines(severity, of_run=None):
        options, how = linnet.SessionOptions(), linnet.RunOptions()
        options.logid = "mine"
        if severity is not None:
            options.log_severity_level = severity
        if of_run is not None:
            how.log_severity_level = of_run
        session(linnet, options).run(None, FEED, how)
        return capfd.readouterr().err.splitlines()

    assert lines(None) == [] and lines(2) == [] and lines(1, of_run=3)
    told = lines(1)
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[I:linnet:mine\] ", line) for line in told)
    assert any("converted in" in line for line in told) and any("bound: " in line for line in told)
    linnet.set_default_logger_severity(1)
    try:
        assert lines(None)
    finally:
        linnet.set_default_logger_severity(2)
    session(linnet).end_profiling()
    assert "[W:linnet:] there is no profile" in capfd.readouterr().err


def test_inner_values_by_name():
    for source in (MODEL, linnet.convert(MODEL, keep=["inner"])):
        made = linnet.InferenceSession(source, **({"keep": "all"} if source is MODEL else {}))
        for x in (X, X[:1] * 3):
            inner, total, again = made.run(["inner", "sum", "inner"], {"x": x, "w": W})
            np.testing.assert_array_equal(inner, -x)
            np.testing.assert_array_equal(again, -x)
            np.testing.assert_array_equal(total, x + W)
        (value,) = made.run_with_ort_values(["inner"], {"x": linnet.OrtValue.ortvalue_from_numpy(X),
                                                        "w": linnet.OrtValue.ortvalue_from_numpy(W)})
        assert value.data_type() == "tensor(float)" and value.shape() == [2, 4]
        assert len(made.run(None, FEED)) == 2
    with pytest.raises(linnet.LinnetError, match="no output 'inner'.*keep"):
        session(linnet).run(["inner"], FEED)


@BOTH
def test_devices(rt):
    device = rt.OrtDevice.make("cpu", 0)
    assert (device.device_type(), device.device_id()) == (0, 0)
    value = rt.OrtValue.from_dlpack(X.copy())
    np.testing.assert_array_equal(value.numpy(), X)


def test_other_devices_are_refused():
    with pytest.raises(linnet.capi.onnxruntime_pybind11_state.NotImplemented, match="cuda"):
        linnet.OrtDevice.make("cuda", 0)


@BOTH
def test_asynchronous_runs(rt):
    options = rt.SessionOptions()
    options.intra_op_num_threads = 2
    made, told, done = session(rt, options), [], threading.Semaphore(0)

    def callback(results, user, error):
        told.append((user, [r.tolist() for r in results], bool(error)))
        done.release()

    for k in range(5):
        assert made.run_async(["sum"], {"x": X * k, "w": W}, callback, k) is None
    made.run_async(["zz"], FEED, callback, "no such output")
    with pytest.raises(ValueError, match="w"):
        made.run_async(None, {"x": X}, callback, None)
    for _ in range(6):
        assert done.acquire(timeout=30)
    assert sorted(t for t in told if t[0] != "no such output") == [(k, [(X * k + W).tolist()], False) for k in range(5)]
    assert ("no such output", [], True) in told


def test_asynchronous_runs_keep_their_order_and_their_session():
    told, done = [], threading.Event()
    made = session(linnet)
    for k in range(50):
        made.run_async(["sum"], {"x": X + k, "w": W}, lambda r, user, e: told.append((user, r[0][0, 0], e)), k)
    made.run_async(["sum"], FEED, lambda *_: done.set(), None)
    del made
    assert done.wait(30) and told == [(k, k + 1, "") for k in range(50)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_raises_does_not_end_the_others():
    made, done = session(linnet), threading.Event()
    made.run_async(None, FEED, lambda *_: 1 / 0, None)
    made.run_async(None, FEED, lambda *_: done.set(), None)
    assert done.wait(30)
