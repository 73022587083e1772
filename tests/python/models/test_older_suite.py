"""The nodes' cases that came with older ONNX versions (tests/conformance/older_suite.py), at opsets 1 to 24: what does not
pass is named here, with the cause. Skipped where `make deps-long` has not brought them."""

import os
import re

import pytest

from harness import LONG, ROOT, levels, linnet

OLDER = ROOT / ".deps" / "older"
LEFT = {
    r"test_bernoulli\w*\.o(15|22)": "numpy's stream of random numbers",
    r"test_training_dropout\w*\.o(12|13|22)": "training",
    r"test_cast_(FLOAT_to_STRING|STRING_to_FLOAT)\.o9": "the text of their data is addresses in memory",
    r"test_cast_FLOAT(16)?_to_FLOAT4E2M1\.o23": "NaN became 6 in them, and is -0 since 25; ONNX says neither",
    r"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True\.o19":
        "counts what lies behind the padding, which 22 mended; onnxruntime does as Linnet at every opset",
}
WAYS = {"optimized": ["--opt", "all"]}
if LONG:
    WAYS |= {"unoptimized": ["--opt", "none"], "baked_rest": ["--opt", "all", "--bake", "rest"]}
    WAYS |= {f"{level}_{threads}": ["--level", level, "--threads", threads] for level in levels() for threads in ("1", "2", "8")}

pytestmark = pytest.mark.skipif(not (OLDER / "ready").exists(), reason="no older cases: make deps-long brings them")


@pytest.mark.parametrize("way", WAYS)
def test_older_opsets(way):
    done = linnet("verify", "--suite", OLDER, "--jobs", os.cpu_count() or 1, *WAYS[way], timeout=1800)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()[:-1]]
    found = {name.partition("/")[2]: (verdict, " ".join(why)) for verdict, name, *why in lines}
    assert len(found) == 3995
    failed = {name for name, (verdict, _) in found.items() if verdict != "pass"}
    named = {name for name in failed if any(re.fullmatch(pattern, name) for pattern in LEFT)}
    assert failed == named, "\n".join(f"{name}: {found[name]}" for name in failed - named)
    assert len(failed) == 29
