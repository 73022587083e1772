"""The Python package: scripts written for onnxruntime run by changing the import."""

import json
import os
import signal
import threading

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness import import_package


@pytest.fixture(scope="module")
def linnet():
    return import_package()


def model(text):
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + text)


TWO = model("""
two (float[N, 4] x, float[4] w) => (float[N, 4] sum, float[N, 4] product) {
    sum = Add (x, w)
    product = Mul (x, w)
}""")
POSITIONS = model("positions (float[N] x) => (int64[1, K] y) { y = NonZero (x) }")

TURNS = model("""
turns (int64 n, bool go, float[2] x) => (float[2] y) {
    y = Loop <body = turn (int64 i, bool c, float[2] v) => (bool c2, float[2] w) { c2 = Identity (c) w = Neg (v) }>
        (n, go, x)
}""")


def turns(n):
    return {"n": np.array(n), "go": np.array(True), "x": np.ones(2, np.float32)}


# What the users' scripts do, by the module they import.
MINILM = """
def embed(onnxruntime, path, feed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    outputs = session.run(None, {name: feed[name] for name in names})
    return outputs[0].mean(axis=1)


def classify(ort, path, feed):
    session = ort.InferenceSession(str(path), providers=ort.get_available_providers())
    name, label = session.get_inputs()[0].name, session.get_outputs()[0].name
    shape = [d if isinstance(d, int) else 1 for d in session.get_inputs()[0].shape]
    assert len(shape) == feed[name].ndim
    scores = session.run([label], {name: feed[name]})[0]
    return np.argsort(scores.ravel())[::-1][:5], scores
"""


def shared_case(shared, name):
    path = shared / "models" / name / "model.onnx"
    m = onnx.load(path)
    constants = {t.name for t in m.graph.initializer}
    feed = {}
    for k, n in enumerate(i.name for i in m.graph.input if i.name not in constants):
        t = onnx.TensorProto()
        t.ParseFromString((path.parent / "test_data_set_0" / f"input_{k}.pb").read_bytes())
        feed[n] = numpy_helper.to_array(t)
    return path, feed


def test_script_of_a_text_model_runs_unchanged(linnet, shared):
    import onnxruntime

    path, feed = shared_case(shared, "tiny_transformer")
    scope = {"np": np}
    exec(MINILM, scope)
    ours, theirs = (scope["embed"](module, str(path), feed) for module in (linnet, onnxruntime))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_script_of_an_image_model_runs_unchanged(linnet, shared):
    import onnxruntime

    path, feed = shared_case(shared, "mnist12")
    scope = {"np": np}
    exec(MINILM, scope)
    (ours, scores), (theirs, expected) = (scope["classify"](module, path, feed) for module in (linnet, onnxruntime))
    assert list(ours) == list(theirs)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-3)


