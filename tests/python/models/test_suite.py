"""The ONNX backend suite through `linnet verify --suite`, in every way a case can be run.

tests/expected_pass.txt lists what has to pass; it may only grow. LINNET_UPDATE=1 adds what passes now in every way.
LINNET_LONG=1 goes through every way inputs can be baked, at every level, on one thread, two, and eight.
"""

import csv
import os
import re

import pytest

from harness import LONG, ROOT, levels, linnet

EXPECTED = ROOT / "tests" / "expected_pass.txt"
T2_AT_LEAST = 839  # of 841 in node/

WAYS = {
    "unoptimized": ["--opt", "none"],
    "optimized": ["--opt", "all"],
    "scalar": ["--opt", "all", "--level", "scalar"],
    "two_threads": ["--opt", "all", "--threads", "2"],
    "baked_rest": ["--opt", "all", "--bake", "rest"],
    "baked_all": ["--opt", "all", "--bake", "all"],
}

if LONG:
    BAKED = {"fed": [], "rest": ["--bake", "rest"], "all": ["--bake", "all"]}
    WAYS |= {f"{bake}_{level}_{threads}": ["--opt", "all", *BAKED[bake], "--level", level, "--threads", threads]
             for bake in BAKED for level in levels() for threads in (("1", "2", "8") if bake == "fed" else ("1", "2"))}

results = {}  # way -> {case: (verdict, reason)}; tests share the runs


def run_suite(folder, way):
    if way not in results:
        done = linnet("verify", "--suite", folder, "--jobs", os.cpu_count() or 1, *WAYS[way], timeout=1800)
        *lines, last = done.stdout.strip().split("\n")
        assert re.fullmatch(r"\d+ passed, \d+ failed, \d+ skipped", last), done.stdout[-2000:] + done.stderr[-2000:]
        found = {}
        for line in lines:
            verdict, name, *reason = line.split(" ", 2)
            found[name.split("/")[-1]] = (verdict, reason[0] if reason else "")
        results[way] = found
    return results[way]


def expected_names():
    return [line for line in EXPECTED.read_text().split("\n") if line and not line.startswith("#")]


def passes(found):
    return {name for name, (verdict, _) in found.items() if verdict == "pass"}


@pytest.mark.parametrize("way", WAYS)
def test_suite(suite_folder, way):
    found = run_suite(suite_folder, way)
    lost = {name: found[name] for name in expected_names() if name in found and found[name][0] != "pass"}
    assert not lost, "\n".join(f"{name}: {verdict} {reason}" for name, (verdict, reason) in lost.items())


@pytest.mark.parametrize("way", WAYS)
def test_nothing_crashes(suite_folder, way):
    found = run_suite(suite_folder, way)
    bad = [f"{name}: {reason}" for name, (verdict, reason) in found.items()
           if verdict == "fail" and re.match(r"crashed|no answer|ended with", reason)]
    assert not bad, "\n".join(bad)


def tiers(shared):
    """(kind, tier) -> its cases."""
    found = {}
    with open(shared / "reference" / "conformance.tsv") as f:
        for row in csv.DictReader(f, delimiter="\t"):
            found.setdefault((row["kind"], row["tier"]), set()).add(row["test"])
    return found


@pytest.mark.parametrize("way", WAYS)
def test_tiers(suite_folder, shared, way):
    passed, cases = passes(run_suite(suite_folder, way)), tiers(shared)
    tier1 = {kind: names for (kind, tier), names in cases.items() if tier == "T1"}
    assert {kind: len(names) for kind, names in tier1.items()} == {"node": 689, "light": 9, "pytorch-converted": 81,
                                                                  "pytorch-operator": 29, "simple": 6}
    assert not set.union(*tier1.values()) - passed
    assert len(cases["node", "T2"] & passed) >= T2_AT_LEAST


def test_training_is_refused_with_the_reason(suite_folder):
    found = run_suite(suite_folder, "optimized")
    for name in ("test_adam", "test_adagrad", "test_momentum", "test_gradient_of_add"):
        assert found[name][0] == "unsupported" and "it trains a model" in found[name][1], found[name]
    assert "belongs to training" in found["test_training_dropout"][1]


def test_the_pages_say_so(suite_folder):
    """docs/operators.md has every operator of ops/list.h, docs/conformance.md as many cases as pass here, of as many."""
    listed = re.findall(r"^\| `(\w+)` \| (\S+) \|", (ROOT / "docs" / "operators.md").read_text(), re.M)
    domains = {"ONNX": "ai.onnx", "MICROSOFT": "com.microsoft", "ML": "ai.onnx.ml"}
    rows = re.findall(r'^(?:OP|PRODUCT)\(\d+, \d+, \w+, (\w+), "(\w+)"', (ROOT / "ops" / "list.h").read_text(), re.M)
    assert {(name, domains[domain]) for domain, name in rows if domain in domains} <= set(listed) and len(listed) == len(set(listed))
    told = re.findall(r"^\| ([\w-]+) \| (\d+) \| \d+ \| (\d+) \|$", (ROOT / "docs" / "conformance.md").read_text(), re.M)
    if sum(int(n) for _, _, n in told) != sum(1 for kind in suite_folder.iterdir() if kind.is_dir() for _ in kind.iterdir()):
        pytest.skip("the pages are of the shared suite")
    assert sum(int(passed) for _, passed, _ in told) == len(passes(run_suite(suite_folder, "optimized")))


def test_expected_list_is_sorted_and_grows(suite_folder):
    names = expected_names()
    assert names == sorted(set(names))
    if os.environ.get("LINNET_UPDATE"):
        now = set.intersection(*(passes(run_suite(suite_folder, way)) for way in WAYS))
        header = "# Cases of the ONNX backend suite that pass in every way tests/python/models/test_suite.py runs them.\n"
        EXPECTED.write_text(header + "\n".join(sorted(now | set(names))) + "\n")
