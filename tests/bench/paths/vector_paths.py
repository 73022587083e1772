#!/usr/bin/env python3
"""vector_paths.py [--render | --hot] [--list] [PATTERN ...]: does every kernel run on vectors? Instructions per element of single
operators, counted under emulation at avx2 and neon, beside what a machine without vectors takes.

Rows are those of path_rows.py, or those whose "family: name" holds a PATTERN (a regular expression). What was counted is kept in
path_counts.tsv; docs/vector-paths.md is written from it, and a hole that holes.tsv gives no reason for makes the command fail. --hot
names the functions that the instructions of the rows go to."""

import argparse
import collections
import pathlib
import re
import sys
import tempfile
import time

import holes
import path_rows
import paths
import paths_report
from emulation import plugin, read_blocks
from symbols import Symbols

FUNCTIONS = 5  # of --hot


def hot(row, level):
    """Prints the functions that a row's instructions go to."""
    with tempfile.TemporaryDirectory(dir=paths.OUT) as name:
        folder = pathlib.Path(name)
        line = paths.write(row, folder, 0)
        outputs, instructions = paths.count(level, [line], folder)[0]
        paths.run(level, [line], folder, f"{plugin('count_blocks')},out={folder / 'blocks'},mark={level.mark}")
        elements, symbols, found = row.elements(row.input_counts(), outputs), Symbols(level.program), collections.Counter()
        for block in read_blocks(folder / "blocks").values():
            found[symbols.at(block.address)] += block.instructions
    print(f"{row.name}, {level.name}: {instructions / elements:.2f} instructions per element")
    for (function, source), n in found.most_common(FUNCTIONS):
        print(f"    {n / elements:8.2f}  {function}  {source}")


def tell(found, done, of, start):
    left = (time.monotonic() - start) / done * (of - done)
    for name, counted in found.items():
        if "error" in counted:
            print(f"{name}: {counted['error']}")
    print(f"[{done}/{of}, {left / 60:.0f} min left]", file=sys.stderr, flush=True)


def measure(rows):
    """Renews the rows in path_counts.tsv; rows that are no more leave it."""
    start, done = time.monotonic(), 0

    def told(found):
        nonlocal done
        done += len(found)
        tell(found, done, len(rows), start)

    counted = holes.read_counts() | paths.measure(rows, list(paths.LEVELS.values()), told)
    holes.write_counts({row.name: counted[row.name] for row in path_rows.rows() if row.name in counted})


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("patterns", nargs="*", metavar="PATTERN")
    how = options.add_mutually_exclusive_group()
    how.add_argument("--render", action="store_true", help="count nothing")
    how.add_argument("--hot", action="store_true", help="the functions that instructions go to")
    how.add_argument("--list", action="store_true", help="print the rows")
    given = options.parse_args()
    rows = path_rows.rows()
    wanted = [r for r in rows if not given.patterns or any(re.search(p, f"{r.family}: {r.name}") for p in given.patterns)]
    if not wanted:
        options.error("no row is called so (--list)")
    if given.list:
        print("\n".join(f"{r.family}: {r.name}" for r in wanted))
        return 0
    if given.hot:
        paths.build(paths.VECTORS)
        for row in wanted:
            for level in paths.VECTORS:
                hot(row, level)
        return 0
    if not given.render:
        measure(wanted)
    counts = holes.read_counts()
    paths_report.write(rows, counts)
    unexplained = [hole for hole in holes.find(rows, counts) if not hole.reason]
    for hole in unexplained:
        print(f"hole: {hole.text()}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
