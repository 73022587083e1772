"""Sessions under the names that users of onnxruntime know."""

from __future__ import annotations

import ctypes as c
import math
import os
import queue
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._convert import Source, convert
from ._custom import HostOf
from ._errors import LinnetError, NoSuchFile
from ._log import Log
from ._native import MAX_RANK, Call, ConfigEntry, Error, Tensor, ValueInfo, address, lib
from ._native import SessionOptions as NativeOptions
from ._options import PROVIDER, Provider, RunOptions, SessionOptions, normal_providers
from ._profile import Profile
from ._sequence import Sequences
from ._value import TEXT, IOBinding, OrtValue, as_stored, numpy_type, taken_text, text_array, type_name, type_number

_LNT_MAGIC = b"\x89LNT\r\n\x1a\n"
_ANY_SIZE = (sys.maxsize // 2, c.c_void_p(64))  # for binding before the size of an output is known
_COPIED = 4096  # bytes: to copy an array of so few is sooner than to ask where it is
_INFO, _WARNING = 1, 2

Feed = Mapping[str, Any]


class NodeArg:
    """An input or output: name, shape (None or a name where open), type ("tensor(float)")."""

    def __init__(self, info: ValueInfo) -> None:
        self.name: str = info.name.decode()
        self.shape: list[int | str | None] = [
            info.dims[i] if info.dims[i] >= 0 else (info.dim_names[i] or b"").decode() or None
            for i in range(info.rank if info.rank <= MAX_RANK else 0)
        ]
        self.type: str = type_name(info.dtype)
        self.is_state: bool = info.is_state
        self.dtype: int = info.dtype

    def _learn(self, dtype: int) -> None:
        """What a run told of an output whose type was not known before."""
        if not self.dtype:
            self.dtype, self.type = dtype, type_name(dtype)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class _SequenceArg(NodeArg):
    """An input or output that is a sequence, its type that of its first element."""

    def __init__(self, name: str, first: NodeArg | None) -> None:
        self.name, self.shape, self.is_state, self.dtype = name, [], False, first.dtype if first else 0
        self.type = f"seq({first.type if first else type_name(0)})"


class _Given:
    """An input as it was last given: the array's type and shape, and what the native run is told of them."""

    __slots__ = ("port", "tensor", "dtype", "shape", "own")

    def __init__(self, port: NodeArg, tensor: Tensor) -> None:
        self.port, self.tensor, self.dtype, self.shape = port, tensor, None, None
        self.own: np.ndarray | None = None  # where a small one is copied to

    def describe(self, value: Any) -> np.ndarray:
        """The value as an array that can be read in place, or `own`, which holds it."""
        value = value.numpy() if isinstance(value, OrtValue) else value
        plain = not isinstance(value, (np.ndarray, np.generic))  # Python's numbers have no type to insist on
        array = np.asarray(value, numpy_type(self.port.dtype) if plain else None)
        if not array.flags.c_contiguous or not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="), order="C")
        t = self.tensor
        t.dtype = type_number(array.dtype, self.port.dtype)
        array = as_stored(array, t.dtype)
        t.rank, t.bytes = array.ndim, array.nbytes
        t.dims = (c.c_int64 * MAX_RANK)(*array.shape[:MAX_RANK])
        self.dtype, self.shape, self.own = array.dtype, array.shape, None
        if array.nbytes <= _COPIED:
            array = self.own = array.copy()
        t.data = address(array)
        return array

    def describe_words(self, value: Any) -> tuple[c.Array[c.c_char_p], bool]:
        """Pointers to the words of an input of text, which hold them, and whether its shape is another one."""
        words = text_array(value.numpy() if isinstance(value, OrtValue) else value)
        pointers = (c.c_char_p * max(words.size, 1))(*words.flat)
        t, changed = self.tensor, words.shape != self.shape
        t.dtype, t.rank, t.bytes, t.data = TEXT, words.ndim, words.size * c.sizeof(c.c_char_p), c.addressof(pointers)
        t.dims = (c.c_int64 * MAX_RANK)(*words.shape[:MAX_RANK])
        self.shape = words.shape
        return pointers, changed


class _Slot:
    """An output of the runs to come; dims and dtype are None where its shape is not known before a run."""

    __slots__ = ("number", "port", "dims", "dtype", "place", "own", "is_own")

    def __init__(self, number: int, port: NodeArg, dims: tuple[int, ...] | None, dtype: np.dtype | None) -> None:
        self.number, self.port, self.dims, self.dtype = number, port, dims, dtype
        self.place = None  # in the call's lists; states are kept by the session
        small = dims is not None and math.prod(dims) * dtype.itemsize <= _COPIED
        self.own = np.empty(dims, dtype) if small else None  # where a small one is copied from
        self.is_own = False  # own, or none, is the memory that the call says


class ModelMetadata:
    """What the model says of itself: producer_name, graph_name, domain, description, graph_description, version, and
    custom_metadata_map with the rest."""

    def __init__(self, pairs: dict[str, str]) -> None:
        self.producer_name = pairs.pop("onnx.producer", "").split(" ")[0]
        self.graph_name = pairs.pop("onnx.graph", "")
        self.domain = pairs.pop("onnx.domain", "")
        self.description = pairs.pop("onnx.description", "")
        self.graph_description = pairs.pop("onnx.graph_description", "")
        self.version = int(pairs.pop("onnx.version", 2**63 - 1))
        self.custom_metadata_map: dict[str, str] = {k: v for k, v in pairs.items() if not k.startswith("onnx.")}


def _is_bytes(source: Source) -> bool:
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        raise TypeError(f"a model is a path or bytes, not {type(source).__name__}")
    return isinstance(source, (bytes, bytearray, memoryview))


def _head(path: Any) -> bytes:
    """The first bytes of a file; none of a FIFO or a device, which would have to be waited for."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as e:
        raise NoSuchFile(13, f"{os.fspath(path)}: there is no such file", os.fspath(path)) from e
    with open(opened, "rb") as f:
        return f.read(8) if stat.S_ISREG(os.fstat(f.fileno()).st_mode) else b""


class _Lost:
    """The lock of a session that another thread held when the process was forked."""

    def locked(self) -> bool:
        return True

    def __enter__(self) -> None:
        raise LinnetError(10, "the session was running when this process was forked: make another one")

    def __exit__(self, *_: Any) -> None:
        pass


class _Worker:
    """The thread of a session's asynchronous runs, one after the other; it ends when nothing is left to do."""

    def __init__(self) -> None:
        self._lock, self._tasks, self._alive = threading.Lock(), queue.SimpleQueue(), False

    def add(self, task: Callable[[], None]) -> None:
        with self._lock:
            self._tasks.put(task)
            if not self._alive:
                threading.Thread(target=self._work, name="linnet run_async").start()
                self._alive = True

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._tasks.empty():
                    self._alive = False
                    return
                task = self._tasks.get()
            try:
                task()
            except BaseException:
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            del task


_sessions: weakref.WeakSet[InferenceSession] = weakref.WeakSet()


def _after_fork() -> None:
    for session in _sessions:
        session._worker = _Worker()
        if session._lock.locked():
            session._lock = _Lost()


os.register_at_fork(after_in_child=_after_fork)


class InferenceSession:
    """A model ready to run.

    path_or_bytes: an .onnx or .lnt file, or the bytes of one. .onnx models are converted in memory; extra keyword arguments go to
    linnet.convert (dims, states, keep, ...), and for an .lnt file there are none. providers: others than CPUExecutionProvider
    warn. disabled_optimizers is accepted. Raises NoSuchFile, InvalidProtobuf for what is no model, UnsupportedModel with every node at
    fault, InvalidArgument for options that do not fit."""

    def __init__(self, path_or_bytes: Source, sess_options: SessionOptions | None = None,
                 providers: Sequence[Provider] | None = None, provider_options: Sequence[dict[Any, Any]] | None = None,
                 disabled_optimizers: Iterable[str] | None = None, **conversion: Any) -> None:
        self._model, self._session, self._image = c.c_void_p(), c.c_void_p(), None
        self._lock, self._worker = threading.Lock(), _Worker()
        _sessions.add(self)
        normal_providers(providers, provider_options)
        self._options = sess_options or SessionOptions()
        self._log = Log(self._options._severity(), self._options.logid)
        self._host = HostOf(self._log)
        self._profile = Profile() if self._options.enable_profiling else None
        self._profile_start = self._profile.start_ns if self._profile else time.time_ns()
        self._error = Error()
        self._error_ref = c.byref(self._error)
        begun = time.perf_counter_ns()
        self._open(path_or_bytes, conversion)
        self._create()
        if self._profile:
            self._profile.note("Session", "session_initialization", begun, time.perf_counter_ns())
        self._inputs = [self._describe(lib.lnt_model_input, i) for i in range(lib.lnt_model_input_count(self._model))]
        self._outputs = [self._describe(lib.lnt_model_output, i)
                         for i in range(lib.lnt_model_output_count(self._model))]
        self._sequences = Sequences(self._metadata(), [a.name for a in self._inputs], [a.name for a in self._outputs])
        self._number = {a.name: i for i, a in enumerate(self._inputs)}
        self._output_number = {a.name: i for i, a in enumerate(self._outputs)}
        self._selected = self._wanted = self._asked = self._order = None  # of the outputs
        self._inner: list[str] = []  # values inside the model that the runs to come are asked for
        self._inner_types: dict[str, int] = {}
        self._given: dict[str, _Given] = {}  # by name: inputs of the last run
        self._in_numbers, self._tensors = (c.c_uint32 * 0)(), (Tensor * 0)()
        self._slots: list[_Slot] | None = None  # outputs, once it is known what there is to know before a run
        self._is_set = False  # the native session reads and writes the memory that the run to come wants
        self._gives_state = False  # one of the inputs given, which a run moves on: it is to be set each time

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            lib.lnt_session_destroy(c.byref(self._session))
        if getattr(self, "_model", None):
            lib.lnt_model_destroy(c.byref(self._model))

    def _open(self, source: Source, conversion: dict[str, Any]) -> None:
        options = c.byref(self._host.options)
        in_memory = _is_bytes(source)
        head = bytes(source[:8]) if in_memory else _head(source)
        if head == _LNT_MAGIC and conversion:
            raise LinnetError(1, f"{', '.join(conversion)}: the model is converted already; that is decided when it is")
        if head == _LNT_MAGIC and not in_memory:
            self._check(lib.lnt_model_create(os.fsencode(source), options, c.byref(self._model), self._error_ref))
            return
        if head != _LNT_MAGIC:
            conversion.setdefault("opt", self._options._opt())
            conversion["dims"] = {**self._options._dims, **(conversion.get("dims") or {})}
            begun = time.perf_counter()
            source = convert(source, self._options.optimized_model_filepath or None, **conversion)
            self._log(_INFO, f"converted in {time.perf_counter() - begun:.3f} s to {len(source)} bytes")
        self._image = np.frombuffer(bytes(source), np.uint8)
        self._check(lib.lnt_model_create_from_memory(self._image.ctypes.data, self._image.size, options, c.byref(self._model),
                                                     self._error_ref))

    def _create(self) -> None:
        o = self._options
        config = o._entries()
        entries = (ConfigEntry * len(config))(*config)
        native = NativeOptions(
            struct_bytes=c.sizeof(NativeOptions),
            intra_op_num_threads=o.intra_op_num_threads,
            inter_op_num_threads=o.inter_op_num_threads,
            execution_mode=int(o.execution_mode),
            disable_mem_pattern=not (o.enable_mem_pattern and o.enable_mem_reuse),
            enable_profiling=o.enable_profiling,
            log_severity_level=0,  # the log looks at it
            level=o.level.encode() or None,
            seed=o.seed,
            config=entries,
            n_config=len(entries),
        )
        self._check(lib.lnt_session_create(self._model, c.byref(native), c.byref(self._session), self._error_ref))

    def _check(self, status: int) -> None:
        """Raises what the call told, or what an operator of Python's raised within it."""
        if not status:
            return
        failure = self._host.take_failure()
        if failure is not None and not isinstance(failure, Exception):
            raise failure  # KeyboardInterrupt, SystemExit
        raise LinnetError(status, self._error.message.decode(errors="replace")) from failure

    def _describe(self, ask: Callable[..., int], i: int) -> NodeArg:
        info = ValueInfo()
        ask(self._model, i, c.byref(info))
        return NodeArg(info)

    # ---- what onnxruntime's session answers ----

    def get_inputs(self) -> list[NodeArg]:
        """Those that a run is given, without states."""
        fed = [a for a in self._inputs if not a.is_state]
        return self._as_the_model_has_them(self._sequences.input_ports(fed)) if self._sequences else fed

    def get_outputs(self) -> list[NodeArg]:
        """All, states too, in the model's order."""
        return self._as_the_model_has_them(self._sequences.output_ports(self._outputs)) if self._sequences else list(self._outputs)

    @staticmethod
    def _as_the_model_has_them(ports: Iterable[tuple[str | None, NodeArg | None]]) -> list[NodeArg]:
        return [port if name is None else _SequenceArg(name, port) for name, port in ports]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return ModelMetadata(self._metadata())

    def _metadata(self) -> dict[str, str]:
        pairs, key, text = {}, c.c_char_p(), c.c_char_p()
        for i in range(lib.lnt_model_metadata_count(self._model)):
            lib.lnt_model_metadata(self._model, i, c.byref(key), c.byref(text))
            pairs[key.value.decode()] = text.value.decode()
        return pairs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers are constants of the file; those that `overridable` names are inputs like any other."""
        return []

    def get_providers(self) -> list[str]:
        """The CPU's, whatever was asked for."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """None, by provider."""
        return {PROVIDER: {}}

    def set_providers(self, providers: Sequence[Provider] | None = None,
                      provider_options: Sequence[dict[Any, Any]] | None = None) -> None:
        """Warns of every provider but the CPU's, as when a session is made; nothing changes."""
        normal_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def enable_fallback(self) -> None:
        """There is nothing to fall back to."""

    def get_session_options(self) -> SessionOptions:
        """Those it was made with."""
        return self._options

    def get_profiling_start_time_ns(self) -> int:
        """Nanoseconds since 1970 when the profile's time was 0."""
        return self._profile_start

    def end_profiling(self) -> str:
        """Writes the steps of all runs as a Chrome trace and ends the profile; returns the file's name, "" where there is none."""
        with self._lock:
            profile, self._profile = self._profile, None
            if profile is None:
                self._log(_WARNING, "there is no profile: enable_profiling was not set, or it has ended")
                return ""
            return profile.write(self._options.profile_file_prefix, self._error)

    def reset_states(self) -> None:
        """States back to zeros."""
        with self._lock:
            self._check(lib.lnt_state_reset(self._session, self._error_ref))
            self._slots = None

    # ---- running ----

    def run(self, output_names: Sequence[str] | None, input_feed: Feed, run_options: RunOptions | None = None) -> list[Any]:
        """Outputs named (None: all), in that order, as numpy arrays. Inputs are read in place.

        input_feed: by name arrays, or what numpy makes one of, of the input's type and of a shape that get_inputs() allows. A name may also
        be that of a value inside the model that convert's `keep` kept. Sequences are lists, of the lengths that the model was converted
        for. Raises InvalidArgument for names, shapes and types that do
        not fit, and what linnet.register says where an operator of Python's raises."""
        if not self._sequences:
            return self._run(output_names, input_feed, {}, run_options)
        arrays = self._run(self._sequences.names(output_names), self._sequences.feed(input_feed), {}, run_options)
        return self._sequences.gather(output_names, arrays)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Feed,
                  callback: Callable[[list[np.ndarray], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        """Returns at once; then callback(outputs, user_data, "") or, if the run failed, callback([], user_data, message) is called from
        another thread. The runs of a session follow one another in the order they were asked for. Arrays of input_feed are
        read when it is their turn, and must not change before. Raises InvalidArgument where an input is missing."""
        missing = [a.name for a in self.get_inputs() if a.name not in input_feed]
        if missing:
            raise LinnetError(1, f"inputs {missing} are missing")
        names, feed = list(output_names) if output_names else None, dict(input_feed)

        def task() -> None:
            try:
                results, text = self.run(names, feed, run_options), ""
            except Exception as e:
                results, text = [], str(e) or type(e).__name__
            callback(results, user_data, text)

        self._worker.add(task)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """As run(), with OrtValues in and out."""
        arrays = self._run(output_names, input_dict_ort_values, {}, run_options)
        return [OrtValue(array, self._type_of(name)) for name, array in zip(output_names or self._output_number, arrays)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to be bound once for many runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Reads and writes the memory that is bound; the outputs are iobinding.get_outputs(). Raises as run() does, and InvalidArgument
        where memory bound to an output is not of its shape and type."""
        if not iobinding._outputs:
            raise LinnetError(1, "no output is bound")
        memory = {name: value.numpy() for name, value in iobinding._outputs.items() if value}
        arrays = self._run(list(iobinding._outputs), iobinding._inputs, memory, run_options)
        iobinding._results = [OrtValue(array, self._type_of(name)) for name, array in zip(iobinding._outputs, arrays)]

    def _type_of(self, name: str) -> int:
        number = self._output_number.get(name)
        return self._inner_types[name] if number is None else self._outputs[number].dtype

    def _run(self, output_names: Sequence[str] | None, feed: Feed, memory: dict[str, np.ndarray],
             run_options: RunOptions | None) -> list[np.ndarray]:
        """memory: arrays by output name to be written to, for those that do not get new ones."""
        with self._lock:
            self._select(output_names)
            kept = self._feed(feed)
            if self._slots is None:
                self._bind()
            arrays = self._prepare(memory)
            if run_options or self._profile:
                status = self._run_with(run_options)
            elif self._is_set:
                status = lib.lnt_run(self._session, self._error_ref)
            else:
                status = lib.lnt_python_run(self._session, self._call, self._error_ref)
                self._is_set = not (status or kept or self._gives_state)
            if status:
                self._check(status)
            del kept
            taken = [self._take(slot, array) if slot.dims is None else array.copy() if array is slot.own else array
                     for slot, array in zip(self._slots, arrays)]
            if self._inner:
                taken += [self._take_inner(name) for name in self._inner]
            if run_options and run_options._trims():
                self._check(lib.lnt_session_trim(self._session, self._error_ref))
                self._slots = None
            return taken if self._order is None else [taken[k] for k in self._order]

    def _run_with(self, options: RunOptions | None) -> int:
        begin = time.perf_counter_ns()
        self._log.severity = self._options._severity()
        if options:
            if options.log_severity_level >= 0:
                self._log.severity = options.log_severity_level
            with options._running(self._session):
                status = lib.lnt_python_run(self._session, self._call, self._error_ref)
        else:
            status = lib.lnt_python_run(self._session, self._call, self._error_ref)
        if self._profile:
            self._profile.note_run(self._session, begin)
        return status

    def _select(self, names: Sequence[str] | None) -> None:
        if self._wanted is not None and (names or None) == self._asked:
            return
        known = self._output_number
        inner = list(dict.fromkeys(n for n in names or () if n not in known))
        for name in inner:
            self._keep(name)
        wanted = [known[n] for n in names if n in known] if names else list(range(len(self._outputs)))
        numbers = sorted(set(wanted))
        selected = None if len(numbers) == len(self._outputs) else tuple(numbers)
        if selected != self._selected or self._wanted is None:
            native = None if selected is None else (c.c_uint32 * len(selected))(*selected)
            self._check(lib.lnt_select_outputs(self._session, native, len(selected or ()), self._error_ref))
            self._selected, self._slots = selected, None
        self._wanted, self._inner = numbers, inner
        places = {n: numbers.index(known[n]) if n in known else len(numbers) + inner.index(n) for n in names or ()}
        self._order = None if not names or (wanted == numbers and not inner) else [places[n] for n in names]
        self._asked = list(names) if names else None

    def _keep(self, name: str) -> None:
        """A value inside the model is kept for the runs to come."""
        if name in self._inner_types:
            return
        if lib.lnt_keep_value(self._session, os.fsencode(name), self._error_ref):
            raise LinnetError(14, f"the model has no output {name!r}; it has {', '.join(self._output_number)}. A value inside the model is "
                                  "one where keep=[name], as it was converted, says so")
        self._inner_types[name] = 0
        self._slots = None

    def _take_inner(self, name: str) -> np.ndarray:
        tensor = Tensor()
        self._check(lib.lnt_get_value(self._session, os.fsencode(name), c.byref(tensor), self._error_ref))
        self._inner_types[name] = tensor.dtype
        array = np.empty(tuple(tensor.dims[: tensor.rank]), numpy_type(tensor.dtype))
        if array.nbytes:
            c.memmove(array.ctypes.data, tensor.data, array.nbytes)
        return array

    def _feed(self, feed: Feed) -> list[Any]:
        """The arrays that the run reads in place, and pointers to text."""
        if feed.keys() != self._given.keys():
            self._give(feed)
        kept = []
        for name, value in feed.items():
            given = self._given[name]
            if given.port.dtype == TEXT:
                pointers, changed = given.describe_words(value)
                self._slots = None if changed else self._slots
                kept.append(pointers)
                continue
            if not (type(value) is np.ndarray and value.dtype is given.dtype and value.shape == given.shape):
                kept.append(given.describe(value))
                self._slots = None
            elif given.own is not None:
                given.own[...] = value
            else:
                array = np.ascontiguousarray(value)
                given.tensor.data = address(array)
                kept.append(array)
        if kept:
            self._is_set = False
        return kept

    def _give(self, names: Iterable[str]) -> None:
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
        self._gives_state = any(given.port.is_state for given in self._given.values())
        self._slots = None

    def _bind(self) -> None:
        """Finds out which outputs' shapes are known before the run."""
        size, anywhere = _ANY_SIZE
        for i, tensor in zip(self._in_numbers, self._tensors):
            self._check(lib.lnt_set_input(self._session, i, c.byref(tensor), self._error_ref))
        for i in self._wanted:
            if not self._outputs[i].is_state and self._outputs[i].dtype != TEXT:
                self._check(lib.lnt_set_output(self._session, i, anywhere, size, self._error_ref))
        self._check(lib.lnt_bind(self._session, self._error_ref))
        slots = [self._slot(i) for i in self._wanted]
        written = [slot for slot in slots if not slot.port.is_state and slot.port.dtype != TEXT]
        n = len(written)
        self._memory, self._sizes = (c.c_void_p * n)(), (c.c_size_t * n)()
        for k, slot in enumerate(written):
            slot.place = k
        self._out_numbers = (c.c_uint32 * n)(*[slot.number for slot in written])
        self._call = c.byref(Call(len(self._tensors), n, self._in_numbers, self._tensors, self._out_numbers, self._memory,
                                  self._sizes))
        self._slots, self._is_set = slots, False

    def _slot(self, i: int) -> _Slot:
        port, tensor = self._outputs[i], Tensor()
        if port.dtype == TEXT:
            return _Slot(i, port, None, None)
        known = lib.lnt_get_output(self._session, i, c.byref(tensor), self._error_ref) == 0 and not port.is_state
        port._learn(tensor.dtype if known else 0)
        return _Slot(i, port, tuple(tensor.dims[: tensor.rank]) if known else None, numpy_type(tensor.dtype) if known else None)

    def _prepare(self, memory: dict[str, np.ndarray]) -> list[np.ndarray | None]:
        """For each output the memory given, the slot's own or new memory where the shape is known before the run, else None."""
        arrays = []
        for slot in self._slots:
            array = memory.get(slot.port.name) if memory else None
            if array is not None:
                self._check_memory(slot.port, array, array.shape if slot.dims is None else slot.dims)
            elif slot.own is not None:
                array = slot.own
            elif slot.dims is not None:
                array = np.empty(slot.dims, slot.dtype)
            if slot.place is not None and not (slot.is_own and array is slot.own):
                self._memory[slot.place] = address(array) if array is not None else None
                self._sizes[slot.place] = array.nbytes if array is not None else 0
                slot.is_own, self._is_set = array is slot.own, False
            arrays.append(array)
        return arrays

    @staticmethod
    def _check_memory(port: NodeArg, array: np.ndarray, shape: tuple[int, ...]) -> None:
        if array.shape != shape or (port.dtype and array.dtype != numpy_type(port.dtype)):
            raise LinnetError(5, f"output {port.name!r} is {port.type} of shape {list(shape)}, the memory bound to it holds "
                                 f"{array.dtype} of shape {list(array.shape)}")

    def _take(self, slot: _Slot, array: np.ndarray | None) -> np.ndarray:
        tensor = Tensor()
        self._check(lib.lnt_get_output(self._session, slot.number, c.byref(tensor), self._error_ref))
        shape = tuple(tensor.dims[: tensor.rank])
        slot.port._learn(tensor.dtype)
        if tensor.dtype == TEXT:
            if array is not None:
                raise LinnetError(1, f"output {slot.port.name!r} is text, for which no memory can be bound")
            return taken_text(tensor)
        if array is None:
            array = np.empty(shape, numpy_type(tensor.dtype))
        self._check_memory(slot.port, array, shape)
        if array.nbytes and array.ctypes.data != tensor.data:
            c.memmove(array.ctypes.data, tensor.data, array.nbytes)
        return array


def bench(path_or_bytes: Source, inputs: Feed, *, threads: int = 1, runs: int = 100, warmup: int = 10,
          **conversion: Any) -> dict[str, float]:
    """Times a model on given inputs; microseconds of load, first run and the percentiles of `runs` runs. Raises as InferenceSession
    and its run() do."""
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
