"""Options of sessions and runs, and the providers that a session is asked for."""

from __future__ import annotations

import contextlib
import difflib
import enum
import operator
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Union

from ._errors import InvalidArgument, LinnetError, NotImplemented
from ._log import default_severity
from ._native import lib

PROVIDER = "CPUExecutionProvider"
Provider = Union[str, "tuple[str, dict[Any, Any]]"]

# Entries that the library takes.
_ENTRIES = {"session.intra_op.allow_spinning"}
# Entries of onnxruntime's that have nothing to say here; any other unknown one is refused.
_IDLE_ENTRIES = {
    "ep.context_enable", "ep.context_embed_mode", "ep.context_file_path", "ep.share_ep_contexts", "ep.stop_share_ep_contexts",
    "mlas.disable_kleidiai", "mlas.enable_gemm_fastmath_arm64_bfloat16", "optimization.disable_specified_optimizers",
    "optimization.enable_gelu_approximation", "optimization.memory_optimizer_config", "optimization.minimal_build_optimizations",
    "session.allow_released_opsets_only", "session.collect_node_memory_stats_to_file", "session.debug_layout_transformation",
    "session.disable_aot_function_inlining", "session.disable_cpu_ep_fallback", "session.disable_double_qdq_remover",
    "session.disable_ep_context_embed_mode", "session.disable_model_compile", "session.disable_prepacking",
    "session.disable_quant_qdq", "session.disable_specified_optimizers", "session.dynamic_block_base",
    "session.enable_dq_matmulnbits_fusion", "session.enable_gelu_approximation", "session.enable_quant_qdq_cleanup",
    "session.force_spinning_stop", "session.inter_op.allow_spinning", "session.intra_op_thread_affinities",
    "session.load_model_format", "session.model_external_initializers_file_folder_path",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes", "session.qdq_matmulnbits_accuracy_level",
    "session.qdqisint8allowed", "session.record_ep_graph_assignment_info", "session.save_external_prepacked_constant_initializers",
    "session.save_model_format", "session.set_denormal_as_zero", "session.strict_shape_type_inference",
    "session.use_device_allocator_for_initializers", "session.use_env_allocators",
    "session.use_ort_model_bytes_directly", "session.use_ort_model_bytes_for_initializers",
    "session.x64quantprecision",
}
_TRIM = "memory.enable_memory_arena_shrinkage"
_IDLE_RUN_ENTRIES = {"disable_synchronize_execution_providers", "ep.dynamic.workload_type", "gpu_graph_id",
                     "qnn.htp_perf_mode", "qnn.htp_perf_mode_post_run", "qnn.rpc_control_latency"}

_default_seed = 0


def set_seed(seed: int) -> None:
    """Seed of the random operators of sessions whose options are made from now on."""
    global _default_seed
    _default_seed = int(seed)


