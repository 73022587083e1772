"""Sessions under the names that users of onnxruntime know."""

import contextlib
import ctypes as c
import enum
import os
import stat
import threading
import time
import weakref

import numpy as np

from ._convert import convert
from ._native import MAX_RANK, Call, ConfigEntry, Error, LinnetError, Tensor, ValueInfo, address, check, lib
from ._native import SessionOptions as NativeOptions
from ._value import IOBinding, OrtValue, numpy_type, type_name, type_number

_LNT_MAGIC = b"\x89LNT\r\n\x1a\n"
# Entries of onnxruntime's that have nothing to say here; any other unknown one is refused.
_IDLE_ENTRIES = {
    "session.disable_prepacking", "session.dynamic_block_base", "session.force_spinning_stop",
    "session.inter_op.allow_spinning", "session.intra_op_thread_affinities", "session.load_model_format",
    "session.set_denormal_as_zero", "session.use_device_allocator_for_initializers", "session.use_env_allocators",
    "session.use_ort_model_bytes_directly",
}
_ANY_SIZE = (1 << 62, c.c_void_p(64))  # for binding before the size of an output is known


_default_seed = 0


def set_seed(seed):
    """Seed of the random operators of sessions whose options are made from now on."""
    global _default_seed
    _default_seed = int(seed)


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL  # of .onnx models
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = True  # it always is
        self.use_per_session_threads = True
        self.optimized_model_filepath = ""  # where the .lnt file of a converted model goes
        self.enable_profiling = False
        self.profile_file_prefix = "linnet_profile"
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.seed = _default_seed
        self.level = None  # "scalar", "avx2", ...; None: the best
        self._config = {}
        self._dims = {}

    def add_free_dimension_override_by_name(self, name, extent):
        """Fixes an open extent of an .onnx model."""
        self._dims[name] = int(extent)

    def add_session_config_entry(self, key, value):
        self._config[key] = str(value)

    def get_session_config_entry(self, key):
        return self._config[key]


class RunOptions:
    def __init__(self):
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = True  # it always is so
        self._config = {}
        self._terminate, self._sessions, self._lock = False, [], threading.Lock()

    @property
    def terminate(self):
        """True, set from any thread, ends the runs that have these options, and lets none begin. Where one is just
        ending by itself the session's next run may end instead."""
        return self._terminate

    @terminate.setter
    def terminate(self, wanted):
        with self._lock:
            self._terminate = bool(wanted)
            for session in self._sessions if wanted else ():
                lib.lnt_cancel(session)

    @contextlib.contextmanager
    def _running(self, session):
        with self._lock:
            if self._terminate:
                raise LinnetError(11, "the run's options say terminate")
            self._sessions.append(session)
        try:
            yield
        finally:
            with self._lock:
                self._sessions.remove(session)

    def add_run_config_entry(self, key, value):
        self._config[key] = str(value)

    def get_run_config_entry(self, key):
        return self._config[key]


class NodeArg:
    """An input or output: name, shape (None or a name where open), type ("tensor(float)")."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.shape = [
            info.dims[i] if info.dims[i] >= 0 else (info.dim_names[i] or b"").decode() or None
            for i in range(info.rank if info.rank <= MAX_RANK else 0)
        ]
        self.type = type_name(info.dtype)
        self.is_state = info.is_state
        self.dtype = info.dtype

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class _Given:
    """An input as it was last given: the array's type and shape, and what the native run is told of them."""

    __slots__ = ("port", "tensor", "dtype", "shape")

    def __init__(self, port, tensor):
        self.port, self.tensor, self.dtype, self.shape = port, tensor, None, None

    def describe(self, value):
        """The value as an array that can be read in place."""
        value = value.numpy() if isinstance(value, OrtValue) else value
        plain = not isinstance(value, (np.ndarray, np.generic))  # Python's numbers have no type to insist on
        array = np.asarray(value, numpy_type(self.port.dtype) if plain else None)
        if not array.flags.c_contiguous or not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="), order="C")
        t = self.tensor
        t.dtype, t.rank, t.bytes = type_number(array.dtype, self.port.dtype), array.ndim, array.nbytes
        t.dims = (c.c_int64 * MAX_RANK)(*array.shape[:MAX_RANK])
        self.dtype, self.shape = array.dtype, array.shape
        return array


class _Slot:
    """An output of the runs to come; dims and dtype are None where its shape is not known before a run."""

    __slots__ = ("number", "port", "dims", "dtype", "place")

    def __init__(self, number, port, dims, dtype):
        self.number, self.port, self.dims, self.dtype = number, port, dims, dtype
        self.place = None  # in the call's lists; states are kept by the session


