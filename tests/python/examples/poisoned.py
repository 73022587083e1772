"""poisoned.py FOLDER: five parts by with_processes.run, of which one ends every process that begins it; prints what was lost.
A program, because workers import what started them."""

import os
import pathlib
import sys
import types

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "batch"))

import with_processes  # noqa: E402


def work(out, values, number, names):
    if "poison" in names:
        os._exit(9)
    pathlib.Path(out, names[0]).touch()


if __name__ == "__main__":
    asked = types.SimpleNamespace(out=sys.argv[1], values=None, workers=1)
    print(with_processes.run([(i, ["poison" if i == 1 else f"part{i}"]) for i in range(5)], asked, work))