class GraphOptimizationLevel(enum.IntEnum):
    """How far an .onnx model is rewritten when it is converted: as `linnet convert --opt none`, `basic`, and `all` for the rest."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Steps one after the other, or side by side where they do not depend on each other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def suggestion(name: str, known: Any) -> str:
    """Words that end a message about a name nobody knows."""
    near = difflib.get_close_matches(name, list(known), 1, 0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _taken(name: str, kind: type, value: Any) -> Any:
    """The value as an option of this kind holds it."""
    try:
        if kind is str:
            return os.fsdecode(value)
        number = operator.index(value)
        if kind is bool and number not in (0, 1):
            raise ValueError
        return kind(number)
    except (TypeError, ValueError):
        raise TypeError(f"{name} takes {kind.__name__}, not {value!r}") from None


class _Options:
    """Attributes of fixed names and kinds; _KINDS: by name."""

    _KINDS: dict[str, type] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._KINDS:
            value = _taken(name, self._KINDS[name], value)
        elif not name.startswith("_") and not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f"{type(self).__name__} has no option {name!r}{suggestion(name, self._KINDS)}")
        super().__setattr__(name, value)


class SessionOptions(_Options):
    """Settings of a session. Names that do not exist raise AttributeError, values of another kind TypeError."""

    intra_op_num_threads: int
    inter_op_num_threads: int
    execution_mode: ExecutionMode
    graph_optimization_level: GraphOptimizationLevel
    enable_mem_pattern: bool
    enable_cpu_mem_arena: bool
    enable_mem_reuse: bool
    use_deterministic_compute: bool
    use_per_session_threads: bool
    optimized_model_filepath: str
    enable_profiling: bool
    profile_file_prefix: str
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    seed: int
    level: str | None

    _KINDS = {
        "intra_op_num_threads": int, "inter_op_num_threads": int, "execution_mode": ExecutionMode,
        "graph_optimization_level": GraphOptimizationLevel, "enable_mem_pattern": bool, "enable_cpu_mem_arena": bool,
        "enable_mem_reuse": bool, "use_deterministic_compute": bool, "use_per_session_threads": bool,
        "optimized_model_filepath": str, "enable_profiling": bool, "profile_file_prefix": str, "log_severity_level": int,
        "log_verbosity_level": int, "logid": str, "seed": int, "level": str,
    }

    def __init__(self) -> None:
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
        self.log_severity_level = -1  # what set_default_logger_severity says
        self.log_verbosity_level = 0
        self.logid = ""
        self.seed = _default_seed
        self.level = ""  # "scalar", "avx2", ...; "": the best
        self._config: dict[str, str] = {}
        self._dims: dict[str, int] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, "" if name == "level" and value is None else value)

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        """Fixes an open extent of an .onnx model."""
        self._dims[name] = int(extent)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """A setting by onnxruntime's key. A session refuses (InvalidArgument) keys that neither it nor onnxruntime has."""
        self._config[key] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """What was added under the key; RuntimeError if nothing was."""
        if key not in self._config:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_provider(self, provider_name: str, options: dict[str, str] | None = None) -> None:
        """Accepted for the CPU's; any other warns."""
        normal_providers([(provider_name, dict(options or {}))], None)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: operators for onnxruntime are compiled against its headers."""
        raise NotImplemented(4, f"{path}: libraries of onnxruntime's operators cannot be loaded; linnet.register takes a Python function, "
                                "lnt_model_options.custom one of C")

    def _entries(self) -> list[tuple[bytes, bytes]]:
        """Those that the library takes."""
        for key in self._config:
            if key not in _ENTRIES and key not in _IDLE_ENTRIES:
                raise InvalidArgument(1, f"there is no config entry {key!r}{suggestion(key, _ENTRIES | _IDLE_ENTRIES)}")
        return [(k.encode(), v.encode()) for k, v in self._config.items() if k in _ENTRIES]

    def _severity(self) -> int:
        return self.log_severity_level if self.log_severity_level >= 0 else default_severity()

    def _opt(self) -> str:
        level = int(self.graph_optimization_level)
        return "none" if level == 0 else "basic" if level == 1 else "all"


class RunOptions(_Options):
    """Settings of a run, which may be shared by several. Names that do not exist raise AttributeError."""

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool

    _KINDS = {"log_severity_level": int, "log_verbosity_level": int, "logid": str, "only_execute_path_to_fetches": bool}

    def __init__(self) -> None:
        self.log_severity_level = -1  # the session's
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = True  # it always is so
        self._config: dict[str, str] = {}
        self._terminate, self._sessions, self._lock = False, [], threading.Lock()

    @property
    def terminate(self) -> bool:
        """True, set from any thread, ends the runs that have these options (Fail), and lets none begin. Where one is just
        ending by itself the session's next run may end instead."""
        return self._terminate

    @terminate.setter
    def terminate(self, wanted: bool) -> None:
        with self._lock:
            self._terminate = bool(wanted)
            for session in self._sessions if wanted else ():
                lib.lnt_cancel(session)

    @contextlib.contextmanager
    def _running(self, session: Any) -> Iterator[None]:
        with self._lock:
            if self._terminate:
                raise LinnetError(11, "the run's options say terminate")
            self._sessions.append(session)
        try:
            yield
        finally:
            with self._lock:
                self._sessions.remove(session)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """A setting by onnxruntime's key: "memory.enable_memory_arena_shrinkage" gives memory back after the run. Raises
        InvalidArgument for keys that onnxruntime does not have either."""
        if key != _TRIM and key not in _IDLE_RUN_ENTRIES:
            raise InvalidArgument(1, f"there is no run config entry {key!r}{suggestion(key, _IDLE_RUN_ENTRIES | {_TRIM})}")
        self._config[key] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """What was added under the key; RuntimeError if nothing was."""
        if key not in self._config:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]

    def _trims(self) -> bool:
        return bool(self._config.get(_TRIM))


def _named_providers(providers: Sequence[Provider], options: Sequence[dict] | None) -> list[tuple[str, dict]]:
    if options is not None:
        if not isinstance(options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(name, str) for name in providers) or not all(isinstance(o, dict) for o in options):
            raise ValueError("with 'provider_options' 'providers' must be strings and the options dicts.")
        return list(zip(providers, options))
    named = [(p, {}) if isinstance(p, str) else p for p in providers]
    if not all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) and isinstance(p[1], dict) for p in named):
        raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    return named


def normal_providers(providers: Sequence[Provider] | None, options: Sequence[dict] | None) -> None:
    """Warns of every provider but the CPU's; raises ValueError for what onnxruntime would not take."""
    if providers is None:
        return
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise ValueError("'providers' should be a sequence of names.")
    for name, _ in _named_providers(providers, options):
        if name != PROVIDER:
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: '{PROVIDER}'",
                          stacklevel=4)
