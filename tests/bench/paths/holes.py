"""What is a hole: a row whose instructions per element vectors do not explain; path_counts.tsv, what was counted; holes.tsv, holes
with the reason why they are there."""

import csv
import dataclasses
import fnmatch
import pathlib

import paths

HERE = pathlib.Path(__file__).resolve().parent
COUNTS, KNOWN = HERE / "path_counts.tsv", HERE / "holes.tsv"
HEAD = """# Instructions per element. Written by
#     .deps/venv/bin/python tests/bench/paths/vector_paths.py
"""

# Below it nothing is a hole: a loop over single elements loads, stores and counts, unrolled or not.
SINGLE = 2
# What vectors are to save of the instructions of a machine without them, whatever an element takes.
LEAST_GAIN = 1.5
# Instructions for a vector's worth of elements, by family, where they are computed in lanes of 32 bits or wider.
LANE = 4
BOUND = {"elementwise": 60, "compare and select": 40, "cast": 40, "reduce": 60, "arg and cumulative": 60, "pool": 40, "norm": 60,
         "softmax": 120, "move": 24, "gather": 24}
HALVES = 10  # besides for each operand that is widened or rounded
# Operators whose elements take a polynomial, a division of integers, or several of these.
FUNCTION = 200
FUNCTIONS = {"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Exp", "Log", "Erf", "Gelu",
             "Tanh", "Sigmoid", "Softplus", "Mish", "Pow", "Div", "Mod", "LogSoftmax", "ReduceLogSumExp", "Elu", "Selu", "Celu",
             "Shrink"}
WINDOW = 300  # a power for each element, and a window around it


def bound(row, level):
    """The most instructions per element of a vector path."""
    of_vector = FUNCTION if row.op in FUNCTIONS else WINDOW if row.op == "LRN" else BOUND[row.family]
    of_vector += HALVES * row.halves()
    return of_vector * max(row.width(), LANE) / level.vector


@dataclasses.dataclass
class Hole:
    name: str
    level: str
    count: float
    scalar: float
    bound: float
    reason: str

    @property
    def worth(self):
        """How far the count is from a vector path's."""
        return max(self.count / self.bound, LEAST_GAIN * self.count / self.scalar)

    def text(self):
        return (f"{self.name} at {self.level}: {self.count:.2f} instructions per element, without vectors {self.scalar:.2f}, "
                f"bound {self.bound:.2f}")


def is_hole(count, scalar, most):
    return count > SINGLE and (count > most or count * LEAST_GAIN > scalar)


def find(rows, counts):
    """The holes among counted rows, the worst first."""
    known, found = read_known(), []
    for row in rows:
        of_row = counts.get(row.name, {})
        for level in paths.VECTORS:
            if level.name in of_row and is_hole(of_row[level.name], of_row["scalar"], bound(row, level)):
                found.append(Hole(row.name, level.name, of_row[level.name], of_row["scalar"], bound(row, level),
                                  reason(known, row.name, level.name)))
    return sorted(found, key=lambda hole: -hole.worth)


def reason(known, name, level):
    """What holes.tsv says of it; nothing if it does not."""
    return next((k["reason"] for k in known if fnmatch.fnmatchcase(name, k["row"]) and level in k["levels"].split()), "")


def without_comments(path):
    with open(path, newline="") as f:
        return list(csv.DictReader((line for line in f if line[0] != "#"), delimiter="\t"))


def read_known():
    """Rows with `row`, a pattern of names, levels and reason."""
    return without_comments(KNOWN)


def read_counts():
    """{row name: {level name: instructions per element}}."""
    if not COUNTS.exists():
        return {}
    return {row["row"]: {name: float(row[name]) for name in paths.LEVELS} for row in without_comments(COUNTS)}


def write_counts(counts):
    with open(COUNTS, "w", newline="") as f:
        f.write(HEAD)
        table = csv.writer(f, delimiter="\t", lineterminator="\n")
        table.writerow(("row", *paths.LEVELS))
        table.writerows((name, *(f"{of_row[level]:.3g}" for level in paths.LEVELS)) for name, of_row in counts.items()
                        if "error" not in of_row)
