#!/usr/bin/env python3
"""fuzz.py: the fuzz targets' seeds, and what is done with them.

    fuzz.py run --seconds N TARGET...      libFuzzer on each target (make fuzz); the corpora stay in build/fuzz/
    fuzz.py replay --build DIR [--changes N]   the seeds, and N seeded changes of each, through DIR/replay_*

Inputs that once did harm are in tests/fuzz/found/TARGET/ and tried every time. A crash leaves its input in
build/fuzz/crash-* (or build/replay-input)."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from harness import LINNET, linnet, suite  # noqa: E402

FUZZ = ROOT / "build" / "fuzz"
SEEDS = FUZZ / "seeds"
FOUND = ROOT / "tests" / "fuzz" / "found"
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
LARGEST_SEED = 6000
# As malloc does: what is too large is no reason to end the program.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1")
VERBS = ["convert", "info", "run", "verify", "bench", "doctor"]


def put(target, name, content):
    if len(content) <= LARGEST_SEED:
        (SEEDS / target / name).write_bytes(content)


def put_model(path, name):
    put("onnx", name, path.read_bytes())
    packed = FUZZ / "seed.lnt"
    if linnet("convert", path, "-o", packed).returncode == 0:
        put("lnt", name, packed.read_bytes())


def put_words(verb, words):
    put("args", f"{verb}-{abs(hash(tuple(words))):x}", bytes([VERBS.index(verb)]) + "".join(w + "\n" for w in words).encode())


def put_options(verb):
    """Each option of a verb with a plausible value, from its own help."""
    for name, value in re.findall(r"^  (--[a-z-]+)(?: (\S+))?", linnet(verb, "--help").stdout, re.MULTILINE):
        put_words(verb, [name] + ([value.split("|")[0] + "=1"] if value else []))
        put_words(verb, [name] + (["7"] if value else []))


def make_seeds():
    """A folder of small inputs for each target: the tests' models, every 12th case of the ONNX suite, .pb and .npz files,
    options."""
    shutil.rmtree(SEEDS, ignore_errors=True)
    for target in TARGETS:
        (SEEDS / target).mkdir(parents=True)
    models = sorted((ROOT / "tests" / "data" / "models").glob("*.onnx"))
    cases = sorted((suite() / "node").iterdir())[::12]
    for path in models:
        put_model(path, path.stem)
    for case in cases:
        put_model(case / "model.onnx", case.name)
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
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    words = [FUZZ / f"fuzz_{target}", corpus, SEEDS / target, f"-max_total_time={seconds}", "-timeout=20",
             "-rss_limit_mb=3000", f"-max_len={LARGEST_SEED + 2000}", f"-artifact_prefix={FUZZ}/crash-{target}-",
             "-close_fd_mask=3"]
    if target == "args":
        words.append(f"-dict={words_of_help()}")
    log = FUZZ / f"{target}.log"
    with open(log, "w") as out:
        code = subprocess.run([str(w) for w in words], cwd=ROOT, stdout=out, stderr=out, env=ENVIRONMENT).returncode
    executions, edges, features, inputs = last_figures(log.read_text(errors="replace"))
    print(f"{target:10} {executions:12} {executions // max(seconds, 1):8} {edges:8} {features:9} {inputs:7}   "
          f"{'found nothing' if code == 0 else f'FOUND: see {log}'}", flush=True)
    return code == 0


def replay(target, build, changes):
    files = sorted((SEEDS / target).iterdir())
    done = subprocess.run([str(build / f"replay_{target}"), str(changes), *map(str, files)], cwd=ROOT,
                          capture_output=True, text=True, errors="replace", env=ENVIRONMENT)
    good = done.returncode == 0
    print(f"{target:10} {done.stderr.strip().splitlines()[-1]}" if good else done.stderr[-4000:], flush=True)
    return good


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["run", "replay"])
    options.add_argument("targets", nargs="*", default=TARGETS)
    options.add_argument("--seconds", type=int, default=60, help="for each target")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options.add_argument("--changes", type=int, default=20, help="changed copies of each seed")
    given = options.parse_intermixed_args()
    if not pathlib.Path(LINNET).exists():
        sys.exit("fuzz.py: build the program first: make")
    make_seeds()
    if given.what == "run":
        print(f"{'target':10} {'executions':>12} {'a second':>8} {'edges':>8} {'features':>9} {'inputs':>7}")
        good = [run(target, given.seconds) for target in given.targets]
    else:
        good = [replay(target, given.build, given.changes) for target in given.targets]
        print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


sys.exit(main())