class ModelMetadata:
    def __init__(self, pairs):
        self.producer_name = pairs.pop("onnx.producer", "").split(" ")[0]
        self.graph_name = pairs.pop("onnx.graph", "")
        self.domain = pairs.pop("onnx.domain", "")
        self.description = pairs.pop("onnx.description", "")
        self.graph_description = pairs.pop("onnx.graph_description", "")
        self.version = int(pairs.pop("onnx.version", 2**63 - 1))
        self.custom_metadata_map = {k: v for k, v in pairs.items() if not k.startswith("onnx.")}


def _optimization(level):
    level = int(level)
    return "none" if level == 0 else "basic" if level == 1 else "all"


def _head(path):
    """The first bytes of a file; none of a FIFO or a device, which would have to be waited for."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
        return f.read(8) if stat.S_ISREG(os.fstat(f.fileno()).st_mode) else b""


class _Lost:
    """The lock of a session that another thread held when the process was forked."""

    def locked(self):
        return True

    def __enter__(self):
        raise LinnetError(10, "the session was running when this process was forked: make another one")

    def __exit__(self, *_):
        pass


_sessions = weakref.WeakSet()


def _after_fork():
    for session in _sessions:
        if session._lock.locked():
            session._lock = _Lost()


os.register_at_fork(after_in_child=_after_fork)


class InferenceSession:
    """A model ready to run.

    path_or_bytes: an .onnx or .lnt file, or the bytes of one. .onnx models are converted in memory; extra keyword
    arguments go to linnet.convert (dims, states, keep, ...). providers is accepted and not looked at."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **conversion):
        self._model, self._session, self._image = c.c_void_p(), c.c_void_p(), None
        self._lock = threading.Lock()
        _sessions.add(self)
        self._options = sess_options or SessionOptions()
        self._error = Error()
        self._open(path_or_bytes, conversion)
        self._create()
        self._inputs = [self._describe(lib.lnt_model_input, i) for i in range(lib.lnt_model_input_count(self._model))]
        self._outputs = [self._describe(lib.lnt_model_output, i)
                         for i in range(lib.lnt_model_output_count(self._model))]
        self._number = {a.name: i for i, a in enumerate(self._inputs)}
        self._output_number = {a.name: i for i, a in enumerate(self._outputs)}
        self._error_ref = c.byref(self._error)
        self._selected = self._wanted = self._asked = self._order = None  # of the outputs
        self._given = {}  # by name: inputs of the last run
        self._in_numbers, self._tensors = (c.c_uint32 * 0)(), (Tensor * 0)()
        self._slots = None  # outputs, once it is known what there is to know before a run

    def __del__(self):
        if getattr(self, "_session", None):
            lib.lnt_session_destroy(c.byref(self._session))
        if getattr(self, "_model", None):
            lib.lnt_model_destroy(c.byref(self._model))

    def _open(self, source, conversion):
        if isinstance(source, (bytes, bytearray, memoryview)):
            head = bytes(source[:8])
        else:
            head = _head(source)
        if head == _LNT_MAGIC and not isinstance(source, (bytes, bytearray, memoryview)):
            check(lib.lnt_model_create(os.fsencode(source), None, c.byref(self._model), c.byref(self._error)),
                  self._error)
            return
        if head != _LNT_MAGIC:
            conversion.setdefault("opt", _optimization(self._options.graph_optimization_level))
            conversion["dims"] = {**self._options._dims, **(conversion.get("dims") or {})}
            source = convert(source, self._options.optimized_model_filepath or None, **conversion)
        self._image = np.frombuffer(bytes(source), np.uint8)
        check(lib.lnt_model_create_from_memory(self._image.ctypes.data, self._image.size, None, c.byref(self._model),
                                        c.byref(self._error)), self._error)

    def _create(self):
        o = self._options
        config = [(k.encode(), v.encode()) for k, v in o._config.items() if k not in _IDLE_ENTRIES]
        entries = (ConfigEntry * len(config))(*config)
        native = NativeOptions(
            struct_bytes=c.sizeof(NativeOptions),
            intra_op_num_threads=o.intra_op_num_threads,
            inter_op_num_threads=o.inter_op_num_threads,
            execution_mode=int(o.execution_mode),
            disable_mem_pattern=not (o.enable_mem_pattern and o.enable_mem_reuse),
            enable_profiling=o.enable_profiling,
            log_severity_level=o.log_severity_level,
            level=o.level.encode() if o.level else None,
            seed=o.seed,
            config=entries,
            n_config=len(entries),
        )
        check(lib.lnt_session_create(self._model, c.byref(native), c.byref(self._session), c.byref(self._error)),
              self._error)

    def _describe(self, ask, i):
        info = ValueInfo()
        ask(self._model, i, c.byref(info))
        return NodeArg(info)

    # ---- what onnxruntime's session answers ----

    def get_inputs(self):
        return [a for a in self._inputs if not a.is_state]

    def get_outputs(self):
        return list(self._outputs)

    def get_modelmeta(self):
        pairs, key, text = {}, c.c_char_p(), c.c_char_p()
        for i in range(lib.lnt_model_metadata_count(self._model)):
            lib.lnt_model_metadata(self._model, i, c.byref(key), c.byref(text))
            pairs[key.value.decode()] = text.value.decode()
        return ModelMetadata(pairs)

    def get_overridable_initializers(self):
        """None: initializers are constants of the file; those that `overridable` names are inputs like any other."""
        return []

    def get_providers(self):
        return ["CPUExecutionProvider"]

    def get_provider_options(self):
        return {"CPUExecutionProvider": {}}

    def set_providers(self, providers=None, provider_options=None):
        """Accepted and not looked at, as when a session is made."""

    def disable_fallback(self):
        """There is nothing to fall back to."""

    def enable_fallback(self):
        """There is nothing to fall back to."""

    def get_session_options(self):
        return self._options

    def end_profiling(self):
        """Writes the steps of the last run as a Chrome trace; returns the file's name."""
        path = f"{self._options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        check(lib.lnt_trace_write(self._session, os.fsencode(path), c.byref(self._error)), self._error)
        return path

    def reset_states(self):
        with self._lock:
            check(lib.lnt_state_reset(self._session, c.byref(self._error)), self._error)
            self._slots = None

    # ---- running ----

    def run(self, output_names, input_feed, run_options=None):
        """Outputs named (None: all), in that order, as numpy arrays. Inputs are read in place."""
        return self._run(output_names, input_feed, {}, run_options)

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        """The same with OrtValues in and out."""
        arrays = self._run(output_names, input_dict_ort_values, {}, run_options)
        names = output_names or list(self._output_number)
        return [OrtValue(array, self._outputs[self._output_number[name]].dtype) for name, array in zip(names, arrays)]

    def io_binding(self):
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Reads and writes the memory that is bound; the outputs are iobinding.get_outputs()."""
        if not iobinding._outputs:
            raise LinnetError(1, "no output is bound")
        memory = {name: value.numpy() for name, value in iobinding._outputs.items() if value}
        arrays = self._run(list(iobinding._outputs), iobinding._inputs, memory, run_options)
        iobinding._results = [OrtValue(array, self._outputs[self._output_number[name]].dtype)
                              for name, array in zip(iobinding._outputs, arrays)]

    def _run(self, output_names, feed, memory, run_options):
        """memory: arrays by output name to be written to, for those that do not get new ones."""
        with self._lock:
            self._select(output_names)
            kept = self._feed(feed)
            if self._slots is None:
                self._bind()
            arrays = self._prepare(memory)
            if run_options:
                with run_options._running(self._session):
                    status = lib.lnt_python_run(self._session, self._call, self._error_ref)
            else:
                status = lib.lnt_python_run(self._session, self._call, self._error_ref)
            check(status, self._error)
            del kept
            taken = [array if slot.dims is not None else self._take(slot, array)
                     for slot, array in zip(self._slots, arrays)]
            return taken if self._order is None else [taken[k] for k in self._order]

    def _select(self, names):
        if self._wanted is not None and (names or None) == self._asked:
            return
        if not names:
            wanted = list(range(len(self._outputs)))
        else:
            known = self._output_number
            missing = [n for n in names if n not in known]
            if missing:
                raise LinnetError(14, f"the model has no output {missing[0]!r}; it has {', '.join(known)}")
            wanted = [known[n] for n in names]
        numbers = sorted(set(wanted))
        selected = None if len(numbers) == len(self._outputs) else tuple(numbers)
        if selected != self._selected or self._wanted is None:
            native = None if selected is None else (c.c_uint32 * len(selected))(*selected)
            check(lib.lnt_select_outputs(self._session, native, len(selected or ()), self._error_ref), self._error)
            self._selected, self._wanted, self._slots = selected, numbers, None
        self._order = None if wanted == numbers else [numbers.index(i) for i in wanted]
        self._asked = list(names) if names else None

    def _feed(self, feed):
        """The arrays that the run reads in place."""
        if len(feed) != len(self._given) or any(name not in self._given for name in feed):
            self._give(feed)
        kept = []
        for name, value in feed.items():
            given = self._given[name]
            if not (type(value) is np.ndarray and value.dtype is given.dtype and value.shape == given.shape
                    and value.flags.c_contiguous):
                value = given.describe(value)
                self._slots = None
            given.tensor.data = address(value)
            kept.append(value)
        return kept

    def _give(self, names):
        """The runs to come are given these inputs. Others were never given, if the outputs do not need them: the session
        would read where they once were."""
        for name, given in self._given.items():
            if name not in names and not given.port.is_state:
                raise LinnetError(1, f"input {name!r} is missing")
        for name in names:
            if name not in self._number:
                raise LinnetError(14, f"the model has no input {name!r}; it has {', '.join(self._number)}")
        numbers = [self._number[name] for name in names]
        self._in_numbers, self._tensors = (c.c_uint32 * len(numbers))(*numbers), (Tensor * len(numbers))()
        self._given = {name: _Given(self._inputs[i], tensor) for name, i, tensor in zip(names, numbers, self._tensors)}
        self._slots = None

    def _bind(self):
        """Finds out which outputs' shapes are known before the run."""
        size, anywhere = _ANY_SIZE
        for i, tensor in zip(self._in_numbers, self._tensors):
            check(lib.lnt_set_input(self._session, i, c.byref(tensor), self._error_ref), self._error)
        for i in self._wanted:
            if not self._outputs[i].is_state:
                check(lib.lnt_set_output(self._session, i, anywhere, size, self._error_ref), self._error)
        check(lib.lnt_bind(self._session, self._error_ref), self._error)
        slots = [self._slot(i) for i in self._wanted]
        written = [slot for slot in slots if not slot.port.is_state]
        n = len(written)
        self._memory, self._sizes = (c.c_void_p * n)(), (c.c_size_t * n)()
        for k, slot in enumerate(written):
            slot.place = k
        self._out_numbers = (c.c_uint32 * n)(*[slot.number for slot in written])
        self._call = c.byref(Call(len(self._tensors), n, self._in_numbers, self._tensors, self._out_numbers, self._memory,
                                  self._sizes))
        self._slots = slots

    def _slot(self, i):
        port, tensor = self._outputs[i], Tensor()
        known = lib.lnt_get_output(self._session, i, c.byref(tensor), self._error_ref) == 0 and not port.is_state
        return _Slot(i, port, tuple(tensor.dims[: tensor.rank]) if known else None, numpy_type(tensor.dtype) if known else None)

    def _prepare(self, memory):
        """For each output the memory given, new memory where the shape is known before the run, else None."""
        arrays = []
        for slot in self._slots:
            array = memory.get(slot.port.name) if memory else None
            if array is not None:
                self._check_memory(slot.port, array, array.shape if slot.dims is None else slot.dims)
            elif slot.dims is not None:
                array = np.empty(slot.dims, slot.dtype)
            if slot.place is not None:
                self._memory[slot.place] = address(array) if array is not None else None
                self._sizes[slot.place] = array.nbytes if array is not None else 0
            arrays.append(array)
        return arrays

    @staticmethod
    def _check_memory(port, array, shape):
        if array.dtype != numpy_type(port.dtype) or array.shape != shape:
            raise LinnetError(5, f"output {port.name!r} is {port.type} of shape {list(shape)}, the memory bound to it holds "
                                 f"{array.dtype} of shape {list(array.shape)}")

    def _take(self, slot, array):
        tensor = Tensor()
        check(lib.lnt_get_output(self._session, slot.number, c.byref(tensor), self._error_ref), self._error)
        shape = tuple(tensor.dims[: tensor.rank])
        if array is None:
            array = np.empty(shape, numpy_type(tensor.dtype))
        self._check_memory(slot.port, array, shape)
        if array.nbytes and array.ctypes.data != tensor.data:
            c.memmove(array.ctypes.data, tensor.data, array.nbytes)
        return array


def bench(path_or_bytes, inputs, *, threads=1, runs=100, warmup=10, **conversion):
    """Times a model on given inputs; microseconds of load, first run and the percentiles of `runs` runs."""
    options = SessionOptions()
    options.intra_op_num_threads = threads
    start = time.perf_counter()
    session = InferenceSession(path_or_bytes, options, **conversion)
    loaded = time.perf_counter()
    session.run(None, inputs)
    first = time.perf_counter()
    for _ in range(warmup):
        session.run(None, inputs)
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - begin) * 1e6)
    return {
        "load_us": (loaded - start) * 1e6,
        "first_us": (first - loaded) * 1e6,
        "min_us": min(times),
        "p50_us": float(np.percentile(times, 50)),
        "p95_us": float(np.percentile(times, 95)),
        "mean_us": float(np.mean(times)),
        "std_us": float(np.std(times)),
        "threads": threads,
    }
