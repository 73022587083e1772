"""parts.py — one model over many pictures, in parts, whoever runs them: a part is done when its file is there, and it is written
whole or not at all. So a worker may be killed at any time, a part may be run twice at once, and the next run does what is left.

    OUT/plan.json           the model's digest, and the names of the files of each part, which never change
    OUT/model.lnt           the model, mapped by all workers
    OUT/parts/000000.jsonl  a line for each file of a part
    OUT/results.jsonl       all of them in order, once every part is done"""

import argparse
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import sys
import time
import uuid

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "pictures"))

import linnet  # noqa: E402
import pictures  # noqa: E402

SAMPLE = 32  # files that one process is timed on


def write(path, data):
    """The file at path, whole or as it was, after a loss of power, too."""
    part = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


class Job:
    """What is to be done in the folder `out`. One driver at a time may have one that is locked; workers need no lock."""

    def __init__(self, out):
        self.out = pathlib.Path(out)

    def __enter__(self):
        (self.out / "parts").mkdir(parents=True, exist_ok=True)
        self.lock = open(self.out / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as why:
            raise ValueError(f"another run is writing to {self.out}") from why
        for left in (*self.out.glob("*.tmp"), *(self.out / "parts").glob("*.tmp")):  # of workers that were killed
            left.unlink(missing_ok=True)
        return self

    def __exit__(self, *_):
        self.lock.close()

    def plan(self, model, files, size):
        """Files that no earlier run has planned become parts of `size`."""
        digest, path = hashlib.sha256(pathlib.Path(model).read_bytes()).hexdigest(), self.out / "plan.json"
        self.planned = json.loads(path.read_text()) if path.exists() else {"model": digest, "parts": []}
        if self.planned["model"] != digest:
            raise ValueError(f"{self.out} was begun with another model: choose another folder")
        if not (self.out / "model.lnt").exists():
            write(self.out / "model.lnt", pathlib.Path(model).read_bytes() if model.endswith(".lnt") else linnet.convert(model))
        known = {name for part in self.planned["parts"] for name in part}
        new = sorted({str(pathlib.Path(name).resolve()) for name in files} - known)
        self.planned["parts"] += [new[i:i + size] for i in range(0, len(new), size)]
        write(path, json.dumps(self.planned).encode())

    def part_file(self, number):
        return self.out / "parts" / f"{number:06}.jsonl"

    def todo(self):
        """(number, names) of the parts that are not done."""
        return [(i, names) for i, names in enumerate(self.planned["parts"]) if not self.part_file(i).exists()]

    def finish(self):
        """Writes the results, where all parts are there; (files, those that could not be looked at)."""
        lines = [line for i in range(len(self.planned["parts"])) for line in self.part_file(i).read_bytes().splitlines()]
        write(self.out / "results.jsonl", b"".join(line + b"\n" for line in lines))
        return len(lines), sum("error" in json.loads(line) for line in lines)


@functools.lru_cache
def model_of(out, values):
    """The model of this process, on one thread: there are as many processes as CPUs."""
    return pictures.PictureModel(pathlib.Path(out) / "model.lnt", values=values, threads=1)


def look(out, values, name):
    """What is in one file, or why that is not known: a file that cannot be read is no reason to lose the others."""
    try:
        return {"file": name, **pictures.plain(model_of(out, values).look(pictures.decode(pathlib.Path(name).read_bytes())))}
    except (OSError, pictures.BadPicture, linnet.LinnetError) as why:
        return {"file": name, "error": str(why)}


def do_part(out, values, number, names):
    """The work, which any driver has any process do. Done twice it writes the same file twice."""
    target = Job(out).part_file(number)
    if not target.exists():
        write(target, b"".join(json.dumps(look(out, values, name)).encode() + b"\n" for name in names))
    return number


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model", help="an .lnt or .onnx file that takes pictures")
    parser.add_argument("out", help="a folder; a second run with it does what the first one has left")
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="pictures, or folders of them")
    parser.add_argument("--values", choices=pictures.RANGES, help="of a pixel; see pictures.py --help")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--size", type=int, default=32, help="files of a part (%(default)s)")
    parser.add_argument("--against-one", action="store_true", help=f"time {SAMPLE} files in one process first")
    parser.add_argument("--pandas", action="store_true", help="Spark only: by mapInPandas, not mapPartitions")
    return parser.parse_args()


def files_of(paths):
    return [f for path in paths for f in (filter(pathlib.Path.is_file, path.rglob("*")) if path.is_dir() else [path])]


def rate_of_one(asked, todo):
    """Files a second of one process, after one to warm up."""
    names = [name for _, part in todo for name in part][:SAMPLE]
    look(asked.out, asked.values, names[0])
    start = time.monotonic()
    for name in names:
        look(asked.out, asked.values, name)
    return len(names) / (time.monotonic() - start)


def drive(description, run):
    """The whole of a driver. run(todo, asked) has do_part done for each part and returns what it could not do, in words."""
    asked = arguments(description)
    asked.out = str(pathlib.Path(asked.out).resolve())
    try:
        with Job(asked.out) as job:
            job.plan(asked.model, files_of(asked.files), asked.size)
            todo = job.todo()
            model_of(asked.out, asked.values)
            one = rate_of_one(asked, todo) if asked.against_one and todo else None
            start, n = time.monotonic(), sum(len(names) for _, names in todo)
            lost = run(todo, asked) if todo else []
            seconds = time.monotonic() - start
            print(f"{n} files in {seconds:.1f} s, {n / seconds:.0f} a second" if n else "nothing was left to do")
            if one:
                print(f"one process: {one:.0f} a second; {asked.workers} workers: {n / seconds / one:.2f} times that")
            if lost:
                sys.exit("\n".join(lost))
            files, refused = job.finish()
    except (OSError, ValueError, linnet.LinnetError) as why:
        sys.exit(f"batch: {why}")
    print(f"{files} files in {job.out / 'results.jsonl'}, {refused} of them could not be looked at")
