"""The ONNX backend suite through `linnet verify --suite`, in every way a case can be run.

tests/expected_pass.txt lists what has to pass; it may only grow. LINNET_UPDATE=1 adds what passes now in every way.
"""

import csv
import os
import re

import pytest

from harness import ROOT, SHARED, linnet

EXPECTED = ROOT / "tests" / "expected_pass.txt"
T1_AT_LEAST = 450

WAYS = {
    "unoptimised": ["--opt", "none"],
    "optimised": ["--opt", "all"],
    "scalar": ["--opt", "all", "--level", "scalar"],
    "two_threads": ["--opt", "all", "--threads", "2"],
    "baked_rest": ["--opt", "all", "--bake", "rest"],
    "baked_all": ["--opt", "all", "--bake", "all"],
}

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


@pytest.mark.parametrize("way", ["optimised", "baked_rest"])
def test_first_tier(suite_folder, shared, way):
    with open(shared / "reference" / "conformance.tsv") as f:
        tier1 = {row["test"] for row in csv.DictReader(f, delimiter="\t") if row["kind"] == "node" and row["tier"] == "T1"}
    passed = tier1 & passes(run_suite(suite_folder, way))
    assert len(passed) >= T1_AT_LEAST
    assert len(passed) == len(tier1 & passes(run_suite(suite_folder, "optimised")))


def test_expected_list_is_sorted_and_grows(suite_folder):
    names = expected_names()
    assert names == sorted(set(names))
    if os.environ.get("LINNET_UPDATE"):
        now = set.intersection(*(passes(run_suite(suite_folder, way)) for way in WAYS))
        header = "# Cases of the ONNX backend suite that pass in every way tests/python/test_suite.py runs them.\n"
        EXPECTED.write_text(header + "\n".join(sorted(now | set(names))) + "\n")
