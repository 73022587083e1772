#!/usr/bin/env python3
"""fuzz.py: the fuzz targets' seeds, and what is done with them.

    fuzz.py run --seconds N TARGET...      libFuzzer on each target (make fuzz); what it finds stays in build/fuzz/corpus/
    fuzz.py keep TARGET...                 of that, what reaches something new goes to tests/fuzz/corpus/, as far as it fits
    fuzz.py replay --build DIR [--changes N]   all there is, and N seeded changes of each, through DIR/replay_*
    fuzz.py coverage [--missing]           the branches that the corpora reach, and the unit tests besides (clang)

Inputs that once did harm are below tests/fuzz/found/TARGET/, the corpora that grow in tests/fuzz/corpus/, as archives; both
are tried every time. A crash leaves its input in build/fuzz/crash-* (or build/replay-input)."""
import argparse
import concurrent.futures
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import wave

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python" / part) for part in (".", "builders", "speech")]
import bases  # noqa: E402
import branches  # noqa: E402
import english  # noqa: E402
import test_say_words  # noqa: E402
import voice  # noqa: E402
from harness import LINNET, linnet, suite, unpack  # noqa: E402

FUZZ = ROOT / "build" / "fuzz"
SEEDS = FUZZ / "seeds"
FOUND = ROOT / "tests" / "fuzz" / "found"
KEPT = ROOT / "tests" / "fuzz" / "corpus"  # TARGET-KK.tar.xz
ARCHIVE = 16000  # bytes, at most
DATA = ROOT / "tests" / "data"
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
LARGEST_SEED = 40 << 10
# Models of the tests' own may be larger than what an instruction's offset or a page of cache holds.
LARGEST_BASE = 160 << 10
LARGEST_KEPT = 16 << 10
# Bytes of the corpora in the tree, a share for each target.
KEPT_BYTES = {"lnt": 560 << 10, "onnx": 220 << 10, "files": 110 << 10, "args": 60 << 10, "speech": 40 << 10}
MOST_RESTARTS = 20
# Seconds for an input by the clock: what waits for ever. How much of the processor it may take each target says itself.
TIMEOUT = 300
# As malloc does: what is too large is no reason to end the program. What was freed is watched for a while, not for ever.
ENVIRONMENT = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1",
                   ASAN_OPTIONS="allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=8")
VERBS = ["convert", "info", "run", "verify", "bench", "say", "doctor"]
STATES = {"state_type": ["--state", "next=state"], "sequence": ["--state", "next=state"],
          "cache": ["--state", "present_k=past_k", "--state", "present_v=past_v"], **bases.OPTIONS}
WAYS = {"plain": [], "none": ["--opt", "none"], "winograd": ["--winograd"], "dynamic": ["--int8", "dynamic", "--min-snr", "0"],
        "static": ["--int8", "static", "--min-snr", "0", "--calibrate"],
        "half": ["--precision", "float16", "--min-snr", "0"]}

made = set()  # seeds


def put(target, name, content, largest=LARGEST_SEED):
    """Each once: what a model is converted with often changes nothing."""
    if len(content) <= largest and (target, content) not in made:
        made.add((target, content))
        (SEEDS / target / name).write_bytes(content)


def put_model(path, name, options=(), largest=LARGEST_SEED):
    packed = FUZZ / f"seed-{name}.lnt"
    if path.stat().st_size > largest:
        return
    if linnet("convert", path, "-o", packed, "--meta", "a=b", *options).returncode == 0:
        put("lnt", name, packed.read_bytes(), largest)
        packed.unlink()


