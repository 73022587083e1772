#!/usr/bin/env python3
"""stages.py check|test|long: runs the stages of the test suite, prints what each counted and how long it took, and ends
with the totals. Those of a list run one after another; where a campaign has a tuple of lists these run side by side. Each
stage's whole output is in build/logs/STAGE.txt; the end of it is printed if the stage fails."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "--durations=40"]
# Python's tests by folder, in two halves of about the same time.
FOLDERS = {path.parent.name for path in (ROOT / "tests" / "python").glob("*/test_*.py")}
PROGRAMS = {"cli", "examples", "package", "speech"}
HALVES = {"python, programs": PROGRAMS, "python, models": FOLDERS - PROGRAMS}
# AMX is in few CPUs: these builds compute its instructions, so that every machine tests that level.
SANITIZER = ["SAN=-fsanitize=address,undefined -fno-sanitize-recover=undefined", "AMX=emulated"]
SANITIZE = ["BUILD=build/asan", "CHECKED=", *SANITIZER]
# With assertions and the loop that checks every step, which are for the long campaign.
CHECKED = ["BUILD=build/checked", *SANITIZER]
SANITIZED = ["env", "LINNET=build/asan/linnet"]
JOBS = f"-j{os.cpu_count() or 1}"
WATCHED = ["BUILD=build/tsan", "CHECKED=", "SAN=-fsanitize=thread"]
RACES = [*WATCHED, "TEST_BIN=build/tsan/tests/test_races"]
THREADS = [*WATCHED, "TEST_BIN=build/tsan/tests/test_threads build/tsan/tests/test_runtime"]
# A make that runs this must not lend its flags and variables to the makes below.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
TAIL = 60


def make(*words):
    return ["make", "--no-print-directory", "--output-sync=target", JOBS, *words]


def board(name):
    """Python's tests build some boards' programs, too: whoever does holds build/BOARD.lock."""
    return (f"board {name}", ["flock", f"build/{name}.lock", *make(f"BOARD={name}", "test")])


def compiled_as(path):
    """What decides which code a board's programs have: its compiler, and whether it is linked statically. Others of the same have
    fewer levels, or differ in the order of instructions, which the compiler chooses by the core."""
    return tuple(re.findall(r"^(?:CROSS|STATIC|ARMV7) := \S*", path.read_text(), re.MULTILINE))


BOARDS = sorted((ROOT / "boards").glob("*.mk"))
# Of boards with the same code one is tested each time, the others in the long campaign.
FIRST = {compiled_as(path): path.stem for path in reversed(BOARDS)}
# With what Python loads: tests that run side by side would write it at once.
BUILD = ("build", make("all", "python"))
STYLE = ("style", [sys.executable, "tests/style.py"])
UNIT = ("unit", make("unit"))
CLANG = ["CC=clang", "BUILD=build/clang"]
INT8 = [f"tests/python/int8/test_int8{part}.py" for part in ("", "_import", "_static")]
VOICES = [f"tests/python/speech/test_{name}.py" for name in ("default_voice", "say_ssml", "say_prompts")]
FAULTS = ["tests/python/cli/test_system_faults.py", "tests/python/cli/test_files.py"]
FUZZ = [sys.executable, "tests/fuzz/fuzz.py"]

# (name, command); the counts are read from what the command prints.
STAGES = {
    "check": [
        BUILD,
        STYLE,
        UNIT,
        ("kernels", ["build/linnet", "doctor"]),
        ("suite", [*PYTEST, "tests/python/models/test_suite.py::test_suite[optimized]"]),
    ],
    "test": [
        BUILD,
        STYLE,
        UNIT,
        # Four for two cores: one or another always waits for something.
        (
            *[[(name, [*PYTEST, *(f"tests/python/{folder}" for folder in sorted(folders))])] for name, folders in HALVES.items()],
            [
                ("unit, sanitized", make("all", "unit", "replay", *SANITIZE)),
                ("replay, sanitized", [*FUZZ, "replay", "--build", "build/asan", "--changes", "1"]),
                ("kernels, sanitized", ["build/asan/linnet", "doctor"]),
                ("INT8, sanitized", [*SANITIZED, *PYTEST, *INT8]),
                ("voices, sanitized", [*SANITIZED, *PYTEST, *VOICES, "-k", "not memory"]),
                ("faults, sanitized", [*SANITIZED, *PYTEST, FAULTS[0]]),
                ("races, sanitized", make("unit", *RACES)),
            ],
            [
                ("kernels", ["build/linnet", "doctor"]),
                ("replay, build", make("replay")),
                ("replay", [*FUZZ, "replay", "--changes", "5"]),
                ("build, clang", make("all", *CLANG)),
                ("kernels, clang", ["build/clang/linnet", "doctor"]),
                *[board(name) for name in sorted(FIRST.values())],
            ],
        ),
    ],
}
LONG = ["env", "LINNET_LONG=1"]
STAGES["long"] = [
    *STAGES["test"],
    *[board(path.stem) for path in BOARDS if path.stem not in FIRST.values()],
    ("threads, sanitized", make("unit", *THREADS)),
    ("unit, checked", make("all", "unit", "replay", *CHECKED)),
    ("replay, checked", [*FUZZ, "replay", "--build", "build/checked", "--changes", "5"]),
    ("unit, valgrind", make("valgrind")),
    ("unit, clang", make("unit", *CLANG)),
    ("faults, every one", [*LONG, *PYTEST, *FAULTS]),
    ("faults of the duel, sanitized", [*LONG, *SANITIZED, *PYTEST, FAULTS[0], "-k", "duel and reported"]),
    ("suite, every way", [*LONG, *PYTEST, "tests/python/models/test_suite.py"]),
    ("models, every way", [*LONG, *PYTEST, "tests/python/models/test_models.py"]),
    ("suite, sanitized", [*SANITIZED, *PYTEST, "tests/python/models/test_suite.py"]),
    ("lexicon, whole", [*LONG, *PYTEST, "tests/python/speech/test_lexicon.py"]),
    ("zoo, whole", ["env", "LINNET_ZOO=full", *PYTEST, "tests/python/models/test_zoo.py"]),
    ("zoo, from torch", ["env", "LINNET_ZOO=full", *PYTEST, "tests/python/models/test_zoo_torch.py"]),
    ("zoo, from scikit-learn", [*LONG, *PYTEST, "tests/python/models/test_zoo_sklearn.py"]),
    ("examples, every one", [*LONG, *PYTEST, "tests/python/examples"]),
    *[(f"package, {arch}", ["sh", "tests/package.sh", arch]) for arch in ("amd64", "arm64", "armhf")],
    ("wheels", ["sh", "tests/wheel.sh"]),
    ("container", ["sh", "tests/container.sh"]),
    ("windows", ["sh", "tests/windows.sh"]),
    ("musl and macOS", ["sh", "tests/systems.sh"]),
    ("yocto", ["sh", "tests/yocto.sh"]),
    ("virtual machine", ["sh", "tests/vm/vm.sh"]),
    ("models, sanitized", [*SANITIZED, *PYTEST, "tests/python/models/test_models.py"]),
    ("functions, all floats", ["build/linnet", "doctor", "--floats", "1"]),
    ("fresh machine", ["sh", "tests/fresh.sh"]),
    ("fresh machine, alone", ["env", "LINNET_SHARED=/nowhere", "sh", "tests/fresh.sh"]),
]


def count(text, code):
    """(passed, failed, skipped): pytest's, cmocka's and our own closing lines; a stage without any counts as one."""
    passed = failed = skipped = 0
    for line in text.split("\n"):
        cmocka = re.match(r"\[  (PASSED|FAILED)  \] (\d+) test", line)
        if cmocka:
            passed += int(cmocka[2]) if cmocka[1] == "PASSED" else 0
            failed += int(cmocka[2]) if cmocka[1] == "FAILED" else 0
        elif re.match(r"(=+ )?\d+ (passed|failed|skipped|error)", line):
            found = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", line)}
            passed += found.get("passed", 0)
            failed += found.get("failed", 0) + found.get("error", 0)
            skipped += found.get("skipped", 0)
    if code != 0 and not failed:
        failed = 1
    if code == 0 and not passed + failed + skipped:
        passed = 1
    return passed, failed, skipped


def run(name, command):
    log = LOGS / (re.sub(r"\W+", "-", name) + ".txt")
    with open(log, "w") as out:
        code = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              env=ENVIRONMENT).returncode
    text = log.read_text(errors="replace")
    counts = count(text, code)
    if counts[1]:
        print("\n".join(f"    {line}" for line in text.rstrip().split("\n")[-TAIL:]))
    return counts


def run_all(stages):
    """The sum of what they count. Stages are (name, command), one after another, or a tuple of lists of them, side by side."""
    totals = [0, 0, 0]
    for stage in stages:
        if isinstance(stage[0], str):
            start = time.monotonic()
            found = run(*stage)
            print(f"{stage[0]:24} {time.monotonic() - start:7.1f} s   {found[0]} passed, {found[1]} failed, {found[2]} skipped",
                  flush=True)
            counts = [found]
        else:
            with concurrent.futures.ThreadPoolExecutor(len(stage)) as lanes:
                counts = list(lanes.map(run_all, stage))
        totals = [sum(column) for column in zip(totals, *counts)]
    return totals


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    passed, failed, skipped = run_all(STAGES[sys.argv[1]])
    print(f"{'all':24} {time.monotonic() - begin:7.1f} s")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


sys.exit(main())
