#!/usr/bin/env python3
"""fuzz.py: the fuzz targets' seeds, and what is done with them.

    fuzz.py run --seconds N TARGET...      libFuzzer on each target (make fuzz); the corpora stay in build/fuzz/
    fuzz.py replay --build DIR [--changes N]   the seeds, and N seeded changes of each, through DIR/replay_*
    fuzz.py coverage [--missing]           the same with the corpora, and the lines of the verifier it reaches (gcov)

Inputs that once did harm are in tests/fuzz/found/TARGET/ and tried every time. A crash leaves its input in
build/fuzz/crash-* (or build/replay-input)."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from harness import LINNET, linnet, suite  # noqa: E402

FUZZ = ROOT / "build" / "fuzz"
SEEDS = FUZZ / "seeds"
FOUND = ROOT / "tests" / "fuzz" / "found"
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
LARGEST_SEED = 40 << 10
MOST_RESTARTS = 20
# Seconds for an input. Of a conversion's the run for golden vectors may take 20, and half as many more to be given up.
TIMEOUT = {"onnx": 30}
# As malloc does: what is too large is no reason to end the program.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1")
COVERED = ["formats/verify.c", "formats/verify_records.c", "formats/verify_graph.c", "formats/packed.c", "runtime/load.c",
           "convert/scan.c", "formats/tensor_npy.c", "formats/tensor_pb.c", "formats/wire.c", "cli/args.c"]
VERIFIER_AT_LEAST = 0.95
VERBS = ["convert", "info", "run", "verify", "bench", "doctor"]


def put(target, name, content):
    if len(content) <= LARGEST_SEED:
        (SEEDS / target / name).write_bytes(content)


def put_model(path, name, *options):
    if path.stat().st_size > LARGEST_SEED:
        return
    put("onnx", name, path.read_bytes())
    packed = FUZZ / f"seed-{name}.lnt"
    if linnet("convert", path, "-o", packed, "--meta", "a=b", *options).returncode == 0:
        put("lnt", name, packed.read_bytes())
        packed.unlink()


def put_words(verb, words):
    put("args", f"{verb}-{abs(hash(tuple(words))):x}", bytes([VERBS.index(verb)]) + "".join(w + "\n" for w in words).encode())


def put_options(verb):
    """Each option of a verb with a plausible value, from its own help."""
    for name, value in re.findall(r"^  (--[a-z-]+)(?: (\S+))?", linnet(verb, "--help").stdout, re.MULTILINE):
        put_words(verb, [name] + ([value.split("|")[0] + "=1"] if value else []))
        put_words(verb, [name] + (["7"] if value else []))


def make_seeds(every):
    """A folder of small inputs for each target: the tests' models, every so-manieth case of the ONNX suite, .pb and .npz
    files, options."""
    shutil.rmtree(SEEDS, ignore_errors=True)
    for target in TARGETS:
        (SEEDS / target).mkdir(parents=True)
    cases = [case for group in ("node", "simple", "pytorch-operator") for case in sorted((suite() / group).glob("*/"))][::every]
    models = [(path, path.stem) for path in sorted((ROOT / "tests" / "data" / "models").glob("*.onnx"))]
    models += [(case / "model.onnx", case.name) for case in cases]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda model: put_model(*model), models))
    put_model(ROOT / "tests" / "data" / "models" / "sequence.onnx", "states", "--state", "next=state")
    put_model(ROOT / "tests" / "data" / "models" / "tiles.onnx", "winograd", "--winograd")
    put_model(ROOT / "tests" / "data" / "models" / "cache.onnx", "caches", "--state", "present_k=past_k", "--state",
              "present_v=past_v")
    for case in cases:
        for data in sorted((case / "test_data_set_0").glob("input_*.pb"))[:1]:
            put("tensors", case.name, data.read_bytes())
    for path in (ROOT / "tests" / "data").glob("*.npz"):
        put("tensors", path.name, path.read_bytes())
    for verb in VERBS:
        put_options(verb)
    put_words("info", ["--dim", "T=3", "--json", "--threads", "2"])
    linnet("convert", ROOT / "tests" / "data" / "models" / "shapes.onnx", "-o", FUZZ / "model.lnt")
    for target in TARGETS:
        for path in sorted((FOUND / target).glob("*")):
            shutil.copy(path, SEEDS / target / path.name)


def words_of_help():
    """libFuzzer's dictionary for the command line: all options there are."""
    path = FUZZ / "options.dict"
    names = sorted({n for verb in VERBS for n in re.findall(r"--[a-z-]+", linnet(verb, "--help").stdout)})
    path.write_text("".join(f'"{name}"\n' for name in names))
    return path


def last_figures(text):
    """The last status line of libFuzzer: executions, edges, features, corpus."""
    lines = re.findall(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)", text)
    return [int(x) for x in lines[-1]] if lines else [0, 0, 0, 0]


