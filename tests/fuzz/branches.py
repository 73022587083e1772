"""branches.py: which ways out of each condition of the verifier and of what loads and binds a model were taken (clang's
counters), and which were not.

unreached.txt names those that nothing can reach, or only what is tested elsewhere: FILE | TEXT OF THE LINE | REASON."""
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXCUSES = ROOT / "tests" / "fuzz" / "unreached.txt"
VERIFIER = ["formats/verify.c", "formats/verify_records.c", "formats/verify_graph.c"]
RUNTIME = ["runtime/load.c", "runtime/bind.c", "runtime/control.c", "runtime/states.c"]
COVERED = VERIFIER + RUNTIME
RUNTIME_AT_LEAST = 0.95
EXPANSION = 1  # kind of a region: a macro was used there


def make(build, what, environment):
    subprocess.run(["make", "--no-print-directory", f"-j{os.cpu_count()}", f"BUILD={build.relative_to(ROOT)}", "CC=clang",
                    "COVERED=" + " ".join(COVERED), what], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=environment)


def counting(build, name):
    """An environment in which programs leave their counters, for report to find."""
    return dict(os.environ, LLVM_PROFILE_FILE=str(build / "counters" / f"{name}-%p.profraw"))


def build(folder):
    make(folder, "replay", dict(os.environ))
    shutil.rmtree(folder / "counters", ignore_errors=True)


def run_units(folder):
    make(folder, "unit", counting(folder, "unit"))


def exported(folder, pattern, program):
    raw = sorted(map(str, (folder / "counters").glob(pattern)))
    merged = folder / "counters" / "merged.profdata"
    subprocess.run(["llvm-profdata", "merge", *raw, "-o", merged], check=True)
    words = ["llvm-cov", "export", program, "-instr-profile", merged, *(ROOT / source for source in COVERED)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def ways_out(data):
    """{(source, line, number of the condition on it, True or False): times taken}; a condition in a macro belongs to the line
    that uses the macro."""
    result = {}
    for function in data["data"][0]["functions"]:
        files = [os.path.relpath(name, ROOT) for name in function["filenames"]]
        used_at = {region[6]: region for region in function["regions"] if region[7] == EXPANSION}
        numbers = {}
        for line, _, _, _, taken, not_taken, file, *_ in function["branches"]:
            while file in used_at:
                line, file = used_at[file][0], used_at[file][5]
            if files[file] not in COVERED:
                continue
            where = (files[file], line)
            number = numbers[where] = numbers.get(where, -1) + 1
            for way, count in ((True, taken), (False, not_taken)):
                key = (*where, number, way)
                result[key] = result.get(key, 0) + count
    return result


def is_assertion(text):
    """What builds without a sanitizer do not evaluate has no ways out in them."""
    return text.lstrip().startswith("LNT_ASSERT(")


def excuses():
    """{(file, text of the line): reason}"""
    rows = [line.split(" | ") for line in EXCUSES.read_text().splitlines() if line and not line.startswith("#")]
    return {(file.strip(), text.strip()): reason.strip() for file, text, reason in rows}


def report(folder, programs, missing):
    corpora = ways_out(exported(folder, "corpora-*.profraw", programs[0]))
    every = ways_out(exported(folder, "*.profraw", programs[0]))
    lines = {source: (ROOT / source).read_text().splitlines() for source in COVERED}
    reasons, good = excuses(), True
    print(f"\n{'branches of':28} {'ways out':>8} {'corpora':>8} {'with unit tests':>16} {'excused':>8}")
    for source in COVERED:
        ways = [key for key in every if key[0] == source and not is_assertion(lines[source][key[1] - 1])]
        lost = sorted(key for key in ways if not every[key])
        named = [key for key in lost if (source, lines[source][key[1] - 1].strip()) in reasons]
        left = [key for key in lost if key not in named]
        reached, possible = len(ways) - len(lost), len(ways) - len(named)
        print(f"{source:28} {len(ways):8} {100 * sum(corpora.get(key, 0) > 0 for key in ways) / len(ways):7.1f}% "
              f"{100 * reached / len(ways):15.1f}% {len(named):8}")
        for _, line, number, way in left if missing else []:
            print(f"    {line}: {lines[source][line - 1].strip()}   condition {number + 1} is never {str(way).lower()}")
        good &= not left if source in VERIFIER else reached >= RUNTIME_AT_LEAST * possible
    return good
