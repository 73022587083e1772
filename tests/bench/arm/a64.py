"""A64 instructions as objdump prints them: what each reads and writes, its kind, the multiply-adds it computes."""

import dataclasses
import functools
import re
import subprocess
import tempfile

OBJDUMP = "aarch64-linux-gnu-objdump"
LANES = {"16b": 16, "8b": 8, "8h": 8, "4h": 4, "4s": 4, "2s": 2, "2d": 2, "1d": 1}
FULL = re.compile(r"\bq\d+|\.(16b|8h|4s|2d)\b(?!\[)")
REGISTER = re.compile(r"\b([xwvqdshb])(\d+)\b|\bw?sp\b")
RANGE = re.compile(r"\{v(\d+)\.(\w+)\s*-\s*v(\d+)\.\w+\}")

COMPARES = {"cmp", "cmn", "tst", "ccmp", "ccmn", "fcmp", "fcmpe", "fccmp", "fccmpe"}
SETS_FLAGS = COMPARES | {"adds", "subs", "ands", "bics", "negs", "adcs", "sbcs", "ngcs"}
READS_FLAGS = re.compile(r"b\.|cs|cinc|cinv|cneg|fcsel|fccmp|ccm|adc|sbc|ngc")
BRANCH = re.compile(r"(b|bl|br|blr|ret|cbz|cbnz|tbz|tbnz)$|b\.")
# Vector instructions that add to, or leave parts of, what their first operand holds.
ACCUMULATES = re.compile(r"f?ml[as]|fmlal|fmlsl|[su]ml[as]l|sqdml[as]l|sqrdml[as]h|(su|us|s|u|bf)dot|(us|s|u|bf)mmla|[su]adalp|"
                         r"[su]aba|[su]r?sra|fcmla")
KEEPS_PARTS = re.compile(r"bsl|bi[tf]$|ins$|tbx|s[lr]i$|\w*n2$|movk|bf(i|m|xil|c)$")


@dataclasses.dataclass(frozen=True)
class Instruction:
    op: str
    kind: str  # branch, load, store, vector_load, vector_store, vector, multiply, divide, integer
    reads: tuple
    writes: tuple
    adds_to: str  # the register that an accumulating instruction adds to, among `reads` only if it is a factor, too; else ""
    full: bool  # vectors of 128 bits
    registers: int  # that a load or store moves
    multiply_adds: int


def registers(text):
    """Names of registers, x0 or v0 whatever part of them is meant; the zero register is none."""
    def listed(m):
        first, shape, end = int(m[1]), m[2], int(m[3])
        count = (end - first) % 32 + 1
        return "{" + ", ".join(f"v{(first + i) % 32}.{shape}" for i in range(count)) + "}"
    return [("v" if m[1] in "vqdshb" else "x") + m[2] if m[1] else "sp" for m in REGISTER.finditer(RANGE.sub(listed, text))]


def multiply_adds(op, operands):
    """Of one instruction; a product by itself adds nothing and counts as none, but for the widening ones of int8 kernels."""
    lanes = LANES.get((re.match(r"v\d+\.(\w+)", operands) or [None, ""])[1], 1)
    if re.match(r"\w*mmla$", op):
        return 32
    if re.match(r"\w*dot$", op):
        return 4 * lanes
    if re.match(r"fn?m(add|sub)$|f?ml[as]$|[su]ml[as]l2?$|[su]mull2?$|fmlal2?$", op):
        return lanes
    return 0


def memory(op, operands):
    """Registers read, written and moved by a load or store, and whether these are of the vector unit."""
    inside = registers(operands[operands.index("["):])
    moved = registers(operands[:operands.index("[")])
    after = inside[:1] if "]!" in operands or "]," in operands else []
    vector = bool(moved) and moved[0][0] == "v"
    if op.startswith("st"):
        return moved + inside, after, len(moved), vector
    partly = moved if re.search(r"\}\[\d+\]", operands) else []
    return inside + partly, moved + after, len(moved), vector


def arithmetic_kind(op, all_registers):
    if any(r[0] == "v" for r in all_registers):
        return "vector"
    if re.match(r"[su]div$", op):
        return "divide"
    return "multiply" if re.match(r"(m(ul|add|sub|neg)|[su]m(ull|addl|subl|ulh|negl|negl))$", op) else "integer"


@functools.lru_cache(None)
def parse(text):
    """An instruction from its text, mnemonic and operands."""
    op, _, operands = re.sub(r"\s*//.*", "", text).partition("\t")
    full = bool(FULL.search(operands))
    flags = ["flags"] if READS_FLAGS.match(op) else []
    if BRANCH.match(op):
        return Instruction(op, "branch", tuple(registers(operands) + flags), (), "", False, 0, 0)
    if op.startswith(("ld", "st")) and "[" in operands:
        reads, writes, moved, vector = memory(op, operands)
        kind = ("vector_" if vector else "") + ("store" if op.startswith("st") else "load")
        return Instruction(op, kind, tuple(reads), tuple(writes), "", full, moved, 0)
    found = registers(operands)
    if op in COMPARES or op.startswith("prfm"):
        kind = "load" if op.startswith("prfm") else arithmetic_kind(op, found)
        return Instruction(op, kind, tuple(found + flags), ("flags",) if op in COMPARES else (), "", full, 0, 0)
    kind = arithmetic_kind(op, found)
    accumulates = kind == "vector" and bool(ACCUMULATES.match(op))
    element = re.match(r"(mov|ins)$", op) and re.match(r"v\d+\.\w+\[", operands)
    immediate = op in ("orr", "bic") and kind == "vector" and len(found) == 1
    first_is_read = KEEPS_PARTS.match(op) or element or immediate
    zero_first = re.match(r"[xw]zr", operands)
    writes = ([] if zero_first else found[:1]) + (["flags"] if op in SETS_FLAGS else [])
    reads = (found if first_is_read or zero_first else found[1:]) + flags
    return Instruction("ins" if element else op, kind, tuple(reads), tuple(writes), found[0] if accumulates else "", full, 0,
                       multiply_adds(op, operands))


def disassemble(codes):
    """The texts of the instructions of each string of bytes."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as f:
        f.write(b"".join(codes))
        f.flush()
        listing = subprocess.run([OBJDUMP, "-D", "-b", "binary", "-m", "aarch64", "--no-show-raw-insn", "-z", f.name],
                                 capture_output=True, text=True, check=True).stdout
    texts = [m[1].strip() for m in re.finditer(r"^\s*[0-9a-f]+:\t(.*)$", listing, re.M)]
    ends = [0]
    for code in codes:
        ends.append(ends[-1] + len(code) // 4)
    return [texts[a:b] for a, b in zip(ends, ends[1:])]