def recorded(path):
    """An .npz of inputs of plausible extents to calibrate with; None where they are no tensors of numbers."""
    inputs, at = {}, FUZZ / f"calibrate-{path.stem}.npz"
    for value in onnx.load(path).graph.input:
        kind = value.type.tensor_type
        if kind.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
            return None
        dims = [d.dim_value or 8 for d in kind.shape.dim]
        inputs[value.name] = np.ones(dims, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    np.savez(at, **inputs)
    return at


def put_base(path):
    """One of the tests' models, converted in every way; plainly with its states and without."""
    put("onnx", path.stem, path.read_bytes())
    put("onnx", f"{path.stem}-text", str(onnx.load(path)).encode())
    plain = linnet("convert", path, "-o", FUZZ / f"plain-{path.stem}.lnt").returncode == 0
    for way, options in WAYS.items():
        calibrated = [recorded(path)] if way == "static" else []
        if calibrated != [None]:
            put_model(path, f"{path.stem}-{way}", [*options, *calibrated, *STATES.get(path.stem, [])], LARGEST_BASE)
    if plain and path.stem in STATES:
        put_model(path, f"{path.stem}-stateless", [], LARGEST_BASE)


def put_case(case):
    model = case / "model.onnx"
    if model.stat().st_size <= LARGEST_SEED:
        put("onnx", case.name, model.read_bytes())
    put_model(model, case.name)
    for data in sorted((case / "test_data_set_0").glob("input_*.pb"))[:1]:
        put("files", case.name, data.read_bytes())


def put_words(verb, words):
    name = re.sub(r"\W+", "-", "-".join([verb, *words]))[:60]
    put("args", name, bytes([VERBS.index(verb)]) + "".join(w + "\n" for w in words).encode())


def put_options(verb):
    """Each option of a verb with plausible values, from its own help."""
    pattern = r"^  (?:-\w, )?(--[a-z0-9_-]+)(?:, --[a-z0-9_-]+)*(?: (\S+))?"
    for name, value in re.findall(pattern, linnet(verb, "--help").stdout, re.MULTILINE):
        put_words(verb, [name] + ([value.split("|")[0] + "=1"] if value else []))
        put_words(verb, [name] + (["7"] if value else []))


def put_dims():
    """Extents that fit no model, or hardly."""
    for extent in ("0", "1", "3", "-1", "4294967296", "9223372036854775807", "9223372036854775808", "1e3", "", "x"):
        put_words("info", ["--dim", f"N={extent}", "--json"])
        put_words("info", ["--dim", f"x:0={extent}", "--threads", "2"])
    put_words("info", ["--dim", "N=2", "--dim", "N=3", "--dim", "Z=0"])


def put_files():
    for path in DATA.glob("*.npz"):
        put("files", path.name, path.read_bytes())
    for path in (ROOT / "boards" / "costs").glob("*"):
        put("files", path.name, path.read_bytes())
    for dtype in (np.float32, np.int64, np.bool_, np.float16):
        np.save(SEEDS / "files" / f"{np.dtype(dtype).name}.npy", np.ones((2, 3), dtype))
    np.save(SEEDS / "files" / "fortran.npy", np.asfortranarray(np.ones((3, 2), np.float32)))
    for width in (1, 2, 3, 4):
        with wave.open(str(SEEDS / "files" / f"{width}.wav"), "wb") as sound:
            sound.setnchannels(1 + width % 2)
            sound.setsampwidth(width)
            sound.setframerate(16000)
            sound.writeframes(bytes(range(48)) * width)
    data = struct.pack("<4f", 0, 0.5, -1, 1)
    for code in (3, 0xfffe):
        head = struct.pack("<HHIIHH", code, 1, 8000, 32000, 4, 32) + (struct.pack("<HHIH14x", 22, 32, 0, 3) if code != 3 else b"")
        chunks = b"fmt " + struct.pack("<I", len(head)) + head + b"LIST\x03\0\0\0abc\0data" + struct.pack("<I", len(data)) + data
        put("files", f"float-{code}.wav", b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    model = (SEEDS / "lnt" / "text-plain").read_bytes()
    put("files", "text.lnt", model)
    put("files", "states.lnt", (SEEDS / "lnt" / "states-plain").read_bytes())
    for name, offset, length in (("bundle", 0, len(model)), ("bundle-short", 0, len(model) + 1), ("bundle-far", 65536, 1),
                                 ("bundle-none", 0, 0), ("bundle-wraps", 2 ** 64 - 65536, len(model))):
        put("files", name, model + struct.pack("<QQ8s", offset, length, b"\x89LNTBNDL"))


def put_speech():
    """A text of each kind, a voice's JSON, a lexicon: the first byte says which it is."""
    for k, case in enumerate(test_say_words.CASES):
        put("speech", f"words-{k}", b"t" + case.split(" | ")[0].encode())
    for k, text in enumerate(english.HARD):
        put("speech", f"english-{k}", b"t" + text.encode())
    for name, config in (("plain", voice.piper_config()), ("three", voice.piper_config(("anna", "bert"), phoneme_type="text"))):
        put("speech", f"{name}.json", b"{" + json.dumps(config).encode())
    put("speech", "words.lex", b"L" + (DATA / "words.lex").read_bytes())
    for k, text in enumerate(("say [[ HH AH0 L OW1 ]] now", "the [[K|.]] a", "[[ , AA1 ]].", "we read; the live record is in use, A.B.s")):
        put("speech", f"phonemes-{k}", b"t" + text.encode())
    put("speech", "prompts.txt", b"|# all\na|A {a:time}, {{b}} {a}.\nb | {a:unit kWh} {a:number}\n")
    with tempfile.TemporaryDirectory() as folder:
        put_packs(pathlib.Path(folder))
    put("speech", "escapes.json", b'{["\\u00e9\\ud83d\\ude00\\n", -1.5e-3, true, null, {"a": [[]]}]')


def put_packs(folder):
    """Packs of a small voice that reads characters, with each kind of sound."""
    onnx.save(voice.build_piper(), folder / "v.onnx")
    (folder / "v.onnx.json").write_text(json.dumps(voice.piper_config(phoneme_type="text")))
    (folder / "p.txt").write_text("a|a\nslot|a {x:number}\nb|b, a\n")
    for sound in ("none", "pcm", "adpcm"):
        done = linnet("say", "-m", folder / "v.onnx", "--pack", folder / "p.txt", "-o", folder / "p.lpk", "--sound", sound,
                      "--speed", 20)
        assert done.returncode == 0, done.stderr
        put("speech", f"{sound}.lpk", b"P" + (folder / "p.lpk").read_bytes())


def make_seeds(every):
    """A folder of small inputs for each target: the tests' models converted in several ways, every so-manieth case of the
    ONNX suite, tensors, sounds, tables, options."""
    shutil.rmtree(SEEDS, ignore_errors=True)
    for folder in (*TARGETS, "bases"):
        (SEEDS / folder).mkdir(parents=True)
    for make in bases.BASES:
        onnx.save(make(), SEEDS / "bases" / f"{make.__name__}.onnx")
    cases = [case for group in ("node", "simple", "pytorch-operator") for case in sorted((suite() / group).glob("*/"))][::every]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(put_base, [*sorted((DATA / "models").glob("*.onnx")), *sorted((SEEDS / "bases").glob("*.onnx"))]))
        list(pool.map(put_case, cases))
    put_files()
    put_speech()
    for verb in VERBS:
        put_options(verb)
    put_words("info", ["--dim", "T=3", "--json", "--threads", "2"])
    put_dims()
    linnet("convert", DATA / "models" / "shapes.onnx", "-o", FUZZ / "model.lnt")


def unpacked(target):
    """The folder of the inputs that were kept."""
    folder = FUZZ / "kept" / target
    archives = sorted(KEPT.glob(f"{target}-*.tar.xz"))
    if not folder.is_dir() or any(a.stat().st_mtime > folder.stat().st_mtime for a in archives):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for archive in archives:
            unpack(archive, folder)
        os.utime(folder)
    return folder


def pack(target, files):
    """The inputs in archives of at most ARCHIVE bytes, in place of those there were."""
    for old in KEPT.glob(f"{target}-*.tar.xz"):
        old.unlink()
    KEPT.mkdir(exist_ok=True)
    pending, number = sorted(files, key=lambda path: (path.stat().st_size, path.name)), 0
    while pending:
        n = len(pending)
        while len(data := archive_of(pending[:n])) > ARCHIVE and n > 1:
            n = max(1, min(n - 1, n * ARCHIVE // len(data)))
        (KEPT / f"{target}-{number:02}.tar.xz").write_bytes(data)
        pending, number = pending[n:], number + 1


def archive_of(files):
    """The bytes of an archive, the same for the same files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz", preset=9) as t:
        for path in files:
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            with open(path, "rb") as f:
                t.addfile(entry, f)
    return data.getvalue()


def folders(target, *others):
    """Where a target's inputs are; those that are not there yet are made."""
    result = [SEEDS / target, FOUND / target, unpacked(target), *others]
    for folder in result:
        folder.mkdir(parents=True, exist_ok=True)
    return result


def below(folder):
    """Its files; what was found may be in folders by subject."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def words_of_help():
    """libFuzzer's dictionary for the command line: all options there are."""
    path = FUZZ / "options.dict"
    names = sorted({n for verb in VERBS for n in re.findall(r"--[a-z0-9_-]+", linnet(verb, "--help").stdout)})
    path.write_text("".join(f'"{name}"\n' for name in names))
    return path


def last_figures(lines):
    """The last status line of libFuzzer: executions, edges, features, corpus. A log may be larger than memory."""
    status = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)")
    last = None
    for line in lines:
        last = status.search(line) or last
    return [int(x) for x in last.groups()] if last else [0, 0, 0, 0]


def longest_input(target):
    return max(path.stat().st_size for folder in folders(target) for path in below(folder)) + LARGEST_SEED


def run(target, seconds):
    """After a finding the fuzzer starts again from the corpus it has, until the time is over."""
    corpus = FUZZ / "corpus" / target
    others = folders(target, corpus)[:-1]
    log = FUZZ / f"{target}.log"
    crashes = f"crash-{target}-"
    words = [FUZZ / f"fuzz_{target}", corpus, *others, f"-timeout={TIMEOUT}", f"-report_slow_units={TIMEOUT}",
             "-rss_limit_mb=2048", f"-max_len={longest_input(target)}", f"-artifact_prefix={FUZZ}/{crashes}",
             f"-close_fd_mask={3 if target in ('args', 'files') else 1}", "-detect_leaks=1"]
    if target == "args":
        words.append(f"-dict={words_of_help()}")
    begin, executions, edges, features, inputs, restarts = time.monotonic(), 0, 0, 0, 0, 0
    before = set(FUZZ.glob(crashes + "*"))
    with open(log, "w+", errors="replace") as out:
        while (left := int(begin + seconds - time.monotonic())) > 0 and restarts < MOST_RESTARTS:
            start = out.seek(0, os.SEEK_END)
            subprocess.run([*map(str, words), f"-max_total_time={left}"], cwd=ROOT, stdout=out, stderr=out, env=ENVIRONMENT)
            out.seek(start)
            figures = last_figures(out)
            executions, restarts = executions + figures[0], restarts + 1
            if not figures[0]:
                break  # one of the seeds: nothing else would be tried
            edges, features, inputs = (max(pair) for pair in zip((edges, features, inputs), figures[1:]))
    found = len(set(FUZZ.glob(crashes + "*")) - before)
    took = max(1, int(time.monotonic() - begin))
    print(f"{target:10} {took:8} {executions:12} {executions // took:8} {edges:8} {features:9} {inputs:7}   "
          f"{f'FOUND {found}: see {log}' if found else 'found nothing'}", flush=True)
    return not found


def keep(target):
    """libFuzzer's merge takes the smallest inputs that reach something that the seeds do not."""
    with tempfile.TemporaryDirectory(dir=FUZZ) as name:
        reached = pathlib.Path(name)
        for folder in folders(target)[:2]:
            for path in below(folder):
                shutil.copy(path, reached / path.name)
        before = set(reached.iterdir())
        words = ["-merge=1", "-close_fd_mask=3", f"-artifact_prefix={FUZZ}/merge-", f"-max_len={LARGEST_KEPT}"]
        subprocess.run([FUZZ / f"fuzz_{target}", *words, reached, unpacked(target), FUZZ / "corpus" / target], cwd=ROOT,
                       env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        new = sorted((path for path in set(reached.iterdir()) - before), key=lambda path: path.stat().st_size)
        total, kept = 0, []
        for path in new:
            total += path.stat().st_size
            if total > KEPT_BYTES[target]:
                break
            kept.append(path)
        pack(target, kept)
    print(f"{target:10} {len(kept)} of {len(new)} inputs kept", flush=True)
    return True


def replay(target, build, changes, extra=(), environment=ENVIRONMENT):
    files = [path for folder in folders(target, *extra) for path in below(folder)]
    done = subprocess.run([str(build / f"replay_{target}"), str(changes), *map(str, files)], cwd=ROOT,
                          capture_output=True, text=True, errors="replace", env=environment)
    good = done.returncode == 0
    last = done.stderr.strip().splitlines()[-1] if good else f"ended with {done.returncode}: {done.stderr[-4000:]}"
    print(f"{target:10} {last}", flush=True)
    return good


def coverage(targets, changes, missing):
    """Builds with counters, replays, runs the unit tests, and prints the table; True if enough is reached."""
    build = FUZZ / "coverage"
    branches.build(build)
    good = all([replay(target, build, changes, [FUZZ / "corpus" / target], branches.counting(build, "corpora"))
                for target in targets])
    branches.run_units(build)
    return branches.report(build, [build / f"replay_{target}" for target in targets], missing) and good


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["run", "keep", "replay", "coverage"])
    options.add_argument("targets", nargs="*", default=TARGETS)
    options.add_argument("--seconds", type=int, default=60, help="for each target")
    options.add_argument("--jobs", type=int, default=1, help="targets at a time")
    options.add_argument("--every", type=int, help="take every N-th case of the ONNX suite (run, keep: 1, else 12)")
    options.add_argument("--missing", action="store_true", help="print the branches that are not reached")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options.add_argument("--changes", type=int, default=20, help="changed copies of each seed")
    given = options.parse_intermixed_args()
    if not pathlib.Path(LINNET).exists():
        sys.exit("fuzz.py: build the program first: make")
    make_seeds(given.every or (1 if given.what in ("run", "keep") else 12))
    if given.what == "run":
        print(f"{'target':10} {'seconds':>8} {'executions':>12} {'a second':>8} {'edges':>8} {'features':>9} {'inputs':>7}",
              flush=True)
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            good = list(pool.map(lambda target: run(target, given.seconds), given.targets))
    elif given.what == "keep":
        good = [keep(target) for target in given.targets]
    elif given.what == "coverage":
        good = [coverage(given.targets, given.changes, given.missing)]
        print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    else:
        good = [replay(target, given.build, given.changes) for target in given.targets]
        print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


sys.exit(main())