def run(target, seconds):
    """After a finding the fuzzer starts again from the corpus it has, until the time is over."""
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    log = FUZZ / f"{target}.log"
    crashes, longest = f"crash-{target}-", TIMEOUT.get(target, 5)
    words = [FUZZ / f"fuzz_{target}", corpus, SEEDS / target, f"-timeout={longest}", f"-report_slow_units={longest}",
             "-rss_limit_mb=2048", f"-max_len={2 * LARGEST_SEED}", f"-artifact_prefix={FUZZ}/{crashes}",
             f"-close_fd_mask={3 if target == 'args' else 1}"]
    if target == "args":
        words.append(f"-dict={words_of_help()}")
    begin, executions, edges, features, inputs, restarts = time.monotonic(), 0, 0, 0, 0, 0
    before = set(FUZZ.glob(crashes + "*"))
    with open(log, "w+", errors="replace") as out:
        while (left := int(begin + seconds - time.monotonic())) > 0 and restarts < MOST_RESTARTS:
            start = out.seek(0, os.SEEK_END)
            subprocess.run([*map(str, words), f"-max_total_time={left}"], cwd=ROOT, stdout=out, stderr=out, env=ENVIRONMENT)
            out.seek(start)
            figures = last_figures(out.read())
            executions, restarts = executions + figures[0], restarts + 1
            edges, features, inputs = (max(pair) for pair in zip((edges, features, inputs), figures[1:]))
    found = len(set(FUZZ.glob(crashes + "*")) - before)
    took = max(1, int(time.monotonic() - begin))
    print(f"{target:10} {took:8} {executions:12} {executions // took:8} {edges:8} {features:9} {inputs:7}   "
          f"{f'FOUND {found}: see {log}' if found else 'found nothing'}", flush=True)
    return not found


def replay(target, build, changes, folders):
    files = [path for folder in folders for path in sorted(folder.glob("*"))]
    done = subprocess.run([str(build / f"replay_{target}"), str(changes), *map(str, files)], cwd=ROOT,
                          capture_output=True, text=True, errors="replace", env=ENVIRONMENT)
    good = done.returncode == 0
    last = done.stderr.strip().splitlines()[-1] if good else f"ended with {done.returncode}: {done.stderr[-4000:]}"
    print(f"{target:10} {last}", flush=True)
    return good


def uncovered(build, source):
    """(lines that can run, numbers and texts of those that never did)."""
    folder = build / "obj" / pathlib.Path(source).parent
    text = subprocess.run(["gcov", "-t", "-o", folder, folder / pathlib.Path(source).stem], cwd=ROOT, capture_output=True,
                          text=True, check=True).stdout
    mine = next(part for part in text.split("0:Source:") if part.startswith(source + "\n"))
    lines = re.findall(r"^\s*(#####|=====|\d+\*?):\s*(\d+):(.*)$", mine, re.MULTILINE)
    return len(lines), [(number, line) for count, number, line in lines if count in ("#####", "=====")]


def coverage(targets, build, changes, missing):
    """Builds with --coverage, replays, and prints a table; True if enough of the verifier is reached."""
    subprocess.run(["make", "--no-print-directory", f"-j{os.cpu_count()}", f"BUILD={build.relative_to(ROOT)}", "OPT=-O0 -g",
                    "SAN=--coverage", "replay"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for path in build.rglob("*.gcda"):
        path.unlink()
    good = all([replay(target, build, changes, [SEEDS / target, FUZZ / "corpus" / target]) for target in targets])
    verifier, reached = 0, 0
    print(f"\n{'file':28} {'lines':>6} {'reached':>8}")
    for source in COVERED:
        lines, lost = uncovered(build, source)
        print(f"{source:28} {lines:6} {100 * (lines - len(lost)) / lines:7.1f}%")
        if source.startswith("formats/verify"):
            verifier, reached = verifier + lines, reached + lines - len(lost)
        for number, line in lost if missing else []:
            print(f"    {number}: {line.strip()}")
    print(f"{'the verifier':28} {verifier:6} {100 * reached / verifier:7.1f}%")
    return good and reached >= VERIFIER_AT_LEAST * verifier


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["run", "replay", "coverage"])
    options.add_argument("targets", nargs="*", default=TARGETS)
    options.add_argument("--seconds", type=int, default=60, help="for each target")
    options.add_argument("--jobs", type=int, default=1, help="targets at a time")
    options.add_argument("--every", type=int, help="take every N-th case of the ONNX suite (run: 1, else 12)")
    options.add_argument("--missing", action="store_true", help="print the lines that are not reached")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options.add_argument("--changes", type=int, default=20, help="changed copies of each seed")
    given = options.parse_intermixed_args()
    if not pathlib.Path(LINNET).exists():
        sys.exit("fuzz.py: build the program first: make")
    make_seeds(given.every or (1 if given.what == "run" else 12))
    if given.what == "run":
        print(f"{'target':10} {'seconds':>8} {'executions':>12} {'a second':>8} {'edges':>8} {'features':>9} {'inputs':>7}",
              flush=True)
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            good = list(pool.map(lambda target: run(target, given.seconds), given.targets))
    elif given.what == "coverage":
        good = [coverage(given.targets, FUZZ / "coverage", given.changes, given.missing)]
        print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    else:
        good = [replay(target, given.build, given.changes, [SEEDS / target]) for target in given.targets]
        print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


sys.exit(main())
