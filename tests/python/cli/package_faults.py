"""package_faults.py FOLDER: uses the Python package while one call to the system of its native part after the other
fails; the shim (tests/c/fault.c) is loaded before Python. Prints how many failed; ends with a message if one is not
reported, changes a result, leaves a file behind or keeps memory, a file, a mapping or a thread."""

import ctypes
import gc
import os
import sys

import numpy as np

import linnet

shim = ctypes.CDLL(None)
shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong]
shim.fault_disarm.restype = ctypes.c_bool
shim.fault_watch.argtypes = [ctypes.c_char_p]
shim.fault_blocks.restype = ctypes.c_size_t
WATCHED = b"liblinnet libc.so"
FAULTS = [("open", "fail"), ("read", "fail"), ("write", "fail"), ("write", "full"), ("stat", "fail"), ("map", "fail"),
          ("sync", "fail"), ("close", "fail"), ("rename", "fail"), ("thread", "fail"), ("memory", "fail"), ("memory", "full"),
          ("read", "short"), ("read", "again"), ("write", "short"), ("write", "again"), ("open", "again"), ("sync", "again")]
OLD = b"what was there before"
x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def use():
    """Converts, opens, runs, runs with other extents, writes a trace; all that came out."""
    image = linnet.convert("m.onnx", "out/target")
    options = linnet.SessionOptions()
    options.intra_op_num_threads = 2
    options.enable_profiling = True
    options.profile_file_prefix = "out/trace"
    session = linnet.InferenceSession("m.lnt", options)
    results = [session.run(None, {"x": x})[0], session.run(None, {"x": np.tile(x, (40, 1))})[0]]
    os.replace(session.end_profiling(), "out/trace.json")
    return image, *[r.tobytes() for r in results]


def clean():
    for name in os.listdir("out"):
        os.unlink(f"out/{name}")
    with open("out/target", "wb") as f:
        f.write(OLD)


def held():
    """What this process holds: blocks of memory, open files, mapped models, threads."""
    gc.collect()
    with open("/proc/self/maps") as maps:
        models = sum(".lnt" in line for line in maps)
    return shim.fault_blocks(), len(os.listdir("/proc/self/fd")), models, len(os.listdir("/proc/self/task"))


os.chdir(sys.argv[1])
expected, failures = use(), 0
shim.fault_watch(WATCHED)
clean()
use()
before = held()
for class_, kind in FAULTS:
    n = 0
    while True:
        n += 1
        clean()
        shim.fault_arm(class_.encode(), kind.encode(), n)
        try:
            got, why = use(), None
        except (linnet.LinnetError, OSError, MemoryError) as error:
            got, why = None, error.with_traceback(None)  # frames that hold a session
        happened = shim.fault_disarm()
        where = f"{class_} {kind} {n}: {why}"
        assert got in (None, expected), where
        assert happened or got, where
        assert why is None or (str(why) and kind not in ("short", "again")), where
        assert set(os.listdir("out")) <= {"target", "trace.json"}, f"{where}: {os.listdir('out')}"
        with open("out/target", "rb") as f:
            assert f.read() in (OLD, expected[0]), where
        assert held() == before, f"{where}: blocks, files, mapped models and threads are {held()}, were {before}"
        if not happened:
            break
        failures += why is not None
    clean()
print(failures)
