#!/usr/bin/env python3
"""analyze.py: what can be said of the hot kernels of ARM boards without one: writes boards/ANALYSIS.md.

The innermost loop of each kernel, as the compiler makes it for the core, goes through llvm-mca with that core's model;
beside stand the instructions that a whole operator takes under emulation, counted by a small plugin for QEMU. Needs
llvm, the cross compilers, qemu-user, build/linnet and .deps/venv (make deps-test)."""
import functools
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GCC = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64"
FLAGS = ("-std=c11 -O2 -I. -Ibase -D_GNU_SOURCE -fPIC -ffp-contract=off -fno-math-errno -fno-unwind-tables "
         "-fno-asynchronous-unwind-tables")
# core: (llvm-mca's model, levels); neoverse-n1 is the A76's twin.
CORES = {"cortex-a53": ("cortex-a53", ["neon"]), "cortex-a72": ("cortex-a72", ["neon"]),
         "cortex-a76": ("neoverse-n1", ["neon", "dotprod"]), "max": ("neoverse-n1", ["i8mm"])}
ROUNDS = 200

# (kernel, level, family, function, instructions that do the work, those of them that are counted, what one does, unit)
KERNELS = [
    ("FP32 GEMM, 6 x 16", "neon", "gemm", "tile_6", "fmla", "fmla", 8, "flops"),
    ("FP32 GEMM, 4 x 16", "neon", "gemm", "tile_4", "fmla", "fmla", 8, "flops"),
    ("FP32 GEMM, 1 x 16", "neon", "gemm", "tile_1", "fmla", "fmla", 8, "flops"),
    ("FP32 depthwise", "neon", "gemm", "depthwise", "fmla", "fmla", 8, "flops"),
    ("bytes, SMULL, 2 x 16", "neon", "qgemm", "tile", "smull2?|smlal2?", "smull2?|smlal2?", 16, "ops"),
    ("bytes, SDOT, 5 x 16", "dotprod", "qgemm", "tile", "sdot", "sdot", 32, "ops"),
    ("bytes, SUDOT, 5 x 16", "i8mm", "qgemm", "tile", "sudot|usdot", "sudot|usdot", 32, "ops"),
    ("floats to bytes", "neon", "row", "quantize", "fdiv", "fdiv", 4, "elements"),
    ("their least", "neon", "row", "min", "fcmgt|bit|bif|bsl", "fcmgt", 4, "elements"),
    ("e ** x", "neon", "program_kernels", "instr_EXP", "fmla", r"str\tq\d+", 4, "elements"),
]
# (operator, model of that one operator, multiplications)
OPERATORS = [
    ("MatMul 64x256 256x256", "MatMul", 64 * 256 * 256),
    ("Conv 3x3, 64 channels, 28x28", "Conv", 28 * 28 * 64 * 64 * 9),
    ("Conv depthwise 3x3, 64 channels, 56x56", "Depthwise", 56 * 56 * 64 * 9),
    ("MatMulInteger 64x256 256x256", "MatMulInteger", 64 * 256 * 256),
    ("Exp of 65536", "Exp", 65536),
]

PLUGIN = r"""
/* Counts the instructions a program runs; what it needs of QEMU's plugin interface (version 1) is declared here. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
int qemu_plugin_version = 1;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*cb)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *at, uint64_t n);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*cb)(uint64_t, void *), void *user);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
static uint64_t count;
static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &count, qemu_plugin_tb_n_insns(tb));
}
static void finished(uint64_t id, void *user)
{
    fprintf(stderr, "instructions: %" PRIu64 "\n", count);
}
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
"""


def sh(words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=ROOT, **options)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@functools.cache
def assembly(family, level, core):
    """The compiler's output for one source file, as the Makefile builds it for that core."""
    march = {"dotprod": "cortex-a76", "i8mm": "cortex-a76+i8mm"}.get(level, core if core != "max" else "cortex-a76")
    return sh([GCC, *FLAGS.split(), f"-mcpu={march}", "-S", "-o", "-", *ROOT.glob(f"ops/*/{family}_{level}.c")])


def loops(text, function):
    """Instructions of each loop that holds no other, in any copy of the function that the compiler made. Branches out of it
    and past parts of it are taken as never taken."""
    for body in re.findall(rf"^{function}\b[\w.]*:\n(.*?)\n\t\.size\t{function}\b", text, re.S | re.M):
        lines, label, found = body.split("\n"), {}, []
        for i, line in enumerate(lines):
            here = re.match(r"(\.L\w+):", line)
            if here:
                label[here[1]] = i
            back = re.match(r"\t(?:b|cb|tb)[\w.]*\t.*?(\.L\w+)$", line)
            if back and back[1] in label and not any(begin >= label[back[1]] for begin, _ in found):
                found.append((label[back[1]], i))
        for begin, end in found:
            yield [x for x in lines[begin + 1:end + 1] if x.startswith("\t") and not x.startswith("\t.")]


def number_of(loop, instructions):
    return sum(bool(re.match(rf"\t(?:{instructions})\b", x)) for x in loop)


def hottest(text, function, work):
    """The loop with most of the instructions that do the work, for its length."""
    return max(loops(text, function), key=lambda loop: number_of(loop, work) ** 2 / max(len(loop), 1), default=[])