def test_shapes_names_and_types(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    x, w = session.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["N", 4])
    assert [o.name for o in session.get_outputs()] == ["sum", "product"]
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_outputs_by_name_and_changing_shapes(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    w = np.arange(4, dtype=np.float32)
    for n in (3, 1, 5, 0):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        product, total = session.run(["product", "sum"], {"x": x, "w": w})
        np.testing.assert_array_equal(product, x * w)
        np.testing.assert_array_equal(total, x + w)
        (only,) = session.run(["sum"], {"x": x, "w": w})
        np.testing.assert_array_equal(only, x + w)
        assert len(session.run(None, {"x": x, "w": w})) == 2


def test_results_stay_when_the_session_runs_again(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    x, w = np.ones((2, 4), np.float32), np.ones(4, np.float32)
    first = session.run(None, {"x": x, "w": w})
    session.run(None, {"x": x * 7, "w": w})
    np.testing.assert_array_equal(first[0], x + w)


def test_inputs_may_change_between_runs(linnet):
    """In place, as other arrays, in other strides, small ones, which are copied, and large ones, which are read in place."""
    session = linnet.InferenceSession(TWO.SerializeToString())
    for rows in (2, 2000):
        x, w = np.ones((rows, 4), np.float32), np.ones(4, np.float32)
        results = []
        for turn in range(3):
            x[:], w[:] = turn, 2
            results.append(session.run(None, {"x": x, "w": w}))
            results.append(session.run(None, {"x": np.asfortranarray(x) + 5, "w": np.repeat(w, 2)[::2]}))
        for turn in range(3):
            for added, (total, product) in zip((0, 5), results[2 * turn:]):
                np.testing.assert_array_equal(total, np.full((rows, 4), turn + added + 2))
                np.testing.assert_array_equal(product, np.full((rows, 4), 2 * (turn + added)))


def test_arrays_that_are_not_contiguous(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    w = np.arange(8, dtype=np.float32)[::2]
    before = x.copy()
    total, product = session.run(None, {"x": x, "w": w})
    np.testing.assert_array_equal(total, x + w)
    np.testing.assert_array_equal(product, x * w)
    np.testing.assert_array_equal(x, before)


def test_every_run_may_ask_for_something_else(linnet):
    """What a session knows of the run before it is used for the next one only where it still holds."""
    m = model("""
three (float[N, 4] x, float[4] w) => (float[N, 4] a, float[N, 4] b, float[N] c) {
    a = Add (x, w)
    b = Mul (x, w)
    axes = Constant <value_ints = [1]> ()
    c = ReduceSum <keepdims = 0> (x, axes)
}""")
    session, rng = linnet.InferenceSession(m.SerializeToString()), np.random.default_rng(1)
    for _ in range(200):
        x = rng.standard_normal((rng.integers(0, 4), 4)).astype(np.float32)
        w = rng.standard_normal(4).astype(np.float32)
        want = {"a": x + w, "b": x * w, "c": x.sum(axis=1, dtype=np.float64).astype(np.float32)}
        x = np.asfortranarray(x) if rng.random() < 0.3 else x
        x.flags.writeable = w.flags.writeable = bool(rng.random() < 0.5)
        names = [str(n) for n in rng.choice(["a", "b", "c"], rng.integers(1, 5))] if rng.random() < 0.6 else None
        names = tuple(names) if names and rng.random() < 0.5 else names
        feed = {"x": x, "w": w} if rng.random() < 0.5 else {"w": w, "x": linnet.OrtValue.ortvalue_from_numpy(x)}
        for name, y in zip(names or "abc", session.run(names, feed), strict=True):
            np.testing.assert_allclose(y, want[name], rtol=1e-5, atol=1e-6)
    with pytest.raises(linnet.LinnetError, match="'x' is missing"):
        session.run(["a"], {"w": w})
    with pytest.raises(linnet.LinnetError, match="input x is not set"):
        linnet.InferenceSession(m.SerializeToString()).run(None, {"w": w})
    with pytest.raises(linnet.LinnetError):
        session.run(None, {"x": x.astype(np.float64), "w": w})
    assert len(session.run(None, {"x": x, "w": w})) == 3


def test_shape_that_depends_on_data(linnet):
    session = linnet.InferenceSession(POSITIONS.SerializeToString())
    for values in ([0, 1, 0, 2], [1, 1, 1, 1], [0, 0, 0, 0]):
        (y,) = session.run(None, {"x": np.array(values, np.float32)})
        np.testing.assert_array_equal(y[0], np.flatnonzero(values))


def test_convert_writes_what_a_session_opens(linnet, tmp_path):
    path = tmp_path / "two.lnt"
    data = linnet.convert(TWO.SerializeToString(), path, metadata={"license": "MIT"})
    assert path.read_bytes() == data
    assert [p.name for p in tmp_path.iterdir()] == ["two.lnt"]
    for source in (str(path), path, data):
        session = linnet.InferenceSession(source)
        assert session.get_modelmeta().custom_metadata_map["license"] == "MIT"
        total = session.run(["sum"], {"x": np.ones((1, 4), np.float32), "w": np.ones(4, np.float32)})[0]
        np.testing.assert_array_equal(total, [[2, 2, 2, 2]])


def test_states_run_on(linnet):
    total = model("total (float[2] x, float[2] s) => (float[2] y, float[2] t) { t = Add (x, s) y = Neg (t) }")
    session = linnet.InferenceSession(total.SerializeToString(), states={"t": "s"})
    assert [i.name for i in session.get_inputs()] == ["x"]
    for turn in (1, 2, 3):
        y, t = session.run(None, {"x": np.ones(2, np.float32)})
        np.testing.assert_array_equal(y, [-turn, -turn])
        np.testing.assert_array_equal(t, [turn, turn])
    session.reset_states()
    np.testing.assert_array_equal(session.run(["y"], {"x": np.ones(2, np.float32)})[0], [-1, -1])
    for fed in (10, 10, 10, 20, 20):
        total = session.run(["t"], {"x": np.ones(2, np.float32), "s": np.full(2, fed, np.float32)})[0]
        np.testing.assert_array_equal(total, [fed + 1, fed + 1])
    for turn in (22, 23, 24):
        np.testing.assert_array_equal(session.run(["t"], {"x": np.ones(2, np.float32)})[0], [turn, turn])


def test_every_unsupported_node_is_named(linnet):
    odd = model('odd (float[2] x) => (float[2] y) { a = NoSuchOp (x) y = NorThis (a) }')
    with pytest.raises(linnet.UnsupportedModel) as caught:
        linnet.InferenceSession(odd.SerializeToString())
    assert [n[2] for n in caught.value.nodes] == ["NoSuchOp", "NorThis"]


def test_any_array_is_taken_as_it_is(linnet):
    """Other byte orders, strides, and scalars, which numpy likes to make vectors of."""
    session = linnet.InferenceSession(model("scaled (float[3] x, float s) => (float[3] y) { y = Mul (x, s) }").SerializeToString())
    for x in (np.arange(3, dtype=">f4"), np.arange(6, dtype=np.float32)[::2] / 2):
        for s in (np.float32(2), np.array(2, ">f4"), np.array(2, np.float32)):
            np.testing.assert_array_equal(session.run(None, {"x": x, "s": s})[0], [0, 2, 4])


def test_errors_name_what_is_wrong(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    x, w = np.ones((2, 4), np.float32), np.ones(4, np.float32)
    for feed, names, words in (
        ({"x": x}, None, "input w"),
        ({"x": x, "w": w, "v": w}, None, "'v'"),
        ({"x": x.astype(np.float64), "w": w}, None, "float"),
        ({"x": x[0], "w": w}, None, "takes float"),
        ({"x": x, "w": w}, ["nothing"], "'nothing'"),
        ({"x": x.astype(complex), "w": w}, None, "complex"),
    ):
        with pytest.raises(linnet.LinnetError, match=words):
            linnet.InferenceSession(TWO.SerializeToString()).run(names, feed)
    with pytest.raises(linnet.LinnetError):
        linnet.InferenceSession(b"not a model")
    assert len(session.run(None, {"x": x, "w": w})) == 2


def test_threads_may_share_a_session(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    w, wrong = np.ones(4, np.float32), []

    def work(k):
        for n in range(1, 30):
            x = np.full((n, 4), k, np.float32)
            if not np.array_equal(session.run(["sum"], {"x": x, "w": w})[0], x + 1):
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_profile_is_a_chrome_trace_of_all_runs(linnet, tmp_path):
    options = linnet.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    options.graph_optimization_level = linnet.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = linnet.InferenceSession(TWO.SerializeToString(), options)
    for _ in range(3):
        session.run(None, {"x": np.ones((2, 4), np.float32), "w": np.ones(4, np.float32)})
    with open(session.end_profiling()) as f:
        events = json.load(f)
    steps = [e for e in events if e["cat"] == "Node"]
    assert sorted(e["args"]["op_name"] for e in steps) == ["Add"] * 3 + ["Mul"] * 3
    runs = [e for e in events if e["name"] == "model_run"]
    assert len(runs) == 3 and all(e["dur"] >= 0 and e["ph"] == "X" for e in events)
    for step in steps:
        assert any(run["ts"] <= step["ts"] <= run["ts"] + run["dur"] for run in runs), (step, runs)
    assert session.end_profiling() == "" and len(list(tmp_path.iterdir())) == 1


def test_bench(linnet):
    result = linnet.bench(TWO.SerializeToString(), {"x": np.ones((2, 4), np.float32), "w": np.ones(4, np.float32)},
                          runs=20)
    assert 0 < result["min_us"] <= result["p50_us"] <= result["p95_us"]


SETTINGS = """
def ask(onnxruntime, path, feed):
    onnxruntime.set_default_logger_severity(3)
    onnxruntime.set_seed(1)
    assert onnxruntime.get_version_string() and "CPUExecutionProvider" in onnxruntime.get_all_providers()
    options = onnxruntime.SessionOptions()
    options.enable_mem_reuse = options.enable_mem_pattern = False
    options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    options.log_verbosity_level = 0
    options.add_free_dimension_override_by_name("N", 3)
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    session = onnxruntime.InferenceSession(path, sess_options=options, provider_options=[{}],
                                           providers=["CPUExecutionProvider"])
    how = onnxruntime.RunOptions()
    how.log_severity_level = 3
    meta = session.get_modelmeta()
    return (session.run(None, feed, how), [i.shape for i in session.get_inputs()], session.get_overridable_initializers(),
            meta.graph_name, meta.graph_description, meta.version, meta.domain, meta.description)
"""


def test_settings_of_scripts_are_taken(linnet, tmp_path):
    """What scripts set and ask besides running: the same answers from both modules."""
    import onnxruntime

    told = onnx.ModelProto()
    told.CopyFrom(TWO)
    told.domain, told.doc_string, told.graph.doc_string = "org.example", "what it is for", "what it does"
    onnx.save(told, tmp_path / "two.onnx")
    scope = {}
    exec(SETTINGS, scope)
    feed = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "w": np.ones(4, np.float32)}
    (ours, *told), (theirs, *expected) = (scope["ask"](module, str(tmp_path / "two.onnx"), feed)
                                          for module in (linnet, onnxruntime))
    assert told == expected
    for a, b in zip(ours, theirs):
        np.testing.assert_array_equal(a, b)
    linnet.set_seed(0)
    options = linnet.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spining", "0")
    with pytest.raises(linnet.LinnetError, match="allow_spining"):
        linnet.InferenceSession(TWO.SerializeToString(), options)


def test_numbers_of_pythons_own_take_the_inputs_type(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    total, _ = session.run(None, {"x": [[1, 2, 3, 4]], "w": [0.5, 0, 0, 1]})
    np.testing.assert_array_equal(total, [[1.5, 2, 3, 5]])


BINDINGS = """
def bound(ort, model, x, w):
    session = ort.InferenceSession(model, providers=ort.get_available_providers())
    total = ort.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32, "cpu", 0)
    product, seen = np.zeros((3, 4), np.float32), []
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_input("w", "cpu", 0, np.float32, [4], w.ctypes.data)
    binding.bind_output("product", "cpu", 0, np.float32, product.shape, product.ctypes.data)
    binding.bind_ortvalue_output("sum", total)
    for turn in range(3):
        x[0] = w[:] = turn
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        seen += [product.copy(), total.numpy().copy(), *binding.copy_outputs_to_cpu()]
    assert binding.get_outputs()[1].data_ptr() == total.data_ptr() and binding.get_outputs()[0].data_ptr() == product.ctypes.data
    binding.clear_binding_outputs()
    binding.bind_output("sum")
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x[:2]))
    session.run_with_iobinding(binding)
    value = binding.get_outputs()[0]
    about = [value.shape(), value.data_type(), value.element_type(), value.device_name(), value.is_tensor(), value.has_value(),
             value.tensor_size_in_bytes(), value.is_sparse_tensor(), value.is_tensor_sequence(), len(binding.get_outputs())]
    total.update_inplace(product)
    feed = {"x": total, "w": ort.OrtValue.ortvalue_from_numpy(w)}
    values = session.run_with_ort_values(["sum"], feed)
    return seen + [value.numpy(), np.asarray(total), values[0].numpy(), session.run(["product"], feed)[0]], about
"""


def test_bindings_like_onnxruntime(linnet):
    import onnxruntime

    scope = {"np": np}
    exec(BINDINGS, scope)
    inputs = [[np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)] for _ in range(2)]
    (ours, about), (theirs, expected) = (scope["bound"](module, TWO.SerializeToString(), *given)
                                         for module, given in zip((linnet, onnxruntime), inputs))
    assert about == expected and len(ours) == len(theirs) == 16
    for a, b in zip(ours, theirs):
        np.testing.assert_array_equal(a, b)


def test_bindings_that_do_not_fit(linnet):
    session = linnet.InferenceSession(TWO.SerializeToString())
    binding = session.io_binding()
    with pytest.raises(linnet.LinnetError, match="no output is bound"):
        session.run_with_iobinding(binding)
    for bind, words in (
        (lambda: binding.bind_cpu_input("v", np.ones(4)), "'v'"),
        (lambda: binding.bind_output("x"), "'x'"),
        (lambda: binding.bind_output("sum", "cuda"), "cuda"),
        (lambda: binding.bind_output("sum", buffer_ptr=64), "shape"),
        (lambda: linnet.OrtValue.ortvalue_from_numpy(np.ones(2, complex)), "complex"),
    ):
        with pytest.raises(linnet.LinnetError, match=words):
            bind()
    binding.bind_cpu_input("x", np.ones((2, 4), np.float32))
    binding.bind_cpu_input("w", np.ones(4, np.float32))
    for memory in (np.zeros((3, 4), np.float32), np.zeros((2, 4), np.float64), np.zeros(8, np.float32)):
        binding.bind_ortvalue_output("sum", linnet.OrtValue.ortvalue_from_numpy(memory))
        with pytest.raises(linnet.LinnetError, match="'sum'.*holds"):
            session.run_with_iobinding(binding)
        assert not memory.any()


def test_memory_bound_to_an_output_whose_shape_depends_on_data(linnet):
    session = linnet.InferenceSession(POSITIONS.SerializeToString())
    binding, found = session.io_binding(), np.zeros((1, 2), np.int64)
    binding.bind_cpu_input("x", np.float32([0, 1, 0, 2]))
    binding.bind_ortvalue_output("y", linnet.OrtValue.ortvalue_from_numpy(found))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(found, [[1, 3]])
    binding.bind_cpu_input("x", np.float32([0, 1, 0, 0]))
    with pytest.raises(linnet.LinnetError, match="'y'.*holds"):
        session.run_with_iobinding(binding)


def test_results_of_another_run_are_not_written_to(linnet):
    """An output that a later run computes on its way only, and one that is asked for twice."""
    chain = model("chain (float[N] x) => (float[N] a, float[N] y) { a = Softmax (x) y = Softmax (a) }")
    session = linnet.InferenceSession(chain.SerializeToString())
    x = np.arange(4, dtype=np.float32)
    a, y = session.run(None, {"x": x})
    before = a.copy()
    (again, twice) = session.run(["y", "y"], {"x": -x})
    np.testing.assert_array_equal(a, before)
    np.testing.assert_array_equal(again, twice)
    assert not np.array_equal(y, again)


def test_options_of_a_run_end_it(linnet):
    """An endless loop of the model's is ended from another thread; afterwards the session runs again."""
    session, how = linnet.InferenceSession(TURNS.SerializeToString()), linnet.RunOptions()
    feed = turns(2**62)
    end = threading.Timer(0.3, lambda: setattr(how, "terminate", True))
    end.start()
    for _ in range(2):  # the second does not begin
        with pytest.raises(linnet.LinnetError) as caught:
            session.run(None, feed, how)
        assert caught.value.code == 11
    end.join()
    how.terminate = False
    np.testing.assert_array_equal(session.run(None, turns(3), how)[0], [-1, -1])


def in_a_child(work):
    """Whether work() is true in a child of this process."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        right = False
        try:
            right = work()
        finally:
            os._exit(not right)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_child_uses_and_frees_what_it_inherited(linnet, threads):
    options = linnet.SessionOptions()
    options.intra_op_num_threads = threads
    idle = [linnet.InferenceSession(TURNS.SerializeToString(), options)]
    running, how = [linnet.InferenceSession(TURNS.SerializeToString(), options)], linnet.RunOptions()
    idle[0].run(None, turns(2))

    def run_for_ever():
        with pytest.raises(linnet.LinnetError):
            running[0].run(None, turns(2**62), how)

    def child():
        with pytest.raises(linnet.LinnetError, match="forked"):
            running[0].run(None, turns(3))
        running.clear()
        right = idle.pop().run(None, turns(3))[0].tolist() == [-1, -1]
        made = linnet.InferenceSession(TURNS.SerializeToString(), options)
        return right and made.run(None, turns(2))[0].tolist() == [1, 1]

    thread = threading.Thread(target=run_for_ever)
    thread.start()
    while not running[0]._lock.locked():
        pass
    assert in_a_child(child) and in_a_child(child)
    how.terminate = True
    thread.join()
    assert running[0].run(None, turns(3))[0].tolist() == [-1, -1]


def test_convert_rounds_weights(linnet):
    """precision: what the file holds them in; the file shrinks by half of their bytes, and outputs barely change."""
    rng = np.random.default_rng(12)
    proto = model("product (float[3,64] x) => (float[3,64] y) { y = MatMul (x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32), "w"))
    x = rng.standard_normal((3, 64)).astype(np.float32)
    whole, half = (linnet.convert(proto.SerializeToString(), precision=precision) for precision in ("float32", "float16"))
    assert abs(len(whole) - len(half) - 2 * 64 * 64) <= 512
    want, got = (linnet.InferenceSession(data).run(None, {"x": x})[0] for data in (whole, half))
    assert 0 < np.abs(got - want).max() < 1e-3 * np.abs(want).max()
    with pytest.raises(linnet.LinnetError, match="precision"):
        linnet.convert(proto.SerializeToString(), precision="float8")


def test_converted_model_is_kept(linnet, tmp_path):
    options = linnet.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "kept.lnt")
    linnet.InferenceSession(TWO.SerializeToString(), options)
    assert len(linnet.InferenceSession(tmp_path / "kept.lnt").get_outputs()) == 2
