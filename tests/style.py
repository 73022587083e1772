#!/usr/bin/env python3
"""style.py: what can be checked of the source by reading it: include order, blanks, lengths, what the library may not
call. Prints the lengths of functions, then what is wrong; exit 1 if anything is."""
import collections
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A folder may include itself and what stands before it.
ORDER = ["base", "formats", "ops", "runtime", "speech", "convert", "cli"]
LIBRARY = ORDER[:-1]
LINE = {".c": 120, ".h": 120, ".py": 140}
FILE, FUNCTION = 1000, 100
ROOM = 40  # files of a folder
FEW, PAGE = 6, 40  # files of a folder of the product that needs no page of its own; lines of a page
BESIDE = {("linnet.h", "linnet_types.h"), ("linnet_voice.h", "linnet.h")}  # installed side by side
TWICE = {"README.md", "__init__.py", "requirements.txt"}  # names that more than one folder may have
ASSERTIONS = 3  # LNT_ASSERT in 1,000 lines of a folder of the library, at least
MAY_STOP = pathlib.Path("base/lnt_assert.c")  # where builds with a sanitizer print and abort
FORBIDDEN = re.compile(r"(?<![\w.>])(printf|puts|putchar|perror|abort|exit|_exit|assert)\s*\(|\b(stdout|stderr)\b")

# Bytes of a tensor: lnt_operand_bytes, lnt_shape_bytes. These forget to ask whether there is such a size.
RAW_BYTES = re.compile(r"\(size_t\)lnt_operand_count\([^()]*(\([^()]*\)[^()]*)*\) \* |count\w* \* lnt_dtype_size\(")
# Where extents are new no product of them is taken by hand; kernels and bind functions have operands that passed.
RAW_EXTENTS = re.compile(r"dims\[[^]]*\] \* |[\w)] \* [\w>.()\- ]*dims\[|\*= (\(size_t\))?[\w>.\-]*dims\[")
CHECKED = ["base/checked.h", "base/operand.c", "base/operand.h"]

faults = []
lengths = []
counted = {folder: [0, 0] for folder in LIBRARY}  # assertions, lines


def fault(path, line, text):
    faults.append(f"{path}:{line}: {text}")


def tracked():
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(p) for p in listing.split("\n") if p]


def check_rooms(files):
    """No folder with more files than one looks through or without a page, no name twice, but for data."""
    rooms, names = collections.Counter(f.parent for f in files), {}
    for room, n in rooms.items():
        if n > ROOM:
            fault(room, 1, f"{n} files, at most {ROOM}")
        if room.parts and room.parts[0] in ORDER and n > FEW and not (ROOT / room / "README.md").exists():
            fault(room, 1, f"{n} files and no README.md that says what they are for")
    for page in (f for f in files if f.name == "README.md" and f.parts[0] in ORDER):
        lines = (ROOT / page).read_text().count("\n")
        if lines > PAGE:
            fault(page, 1, f"{lines} lines, at most {PAGE}")
    for f in files:
        other = names.setdefault(f.name, f)
        if other != f and f.name not in TWICE:
            fault(f, 1, f"{other} has this name, too")


def circle(arrows, start):
    """A way from a folder back to it, or None."""
    ways, seen = [[start]], set()
    while ways:
        way = ways.pop(0)
        for to in arrows.get(way[-1], ()):
            if to == start:
                return [*way, to]
            if to not in seen:
                seen.add(to)
                ways.append([*way, to])
    return None


def check_circles(files):
    """Folders whose files include each other's, over however many others."""
    arrows = {}
    for f in files:
        if f.suffix in (".c", ".h"):
            found = re.findall(r'^#include "([^"]+)/[^"/]+"', (ROOT / f).read_text(), re.M)
            arrows.setdefault(str(f.parent), set()).update(set(found) - {str(f.parent)})
    reported = set()
    for folder in sorted(arrows):
        way = circle(arrows, folder)
        if way and not reported & set(way):
            reported |= set(way)
            fault(folder, 1, "includes in a circle: " + " -> ".join(way))