def cycles(loop, model):
    done = subprocess.run(["llvm-mca", "-mtriple=aarch64", f"-mcpu={model}", "-mattr=+dotprod,+i8mm,+fullfp16",
                           f"-iterations={ROUNDS}"], input="\n".join(loop) + "\n", capture_output=True, text=True)
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if not found:
        sys.exit(done.stderr)
    return int(found[1]) / ROUNDS


def static_rows():
    for kernel, level, family, function, work, counted, each, unit in KERNELS:
        for core, (model, levels) in CORES.items():
            if level not in levels:
                continue
            loop = hottest(assembly(family, level, core), function, work)
            n = number_of(loop, counted)
            if not n:
                sys.exit(f"{kernel}: no loop with {work} in {function}")
            took = cycles(loop, model)
            yield kernel, core, len(loop), f"{took:.1f}", f"{n * each / took:.2f} {unit}"


def operator(kind, path):
    """A model of one operator with constant weights."""
    code = f"""
import numpy as np, onnx
from onnx import helper, numpy_helper, TensorProto as T
rng = np.random.default_rng(1)
def constant(name, *shape):
    return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
kinds = {{
    "MatMul": ([64, 256], T.FLOAT, T.FLOAT, [constant("w", 256, 256)], {{}}),
    "Conv": ([1, 64, 28, 28], T.FLOAT, T.FLOAT, [constant("w", 64, 64, 3, 3)], dict(pads=[1, 1, 1, 1])),
    "Depthwise": ([1, 64, 56, 56], T.FLOAT, T.FLOAT, [constant("w", 64, 1, 3, 3)], dict(pads=[1, 1, 1, 1], group=64)),
    "MatMulInteger": ([64, 256], T.UINT8, T.INT32,
                      [numpy_helper.from_array(rng.integers(-127, 128, (256, 256)).astype(np.int8), "w")], {{}}),
    "Exp": ([65536], T.FLOAT, T.FLOAT, [], {{}}),
}}
shape, dtype, result, weights, attributes = kinds[{kind!r}]
node = helper.make_node({kind!r}.replace("Depthwise", "Conv"), ["x", *[w.name for w in weights]], ["y"], **attributes)
graph = helper.make_graph([node], "one", [helper.make_tensor_value_info("x", dtype, shape)],
                          [helper.make_tensor_value_info("y", result, None)], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {str(path)!r})
"""
    sh([ROOT / ".deps/venv/bin/python", "-c", code])


def instructions(program, plugin, core, level, model):
    """Of one run: what twelve take more than two, by ten."""
    def count(runs):
        said = sh([EMULATOR, "-plugin", plugin, "-cpu", core, program, "bench", model, "--runs", str(runs), "--warmup", "0",
                   "--level", level])
        return int(re.search(r"instructions: (\d+)", said)[1])
    return (count(12) - count(2)) / 10


def counted_rows():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "count.c").write_text(PLUGIN)
        sh(["gcc", "-shared", "-fPIC", "-O2", "-o", folder / "count.so", folder / "count.c"])
        sh(["make", "-s", "-j2", "BOARD=generic-arm64", "STATIC=1", "build/generic-arm64/linnet"])
        for name, kind, work in OPERATORS:
            operator(kind, folder / "one.onnx")
            sh(["build/linnet", "convert", folder / "one.onnx", "-o", folder / "one.lnt"])
            levels = ["neon"] if "Integer" not in kind else ["neon", "dotprod", "i8mm"]
            for level in levels:
                n = instructions("build/generic-arm64/linnet", folder / "count.so", "max", level, folder / "one.lnt")
                yield name, level, f"{n / 1e3:,.0f}", f"{work / n:.2f}"


def table(heads, rows):
    rows = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


TEXT = """# Hot kernels by static analysis

Written by `python3 boards/analyze.py`; nothing here was run on a board.

## Innermost loops

`llvm-mca` with the core's model, operands in the first-level cache. The model of the A53, which runs in order, is
pessimistic: it lets no load finish before an older multiply-add has. That of the A76 has one pipe of multiply-adds where the core
has two.

{static}

## Whole operators

Instructions of one run on one thread under QEMU, every level of the one binary (`-cpu max`); the same in every repetition.

{counted}

## What hardware has to show

* **A53.** The tiles load the elements of A ahead of the multiply-adds of a step. By the model a step of the largest tile
  then takes 58 cycles instead of 86 on an A53, and 24 as before on the others. `linnet bench --kernels gemm` on a Pi 3
  shows whether it does, against a build with `ROWS_AHEAD` taken out; and whether 64-bit loads, which that core pairs with
  multiply-adds and the model knows nothing of, are worth a kernel of their own.
* **Bytes on A53 and A72.** SMULL, SMLAL and SADALP do two rows by sixteen columns. `linnet doctor --calibrate` gives both
  rates; `boards/costs/` holds modelled ones, of tiles with their stores, and `--int8 auto --board rpi3` decides by them.
* **A76.** SDOT needs its operands from the first-level cache at two loads a cycle; whether the panels stay there is for
  `linnet bench --kernels` to show.
"""


def main():
    static, counted = list(static_rows()), list(counted_rows())
    text = TEXT.format(static=table(["kernel", "core", "instructions", "cycles", "per cycle"], static),
                       counted=table(["operator", "level", "thousand instructions", "multiplications or elements per instruction"],
                                     counted))
    (ROOT / "boards" / "ANALYSIS.md").write_text(text)
    print(text)


main()
