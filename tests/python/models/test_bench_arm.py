"""What `make bench-arm` goes by: its counters, its model of the Cortex-A53; and that a run on ARM takes as many instructions as
were recorded (tests/bench/arm)."""

import subprocess
import sys
import warnings

import pytest

from harness import ROOT

sys.path[:0] = [str(ROOT / "tests/bench/arm"), str(ROOT / "tests/bench")]

import a53  # noqa: E402
import a64  # noqa: E402
import arm_report  # noqa: E402
import bench  # noqa: E402
import bench_arm  # noqa: E402
import counts  # noqa: E402
import cycles  # noqa: E402
import emulation  # noqa: E402
import report  # noqa: E402

RENEW = "if it is meant to be so, `.deps/venv/bin/python tests/bench/arm/bench_arm.py --record` records it"
A53 = emulation.CORES["a53"]


def tools(core):
    try:
        return counts.tools(core)
    except emulation.MissingTool as missing:
        pytest.skip(str(missing))


# ---- instructions of models ----

@pytest.mark.parametrize("recorded", counts.read(), ids=lambda r: f"{r['model']} {r['core']}")
def test_instructions_of_a_run_are_those_recorded(shared, recorded):
    core, expected = emulation.CORES[recorded["core"]], int(recorded["instructions"])
    here = tools(core)
    other = "" if here == recorded["tools"] else f" (recorded with {recorded['tools']}, counted with {here})"
    if other:
        warnings.warn(f"{recorded['model']} on {core.name}{other}")
    found = bench_arm.count(bench_arm.made(bench_arm.rows([recorded["model"]])[0]), core)
    change = found / expected - 1
    assert abs(change) <= counts.TOLERANCE, (
        f"{round(found)} instructions, recorded {expected}: {100 * change:+.1f} %{other}; {RENEW}")


def test_every_model_and_core_is_recorded():
    found = {(r["model"], r["core"]) for r in counts.read()}
    assert found == {(model, core) for model in counts.NAMES for core in counts.RECORDED_CORES}


# ---- counters ----

@pytest.fixture
def assembled(tmp_path):
    """Makes a program of A64 code that stands before it ends with success."""
    def assemble(code):
        tools(A53)
        source, program = tmp_path / "program.S", tmp_path / "program"
        source.write_text(f".globl _start\n_start:\n{code}\nmov x0, #0\nmov x8, #93\nsvc #0\n.bss\n.balign 4096\nroom: .skip 1 << 21\n")
        subprocess.run(["aarch64-linux-gnu-gcc", "-nostdlib", "-static", "-o", program, source], check=True)
        return program
    return assemble


def counted(counter, program, words=(), options=""):
    out = program.with_suffix(".txt")
    emulation.emulate(A53, [program, *words], f"{emulation.plugin(counter)},out={out}{options}")
    return out


def instructions(path):
    return sum(b.instructions for b in emulation.read_blocks(path).values())


def test_each_instruction_is_counted(assembled):
    """A loop that turns 1,000 times for each word of the command."""
    program = assembled("ldr x0, [sp]\nmov x1, #1000\nmul x1, x0, x1\n1: add x2, x2, #1\nsubs x1, x1, #1\nb.ne 1b")
    assert instructions(counted("count_blocks", program)) == 6 + 1000 * 3
    assert instructions(counted("count_blocks", program, ["a", "b"])) == 6 + 3000 * 3


def test_only_what_stands_between_marks_is_counted(assembled):
    program = assembled("mov x1, #100\n1: subs x1, x1, #1\nb.ne 1b\nmov x8, #173\nsvc #0\nmov x1, #10\n2: subs x1, x1, #1\nb.ne 2b\n"
                        "svc #0\nmov x1, #100\n3: subs x1, x1, #1\nb.ne 3b\nsvc #0")
    assert instructions(counted("count_blocks", program, options=f",mark={emulation.MARK}")) == 1 + 10 * 2 + 1


def passes(kilobytes, times, instruction):
    """Code that goes through so many kilobytes, a line at a time, so often."""
    return (f"mov x3, #{times}\n1: adrp x0, room\nmov x1, #{kilobytes * 16}\n2: {instruction}\nadd x0, x0, #64\nsubs x1, x1, #1\n"
            "b.ne 2b\nsubs x3, x3, #1\nb.ne 1b")


@pytest.mark.parametrize("kilobytes, times, read", [(16, 3, 256), (256, 3, 4096), (1024, 3, 3 * 16384)])
def test_lines_that_a_cache_lacks_are_read(assembled, kilobytes, times, read):
    """What fits into the last cache is read once, what does not each time."""
    path = counted("count_bytes", assembled(passes(kilobytes, times, "ldr x2, [x0]")), options=",first=32,last=512")
    assert emulation.read_lines(path) == [read, 0]
    assert int(path.read_text().split()[0]) == times * kilobytes * 16


def test_lines_written_to_are_written_back_when_they_leave(assembled):
    path = counted("count_bytes", assembled(passes(1024, 2, "str x2, [x0]")), options=",first=32,last=512")
    assert emulation.read_lines(path) == [2 * 16384, 2 * 16384 - (512 << 4)]


# ---- cycles ----

def of_loop(*texts):
    return a53.loop_cycles([a64.parse(t) for t in texts])


def multiply_adds(count):
    return [f"fmla\tv{8 + i}.4s, v0.4s, v1.s[{i % 4}]" for i in range(count)]


