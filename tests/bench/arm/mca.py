"""Cycles by llvm-mca's models of cores that execute out of order, each piece of code taken as a loop of its own."""

import hashlib
import json
import re
import shutil
import subprocess

from emulation import MissingTool

NAMES = ("llvm-mca-19", "llvm-mca-20", "llvm-mca-21", "llvm-mca")
OLDEST = 17  # before, neoverse-n1 was the Cortex-A57's model
PASSES = 100
FEATURES = "+dotprod,+fullfp16,+i8mm,+bf16"


def tool():
    """The program and its version."""
    for name in NAMES:
        if shutil.which(name):
            said = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
            version = re.search(r"LLVM version (\d+)", said)
            if version and int(version[1]) >= OLDEST:
                return name, int(version[1])
    raise MissingTool(f"no llvm-mca of LLVM {OLDEST} or later: make deps-arm")


def plain(text):
    """An instruction as llvm-mca takes it: no comment, and a branch to anywhere for one that leaves."""
    text = re.sub(r"\s*//.*", "", text)
    op = text.split("\t")[0]
    if op in ("b", "bl", "br", "blr", "ret"):
        return "b.eq 64"
    if re.match(r"b\.|cbn?z|tbn?z", op):
        return re.sub(r"0x[0-9a-f]+$", "64", text)
    if op in ("adr", "adrp"):
        return re.sub(r"^adrp?\t(\w+),.*", r"mov \1, #4096", text)
    return "nop" if op in ("svc", "udf", "brk", ".inst") or "undefined" in text else text


def ask(cpu, pieces):
    name, version = tool()
    source = []
    for k, piece in enumerate(pieces):
        source += [f"# LLVM-MCA-BEGIN r{k}", *map(plain, piece), "# LLVM-MCA-END"]
    skip = ["--skip-unsupported-instructions=any"] if version >= 19 else []
    done = subprocess.run([name, "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-mattr={FEATURES}", f"-iterations={PASSES}",
                           "-all-views=false", "-summary-view", *skip], input="\n".join(source), capture_output=True, text=True)
    found = {}
    for part in re.split(r"^\[\d+\] Code Region", done.stdout, flags=re.M)[1:]:
        region, cycles = re.match(r"\s*-\s*r(\d+)", part), re.search(r"Total Cycles:\s*(\d+)", part)
        if region and cycles:
            found[int(region[1])] = int(cycles[1]) / PASSES
    if pieces and not found:
        raise RuntimeError(f"{name}: {(done.stderr.strip() or 'no answer').splitlines()[0]}")
    return found


def cycles(cpu, pieces, memory):
    """Of one pass through each list of texts; None for one that the tool cannot take. What it said before is kept in the
    file `memory`, for the next build shares most of its code with this one."""
    memory = memory.with_name(f"{memory.stem}-{cpu}-{tool()[1]}.json")
    known = json.loads(memory.read_text()) if memory.exists() else {}
    keys = [hashlib.sha1("\n".join(map(plain, piece)).encode()).hexdigest()[:20] for piece in pieces]
    new = {key: piece for key, piece in zip(keys, pieces) if key not in known}
    if new:
        found = ask(cpu, list(new.values()))
        known |= {key: found.get(k) for k, key in enumerate(new)}
        scratch = memory.with_suffix(".new")
        scratch.write_text(json.dumps(known))
        scratch.replace(memory)
    return [known[key] for key in keys]
