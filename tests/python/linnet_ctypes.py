"""The public C API (runtime/linnet.h) through ctypes: for tests of what the command line does not show, such as a
caller's arena, bounds, states, and who allocates when. The Python package's own declarations, and what it has no use
for."""

import ctypes as c
import json
import os

import numpy as np

from harness import import_package, linnet

import_package()
from linnet._native import MAX_RANK, Error, LinnetError, SessionOptions, Tensor, check, lib  # noqa: E402
from linnet._value import _NUMBER_OF as DTYPES  # noqa: E402

NUMPY = {number: dtype for dtype, number in DTYPES.items()}

ALLOCATE = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_size_t)
RELEASE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)


class Host(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("allocate", ALLOCATE), ("release", RELEASE), ("log", LOG),
                ("user", c.c_void_p)]


class ModelOptions(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("flags", c.c_uint32), ("host", c.POINTER(Host)), ("custom", c.c_void_p),
                ("n_custom", c.c_size_t)]


class SessionInfo(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("arena_bytes", c.c_uint64), ("constant_bytes", c.c_uint64),
                ("n_steps", c.c_uint32), ("n_evaluated", c.c_uint32), ("threads", c.c_uint32), ("level", c.c_char_p),
                ("unbounded", c.c_char_p), ("alive_bytes", c.c_uint64), ("held_bytes", c.c_uint64)]


E_MEMORY, E_LIMIT = 8, 9


def call(name, *args):
    err = Error()
    check(getattr(lib, name)(*args, c.byref(err)), err)


class CountingHost:
    """malloc's memory, aligned to 64, counted."""

    def __init__(self):
        libc = c.CDLL(None)
        libc.aligned_alloc.restype = c.c_void_p
        libc.aligned_alloc.argtypes = [c.c_size_t, c.c_size_t]
        libc.free.argtypes = [c.c_void_p]
        self.calls = 0

        def allocate(_, size):
            self.calls += 1
            return libc.aligned_alloc(64, (size + 63) // 64 * 64 or 64)

        self.struct = Host(c.sizeof(Host), ALLOCATE(allocate), RELEASE(lambda _, block: libc.free(block)), LOG(), None)


class Model:
    def __init__(self, path, host=None):
        self.handle, self.host, self.users = c.c_void_p(), host, 1
        options = ModelOptions(struct_bytes=c.sizeof(ModelOptions), host=c.pointer(host.struct) if host else None)
        call("lnt_model_create", os.fsencode(path), c.byref(options), c.byref(self.handle))

    def input_index(self, name):
        return lib.lnt_model_find_input(self.handle, name.encode())

    def output_index(self, name):
        return lib.lnt_model_find_output(self.handle, name.encode())

    def release(self):
        """The model is closed after its last session: the garbage collector keeps no order."""
        self.users -= 1
        if not self.users:
            lib.lnt_model_destroy(c.byref(self.handle))

    def __del__(self):
        self.release()


class Session:
    """arena: None, or bytes of an arena that the caller owns; a guard behind it shows who writes past its end."""

    GUARD = 4096

    def __init__(self, model, threads=1, level=None, seed=0, arena=None, bounds=(), parallel=False):
        self.model, self.kept, self.handle = model, {}, c.c_void_p()
        model.users += 1
        options = SessionOptions(struct_bytes=c.sizeof(SessionOptions), intra_op_num_threads=threads, seed=seed,
                                 level=level.encode() if level else None, execution_mode=int(parallel))
        if arena is not None:
            block = np.full(arena + self.GUARD + 64, 0xA5, np.uint8)
            begin = -block.ctypes.data % 64
            self.arena, self.guard = block[begin:begin + arena], block[begin + arena:]
            options.arena, options.arena_bytes = block.ctypes.data + begin, arena
        call("lnt_session_create", model.handle, c.byref(options), c.byref(self.handle))
        for name, bound in dict(bounds).items():
            call("lnt_set_bound", self.handle, name.encode(), c.c_int64(bound))

    def guard_is_whole(self):
        return bool((self.guard == 0xA5).all())

    def set(self, **inputs):
        for name, value in inputs.items():
            value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
            self.kept[name] = value
            tensor = Tensor(DTYPES[value.dtype], value.ndim, (c.c_int64 * MAX_RANK)(*value.shape), value.ctypes.data,
                            value.nbytes)
            call("lnt_set_input", self.handle, c.c_uint32(self.model.input_index(name)), c.byref(tensor))
        return self

    def bind(self):
        call("lnt_bind", self.handle)
        return self

    def run(self, **inputs):
        self.set(**inputs)
        call("lnt_run", self.handle)
        return self

    def fetch(self, name):
        call("lnt_keep_value", self.handle, name.encode())
        return self

    def value(self, name):
        """A copy of a fetched value."""
        tensor = Tensor()
        call("lnt_get_value", self.handle, name.encode(), c.byref(tensor))
        return self.copy_of(tensor)

    def get(self, name):
        """A copy of an output."""
        tensor = Tensor()
        call("lnt_get_output", self.handle, c.c_uint32(self.model.output_index(name)), c.byref(tensor))
        return self.copy_of(tensor)

    @staticmethod
    def copy_of(tensor):
        shape = tuple(tensor.dims[:tensor.rank])
        buffer = (c.c_char * tensor.bytes).from_address(tensor.data) if tensor.bytes else b""
        return np.frombuffer(buffer, NUMPY[tensor.dtype]).reshape(shape).copy()

    def info(self):
        info = SessionInfo(struct_bytes=c.sizeof(SessionInfo))
        call("lnt_session_get_info", self.handle, c.byref(info))
        return info

    def trim(self):
        call("lnt_session_trim", self.handle)

    def reset_states(self):
        call("lnt_state_reset", self.handle)

    def __del__(self):
        lib.lnt_session_destroy(c.byref(self.handle))
        self.model.release()


def levels():
    """Of this machine."""
    return json.loads(linnet("doctor", "--quick", "--json").stdout)["levels"]


def check_every_level(lnt, x, want, output="y", **close):
    """What a file makes of input x is `want` at every level, and the same bits on three threads."""
    model = Model(lnt)
    for level in levels():
        alone, shared = (Session(model, level=level, threads=n).set(x=x).run().get(output) for n in (1, 3))
        assert alone.tobytes() == shared.tobytes(), level
        np.testing.assert_allclose(alone, want, err_msg=level, **close)
