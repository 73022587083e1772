"""A program under QEMU's user-mode emulation with the counters of this folder: what ran, how often, and the bytes that
reached memory. What was counted is kept by the contents of all that takes part, and not counted again."""

import collections
import dataclasses
import hashlib
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
OUT = ROOT / "build/bench-arm"
TIMEOUT = 3600
MARK = 173  # of 64-bit ARM's system calls: getppid, which nothing else calls
KEPT = 1000  # files of profiles; the oldest go first


class MissingTool(RuntimeError):
    pass


@dataclasses.dataclass(frozen=True)
class Core:
    name: str
    board: str
    emulator: str
    cpu: str
    model: str  # of cycles: "a53", llvm-mca's name of a core, or "" where there is none
    part: str = ""  # /proc/cpuinfo's "CPU part", by which some engines choose their kernels
    features: str = ""  # /proc/cpuinfo's "Features"
    caches: tuple = (32, 512)  # KiB of the first cache of data and of the last one


PLAIN = "fp asimd evtstrm crc32 cpuid"
CORES = {core.name: core for core in (
    Core("a53", "generic-arm64", "qemu-aarch64", "cortex-a53", "a53", "0xd03", PLAIN),
    Core("a72", "generic-arm64", "qemu-aarch64", "cortex-a72", "cortex-a72", "0xd08", PLAIN, (32, 1024)),
    Core("a76", "generic-arm64", "qemu-aarch64", "cortex-a76", "neoverse-n1", "0xd0b",
         "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp", (64, 2048)),
    Core("armv7", "generic-armhf", "qemu-arm", "cortex-a7", ""),
    Core("armv6", "rpi-zero", "qemu-arm", "arm1176", "", caches=(16, 128)),
)}


def plugin(name):
    """A counter of this folder, compiled. Others may be asking for it at the same time: it takes its name when it is whole."""
    source, made = HERE / f"{name}.c", OUT / f"{name}.so"
    if not made.exists() or made.stat().st_mtime < max(p.stat().st_mtime for p in (source, *HERE.glob("*.h"))):
        OUT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OUT) as scratch:
            whole = pathlib.Path(scratch) / made.name
            subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion",
                            "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}", "-o", whole, source], check=True)
            whole.replace(made)
    return made


def qemu_version(emulator="qemu-aarch64"):
    """As the emulator says it; raises where it is absent or takes no plugins."""
    if not shutil.which(emulator):
        raise MissingTool(f"no {emulator}: make deps-arm")
    first = subprocess.run([emulator, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    if "-plugin" not in subprocess.run([emulator, "-h"], capture_output=True, text=True).stdout:
        raise MissingTool(f"{first} takes no plugins")
    return first.removeprefix(emulator).strip().removeprefix("version ")


def digest(parts):
    found = hashlib.sha256()
    for part in parts:
        found.update(part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode())
        found.update(b"\0")
    return found.hexdigest()[:24]


def without_places(words, depends):
    """The words of a command with its files by number: where they lie does not matter."""
    found = [str(word) for word in words]
    for k, path in enumerate(depends):
        found = [word.replace(str(path), f"<{k}>") for word in found]
    return found


def emulate(core, command, plugin_words="", more=()):
    """Runs a command under emulation; returns its standard output."""
    words = [core.emulator, "-cpu", core.cpu, *(["-plugin", plugin_words] if plugin_words else []), *more, *command]
    done = subprocess.run(["setarch", "-R", *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(said[-1] if said else f"ends with {done.returncode}")
    return done.stdout


def kept(core, counter, command, depends, more=(), options="", written=()):
    """The file that a counter writes of a command, from before where nothing that it depends on has changed. Where the command
    itself is to write files, it is given names of `written`, endings of that file's."""
    counter = plugin(counter)
    folder = OUT / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest([counter, options, core, *depends, *without_places([*command, *more], depends)])}.txt"
    if path.exists():
        return path
    scratch = path.with_suffix(".new")
    emulate(core, [*command, *(path.with_suffix(ending) for ending in written)], f"{counter},out={scratch}{options}", more)
    scratch.replace(path)
    for old in sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


# ---- blocks ----

@dataclasses.dataclass
class Block:
    address: int
    code: tuple  # of instructions, each its bytes in hexadecimal
    count: float = 0.0
    before: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # keys of blocks: how often

    @property
    def key(self):
        return self.address, self.code

    @property
    def instructions(self):
        return self.count * len(self.code)


def read_blocks(path):
    """The blocks of a profile by key."""
    numbered, edges = {}, {}
    for line in path.read_text().splitlines():
        number, address, count, code, *before = line.split(" ")
        numbered[int(number)] = Block(int(address, 16), tuple(code.split(",")), float(count))
        edges[int(number)] = [tuple(map(int, e.split(":"))) for e in (before[0] if before else "").split(",") if e]
    for number, block in numbered.items():
        for k, n in edges[number]:
            if k in numbered:
                block.before[numbered[k].key] += n
    return {block.key: block for block in numbered.values()}


def difference(few, many, runs):
    """What one run adds: blocks of two profiles, of which the second has so many more runs."""
    found = []
    for key, block in many.items():
        less = few.get(key)
        count = (block.count - (less.count if less else 0)) / runs
        if count > 0:
            before = block.before - less.before if less else block.before
            found.append(Block(block.address, block.code, count,
                               collections.Counter({k: n / runs for k, n in before.items()})))
    return found


def profile(core, command, depends, runs):
    """Blocks of one run: the difference of two numbers of runs. `command` gives the words for a number of runs."""
    few, many = (read_blocks(kept(core, "count_blocks", command(n), depends)) for n in runs)
    return difference(few, many, runs[1] - runs[0])


def profile_between(core, command, depends, runs, more):
    """Blocks of one run of a command that marks where its so many runs begin and end, and the file of outputs it wrote."""
    path = kept(core, "count_blocks", command, depends, more, f",mark={MARK}", (".npz",))
    return difference({}, read_blocks(path), runs), path.with_suffix(".npz")


# ---- bytes ----

LINE = 64


def read_lines(path):
    """Lines read from memory and written to it."""
    return [int(n) for n in path.read_text().split()[2:]]


def options_of(core):
    return f",first={core.caches[0]},last={core.caches[1]}"


def traffic(core, command, depends, runs):
    """Bytes of one run past the last cache, read and written: the difference of two numbers of runs."""
    few, many = (sum(read_lines(kept(core, "count_bytes", command(n), depends, (), options_of(core)))) for n in runs)
    return LINE * (many - few) / (runs[1] - runs[0])


def traffic_between(core, command, depends, runs, more):
    """The same of a command that marks where its so many runs begin and end."""
    return LINE * sum(read_lines(kept(core, "count_bytes", command, depends, more, f"{options_of(core)},mark={MARK}"))) / runs
