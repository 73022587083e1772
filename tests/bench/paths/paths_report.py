"""What was counted as docs/vector-paths.md."""

import holes
import paths
import path_rows
import report
from grid import BOOL

PAGE = paths.ROOT / "docs/vector-paths.md"
COLUMNS = (*path_rows.TYPES, BOOL)


def number(n):
    return f"{n:.2f}" if n < 10 else f"{n:.0f}"


def cell(of_row, marks):
    """Both levels' instructions per element, a hole bold."""
    if not of_row:
        return ""
    return " / ".join(f"**{number(of_row[level.name])}**" if level.name in marks else number(of_row[level.name])
                      for level in paths.VECTORS)


def family_table(rows, counts, found):
    marks, lines = {}, {}
    for hole in found:
        marks.setdefault(hole.name, set()).add(hole.level)
    for row in rows:
        if row.name in counts:
            lines.setdefault(row.key, {})[row.dtype] = cell(counts[row.name], marks.get(row.name, ()))
    columns = [c for c in COLUMNS if any(c in line for line in lines.values())]
    return report.table(["operator, path", *columns], [[key, *(line.get(c, "") for c in columns)] for key, line in lines.items()])


def hole_table(found):
    lines = [[h.name, h.level, number(h.count), number(h.scalar), h.reason or "**not known**"] for h in found]
    return report.table(["row", "level", "instructions", "without vectors", "reason"], lines) if lines else "None."


def summary(rows, counts, found):
    lines = []
    for family in dict.fromkeys(row.family for row in rows):
        members = [row.name for row in rows if row.family == family and row.name in counts]
        of_family = [sum(h.level == level.name and h.name in set(members) for h in found) for level in paths.VECTORS]
        gains = [number(report.geometric([counts[n]["scalar"] / counts[n][level.name] for n in members])) for level in paths.VECTORS]
        lines.append([family, len(members), *gains, *of_family])
    names = [level.name for level in paths.VECTORS]
    return report.table(["family", "rows", *(f"gain, {n}" for n in names), *(f"holes, {n}" for n in names)], lines)


def write(rows, counts):
    found = holes.find(rows, counts)
    counted = [row for row in rows if row.name in counts]
    parts = [
        "# Does every kernel run on vectors?",
        f"Instructions per element of {len(counted)} models of one operator each, counted under emulation at the levels avx2 and neon: "
        "a path for each way that shape, axis and attributes choose, in each element type that ONNX lets the operator have. `make "
        "vector-paths` counts and writes this page; [tests/bench/paths](../tests/bench/paths) says how, and what a hole is. Cells are "
        "avx2 / neon; **bold** is a hole. *Gain*: instructions of a machine without vectors (64-bit RISC-V) over the level's, geometric "
        "mean.",
        summary(counted, counts, found),
        "## Holes", hole_table(found)]
    for family in dict.fromkeys(row.family for row in counted):
        members = [row for row in counted if row.family == family]
        parts += [f"## {family[0].upper()}{family[1:]}", family_table(members, counts, found)]
    PAGE.write_text("\n\n".join(parts) + "\n")