def check_text(path, text):
    if text and not text.endswith("\n"):
        fault(path, 1, "no newline at the end")
    makefile = path.name == "Makefile" or path.suffix == ".mk"
    table = False  # rows that clang-format is told to leave alone may be wide
    for number, line in enumerate(text.split("\n"), 1):
        table = "clang-format off" in line or (table and "clang-format on" not in line)
        if line != line.rstrip():
            fault(path, number, "blank at the end of the line")
        if "\t" in line and not makefile:
            fault(path, number, "tab")
        if len(line) > LINE.get(path.suffix, 1000) and not table:
            fault(path, number, f"{len(line)} columns, at most {LINE[path.suffix]}")


def check_includes(path, text):
    """Includes go downward only and are written from the root."""
    folder = path.parts[0]
    if folder not in ORDER:
        return
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r'#include "([^"]+)"', line)
        if not found:
            continue
        target = found.group(1)
        first = target.split("/")[0]
        if (path.name, target) in BESIDE:
            continue
        if first not in ORDER:
            fault(path, number, f'"{target}" is not written from the root')
        elif ORDER.index(first) > ORDER.index(folder):
            fault(path, number, f"{folder}/ may not include {first}/")
        elif not (ROOT / target).exists() and not target.endswith(".pb-c.h"):
            fault(path, number, f"there is no {target}")


def check_library(path, code):
    if path.parts[0] not in LIBRARY:
        return
    counted[path.parts[0]][0] += len(re.findall(r"^ +LNT_ASSERT\(", code, re.M))
    counted[path.parts[0]][1] += code.count("\n")
    if path == MAY_STOP:
        return
    for number, line in enumerate(code.split("\n"), 1):
        found = FORBIDDEN.search(line)
        if found:
            fault(path, number, f"the library does not use {found.group(0)}")


def check_sizes(path, code):
    if path.parts[0] not in ORDER or str(path) in CHECKED:
        return
    for number, line in enumerate(code.split("\n"), 1):
        if RAW_BYTES.search(line):
            fault(path, number, "bytes without a check: lnt_operand_bytes or lnt_shape_bytes")
        if RAW_EXTENTS.search(line) and path.parts[0] in ("base", "formats", "runtime"):
            fault(path, number, "a product of extents without a check: lnt_count or lnt_shape_bytes")


def without_comments(text):
    """Comments and strings blanked out, lines kept."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def measure_functions(path, code):
    """Functions begin with '{' alone in column 1 and end with '}' in column 1."""
    start = None
    lines = code.split("\n")
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            head = next((h for h in reversed(lines[: start - 1]) if re.match(r"\w", h)), "?")
            name = re.search(r"(\w+)\(", head)
            lengths.append((number - start - 1, f"{path}:{start} {name.group(1) if name else ''}"))
            start = None


def main():
    for path in tracked():
        if path.suffix not in (".c", ".h", ".py", ".sh", ".md", ".mk", ".proto") and path.name != "Makefile":
            continue
        if not (ROOT / path).exists():
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        check_text(path, text)
        if path.suffix in (".c", ".h"):
            code = without_comments(text)
            if text.count("\n") > FILE:
                fault(path, 1, f"{text.count(chr(10))} lines, at most {FILE}")
            if not text.startswith("/*"):
                fault(path, 1, "no comment at the head that says what the file holds")
            check_includes(path, text)
            check_library(path, code)
            check_sizes(path, code)
            if path.suffix == ".c":
                measure_functions(path, code)
    files = [path for path in tracked() if (ROOT / path).exists()]
    check_rooms(files)
    check_circles(files)
    lengths.sort()
    lines = [n for n, _ in lengths]
    print(f"{len(lines)} functions: median {statistics.median(lines):.0f} lines, "
          f"p90 {lines[int(0.9 * (len(lines) - 1))]}, longest {lines[-1]} ({lengths[-1][1]})")
    for n, where in lengths:
        if n > FUNCTION:
            faults.append(f"{where}: {n} lines, at most {FUNCTION}")
    print("assertions: " + ", ".join(f"{folder} {n} ({1000 * n / of:.1f} in 1,000 lines)"
                                     for folder, (n, of) in counted.items()))
    for folder, (n, of) in counted.items():
        if 1000 * n < ASSERTIONS * of:
            faults.append(f"{folder}/: {n} assertions in {of} lines, at least {ASSERTIONS} in 1,000")
    for text in faults:
        print(text)
    print(f"{0 if faults else 1} passed, {len(faults)} failed")
    return 1 if faults else 0


sys.exit(main())
