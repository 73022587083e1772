"""Instructions per element of rows at a level: models written, converted and run many to a process under emulation."""

import concurrent.futures
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "arm")]

import bench  # noqa: E402
import emulation  # noqa: E402
import onnx  # noqa: E402
from linnet_arm import make  # noqa: E402

OUT = ROOT / "build/paths"
BATCH = 64  # rows whose models lie on the disk at once


@dataclasses.dataclass(frozen=True)
class Level:
    """What is counted: a level of a program, `vector` bytes at a time."""
    name: str
    level: str
    board: str
    emulator: str
    cpu: str
    mark: int  # the number of getppid, which nothing else calls
    vector: int

    @property
    def program(self):
        return ROOT / "build" / self.board / "run_models"


LEVELS = {level.name: level for level in (
    Level("avx2", "avx2", "", "qemu-x86_64", "max,-erms", 110, 32),
    Level("neon", "neon", "generic-arm64", "qemu-aarch64", "max", emulation.MARK, 16),
    # What loops without vectors take: of a machine that has none.
    Level("scalar", "scalar", "riscv64", "qemu-riscv64", "rv64", 173, 0))}

VECTORS = [level for level in LEVELS.values() if level.vector]


def build(levels):
    """The converter, and the programs of these levels."""
    make(ROOT, "build/linnet", "build/run_models")
    for board in {level.board for level in levels} - {""}:
        make(ROOT, f"BOARD={board}", f"build/{board}/run_models")


def write(row, folder, k):
    """Converts the row; returns its line of a list, and the elements of its inputs, or raises RuntimeError."""
    model, feeds = row.row.make()
    path, lnt, data = (folder / f"{k}.{ending}" for ending in ("onnx", "lnt", "in"))
    onnx.save(model, path)
    data.write_bytes(b"".join(value.tobytes() for value in feeds.values()))
    bench.linnet("convert", path, "-o", lnt)
    return f"{lnt} {data}\n"


def attempt(row, folder, k):
    try:
        return write(row, folder, k)
    except RuntimeError as error:
        return error


def run(level, lines, folder, counter):
    """Runs the models of a list under the emulator with a plugin; what run_models says of each."""
    listed = folder / f"{level.name}.list"
    listed.write_text("".join(lines))
    words = [level.emulator, "-cpu", level.cpu, "-plugin", counter, level.program, level.level, listed]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=emulation.TIMEOUT)
    said = done.stdout.splitlines()
    if done.returncode or len(said) != len(lines):
        raise RuntimeError(f"run_models {level.name}: {done.stderr.strip() or said[-1:]}")
    return said


def count(level, lines, folder):
    """For each line of the list (elements of outputs, instructions), or the reason why there is none."""
    counted = folder / f"{level.name}.txt"
    said = run(level, lines, folder, f"{emulation.plugin('count_runs')},out={counted},mark={level.mark}")
    ran = iter(counted.read_text().split())
    return [([int(n) for n in s.split()[1:]], int(next(ran))) if s.startswith("ok") else s for s in said]


def measure_batch(rows, levels, folder):
    """{row name: {level name: instructions per element, or "error": reason}}."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        written = list(pool.map(attempt, rows, [folder] * len(rows), range(len(rows))))
        found = {row.name: {"error": str(w).splitlines()[-1]} for row, w in zip(rows, written) if isinstance(w, RuntimeError)}
        good = [(row, w) for row, w in zip(rows, written) if isinstance(w, str)]
        counts = pool.map(lambda level: count(level, [w for _, w in good], folder), levels)
        for level, counted in zip(levels, counts):
            for (row, _), of_row in zip(good, counted):
                found.setdefault(row.name, {}).update(per_element(row, level, of_row))
    return found


def per_element(row, level, counted):
    if isinstance(counted, str):
        return {"error": counted}
    outputs, instructions = counted
    return {level.name: instructions / row.elements(row.input_counts(), outputs)}


def measure(rows, levels, told=lambda found: None):
    """Of all rows; what each batch gives is told on the way."""
    OUT.mkdir(parents=True, exist_ok=True)
    build(levels)
    found = {}
    for first in range(0, len(rows), BATCH):
        with tempfile.TemporaryDirectory(dir=OUT) as name:
            batch = measure_batch(rows[first:first + BATCH], levels, pathlib.Path(name))
        found |= batch
        told(batch)
    return found
