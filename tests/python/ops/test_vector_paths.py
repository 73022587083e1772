"""No kernel without a vector path: instructions per element at avx2 and neon, counted under emulation (tests/bench/paths); with
LINNET_LONG=1 of all rows, else of one for each operator and type. Holes are those of holes.tsv."""

import os
import shutil
import sys

import pytest

from harness import ROOT

sys.path[:0] = [str(ROOT / f"tests/bench/{folder}") for folder in ("paths", "ops", "arm", ".")]

import counts  # noqa: E402
import emulation  # noqa: E402
import holes  # noqa: E402
import path_rows  # noqa: E402
import paths  # noqa: E402

LONG = os.environ.get("LINNET_LONG")
ROWS = path_rows.rows()


@pytest.fixture(scope="module")
def counted():
    """What rows take now, beside what they took of a machine without vectors when that was recorded."""
    try:
        counts.tools(emulation.CORES["a53"])
    except emulation.MissingTool as missing:
        pytest.skip(str(missing))
    if not shutil.which(paths.LEVELS["avx2"].emulator):
        pytest.skip("no qemu-x86_64")
    recorded = holes.read_counts()
    wanted = [row for row in (ROWS if LONG else path_rows.sample(ROWS)) if row.name in recorded]
    found = paths.measure(wanted, paths.VECTORS)
    return {name: recorded[name] | now for name, now in found.items()}


def test_every_row_runs(counted):
    assert not {name: of_row["error"] for name, of_row in counted.items() if "error" in of_row}


def test_what_is_not_explained_runs_on_vectors(counted):
    found = [hole.text() for hole in holes.find(ROWS, counted) if not hole.reason]
    assert not found, "\n".join([*found, "a vector path, or a reason in tests/bench/paths/holes.tsv"])


def test_every_operator_of_a_family_is_recorded():
    recorded = holes.read_counts()
    assert {row.op for row in ROWS} == {row.op for row in ROWS if row.name in recorded}


def test_every_reason_is_of_a_row():
    names, levels = [row.name for row in ROWS], {level.name for level in paths.VECTORS}
    for known in holes.read_known():
        assert known["reason"] and set(known["levels"].split()) <= levels
        assert any(holes.reason([known], name, known["levels"].split()[0]) for name in names), known["row"]


# ---- the rule ----

@pytest.mark.parametrize("count, scalar, most, hole", [
    (1.9, 2, 1, False),  # fewer than a loop over single elements takes
    (4, 4.5, 5, True),  # a loop over single elements
    (4, 9, 5, False),
    (6, 30, 5, True),  # more than vectors explain
])
def test_what_is_a_hole(count, scalar, most, hole):
    assert holes.is_hole(count, scalar, most) == hole


def test_a_loop_over_single_elements_is_found():
    """Instructions of a scalar level are a hole of the level it stands in for."""
    row = next(r for r in ROWS if r.name == "Abs 100x1000 float32")
    counted = paths.measure([row], [paths.LEVELS["scalar"]])[row.name]["scalar"]
    as_neon = {row.name: {"neon": counted, "avx2": 1.0, "scalar": counted}}
    assert [h.level for h in holes.find([row], as_neon)] == ["neon"]