@pytest.mark.parametrize("extra, wanted", [
    ([], 8),
    (["ldr\tq2, [x1]"], 10),
    (["ldp\tq2, q3, [x1]"], 12),
    (["ldr\td2, [x1]"], 9),
    (["ldr\td2, [x1]", "ins\tv3.d[1], x3"], 9),
    (["ldr\tx2, [x1]"], 8),
    (["add\tx1, x1, #0x10"], 8),
    (["ld1\t{v2.4s-v5.4s}, [x1], #64"], 16),
])
def test_loads_beside_multiply_adds_take_what_is_published(extra, wanted):
    assert of_loop(*extra, *multiply_adds(8)) == wanted


@pytest.mark.parametrize("text, wanted", [
    ("fmla\tv0.4s, v1.4s, v2.4s", 4),
    ("fadd\tv0.4s, v0.4s, v1.4s", 4),
    ("fmul\tv0.4s, v0.4s, v1.4s", 4),
    ("fmla\tv1.4s, v1.4s, v2.4s", 8),
    ("fmla\tv1.4s, v2.4s, v1.4s", 8),
    ("ldr\tx0, [x0]", 3),
    ("add\tx0, x0, x1", 1),
])
def test_a_chain_takes_its_latency(text, wanted):
    assert of_loop(text) == wanted


def test_the_schedule_shows_what_waits():
    code = ["ldr\ts0, [x1]", "fmla\tv8.4s, v1.4s, v0.s[0]", "add\tx1, x1, #0x4", "fmla\tv9.4s, v1.4s, v2.s[0]"]
    assert a53.schedule([a64.parse(t) for t in code]) == [0, 4, 4, 5]


def test_two_instructions_issue_in_a_cycle():
    assert of_loop("add\tx0, x1, x2", "add\tx3, x1, x2") == 1
    assert of_loop("fadd\tv0.2s, v1.2s, v2.2s", "fadd\tv3.2s, v1.2s, v2.2s") == 1
    assert of_loop("fadd\tv0.4s, v1.4s, v2.4s", "fadd\tv3.4s, v1.4s, v2.4s") == 2


@pytest.mark.parametrize("text, products", [
    ("fmla\tv0.4s, v1.4s, v2.s[0]", 4), ("fmla\tv0.8h, v1.8h, v2.8h", 8), ("fmadd\ts0, s1, s2, s0", 1),
    ("sdot\tv0.4s, v1.16b, v2.4b[0]", 16), ("smmla\tv0.4s, v1.16b, v2.16b", 32), ("smlal2\tv0.4s, v1.8h, v2.8h", 4),
    ("fadd\tv0.4s, v1.4s, v2.4s", 0),
])
def test_multiply_adds_of_an_instruction(text, products):
    assert a64.parse(text).multiply_adds == products


def test_blocks_that_always_follow_each_other_are_one_loop():
    """A loop that the end of a page cuts in two: 10 passes, entered once from elsewhere."""
    def block(address, count, before):
        return emulation.Block(address, ("1f2003d5",), count, emulation.collections.Counter(before))
    entry, head, tail = ((address, ("1f2003d5",)) for address in (0x100, 0x1000, 0x1004))
    found = cycles.pieces([block(entry[0], 1, {}), block(head[0], 100, {entry: 1, tail: 99}), block(tail[0], 100, {head: 100})])
    assert [(p.length, p.count, p.looped) for p in found] == [(2, 100, 0.99), (1, 1, 0.0)]
    assert found[0].entry.address == 0x100


# ---- the section of BENCHMARKS.md ----

def results():
    def of(cycles, **more):
        return {"instructions": 2e6, "cycles": cycles, "agrees": True, "max_rel": 0.0, "commit": "abc"} | more
    return {"mnist12/0 a72 linnet": of(1e6), "mnist12/0 a72 ort": of(1.5e6), "mnist12/0 a72 mnn": of(0.75e6),
            "mnist12/0 a72 ncnn": {"error": "no such layer"}, "ds_cnn/49x10 a72 linnet": of(1e6),
            "ds_cnn/49x10 a72 ort": of(0.1e6, agrees=False), "ds_cnn_qdq/49x10 a72 linnet": of(2e6), "ds_cnn_qdq/49x10 a72 ort": of(1e6)}


def test_engines_are_bold_where_they_need_fewer_cycles():
    text = arm_report.section(bench.rows(bench_arm.MODELS), results())
    assert "| mnist12 0 | 2 | – / 1 / – | – / 1.50 / – | – [1] | – / **0.75** / – |" in text and "1. no such layer" in text
    assert "| FP32 | ≥ 1.25 | – | 0.75, 1 of 1 below 1 | – |" in text
    assert "| ds_cnn_qdq 49x10 | 2 | – / 2 / – | – / **0.50** / – | – / **0.50** / – |" in text


def test_what_computes_something_else_has_no_figure():
    text = arm_report.section(bench.rows(bench_arm.MODELS), results())
    assert "| ds_cnn 49x10 | 2 | – / 1 / – | – [2] |  |  |" in text and "2. outputs differ" in text


def test_the_section_stays_when_others_are_written(tmp_path):
    page = tmp_path / "BENCHMARKS.md"
    page.write_text(f"# Benchmarks\n\n{report.PEERS}\nold peers\n\n{report.ARM}\nold figures\n")
    report.write_section(report.PEERS + "\nnew peers\n", report.PEERS, tmp_path)
    report.write_section(report.ARM + "\nnew figures\n", report.ARM, tmp_path)
    assert page.read_text() == f"# Benchmarks\n\n{report.PEERS}\nnew peers\n\n{report.ARM}\nnew figures\n"
