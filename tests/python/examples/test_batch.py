"""examples/batch: every file is in the results once, whoever is killed meanwhile."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest
from PIL import Image

from harness import LONG, ROOT, import_package
from web_server import children

import_package()
sys.path += [str(ROOT / "examples" / "batch"), str(pathlib.Path(__file__).parent)]
import parts  # noqa: E402
import small_pictures  # noqa: E402

PATIENCE = 300  # seconds: Spark takes minutes to start where much else runs
OTHERS = ROOT / ".deps" / "batch" / "bin" / "python"  # has Ray and PySpark
COLORS = {"class 0": (200, 0, 0), "class 1": (0, 200, 0), "class 2": (0, 0, 200)}
N, SIZE = 24, 4
HELD = 13  # the number of a picture that is a FIFO: who reads it waits until the test has the picture written


@pytest.fixture
def given(tmp_path):
    """(model, folder of pictures): three pictures under many names."""
    (tmp_path / "many").mkdir()
    for k, color in enumerate(COLORS.values()):
        Image.new("RGB", (64, 48), color).save(tmp_path / f"{k}.png")
    for i in range(N):
        if i != HELD:
            os.link(tmp_path / f"{i % 3}.png", tmp_path / "many" / f"{i:03}.png")
    os.mkfifo(tmp_path / "many" / f"{HELD:03}.png")
    return small_pictures.colors(tmp_path / "colors.lnt"), tmp_path / "many"


def hand_out(given):
    """Lets the reader of the FIFO go on; waits for one."""
    end, fifo = time.monotonic() + PATIENCE, given[1] / f"{HELD:03}.png"
    while True:
        try:
            there = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            assert time.monotonic() < end, "nobody reads"
            time.sleep(0.01)
    os.write(there, (given[1].parent / f"{HELD % 3}.png").read_bytes())
    os.close(there)


def command(given, out, driver="with_processes.py", python=sys.executable, more=()):
    model, files = given
    return [python, ROOT / "examples" / "batch" / driver, model, out, files, files / f"{HELD:03}.png", "--size", str(SIZE),
            "--workers", "2", "--values", "raw", *more]


def start(words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    text = process.communicate(timeout=PATIENCE)[0]
    return process.returncode, text


def done_parts(out):
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (out / "parts").glob("*.jsonl")}


def wait_for_parts(out, n, process):
    end = time.monotonic() + PATIENCE
    while len(done_parts(out)) < n:
        assert process.poll() is None and time.monotonic() < end, process.communicate(timeout=5)[0]
        time.sleep(0.005)


def words_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def workers_of(pid, title):
    found = children(pid)
    return [w for w in found if title in words_of(w)] + [w for child in found for w in workers_of(child, title)]


def check_results(given, out):
    """Each file once, with what is in it; nothing else, nothing half-written."""
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [line["file"] for line in lines] == sorted(str(f) for f in given[1].glob("*.png"))
    for line in lines:
        assert line["classes"][0]["label"] == f"class {int(pathlib.Path(line['file']).stem) % 3}"
    assert not list(out.rglob("*.tmp"))


def kill_all(pids):
    """And waits until they are gone: a dying one may hold the FIFO still."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            while pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                time.sleep(0.01)


def test_a_killed_worker_is_replaced(given, tmp_path):
    run = start(command(given, tmp_path / "out"))
    wait_for_parts(tmp_path / "out", N // SIZE - 1, run)
    kill_all(workers_of(run.pid, "spawn_main"))
    hand_out(given)
    code, text = finish(run)
    assert code == 0 and f"a worker ended in part {HELD // SIZE}" in text and f"{N} files in" in text, text
    check_results(given, tmp_path / "out")


def test_a_killed_run_goes_on_where_it_was(given, tmp_path):
    out = tmp_path / "out"
    run = start(command(given, out))
    wait_for_parts(out, N // SIZE - 1, run)
    workers = workers_of(run.pid, "spawn_main")
    run.kill()
    run.wait(PATIENCE)
    run.stdout.close()
    end = time.monotonic() + PATIENCE
    while sum("spawn_main" in words_of(w) for w in workers) > 1:
        assert time.monotonic() < end, "a worker that has nothing to do outlives its driver"
        time.sleep(0.02)
    kill_all(workers)
    before = done_parts(out)
    assert len(before) == N // SIZE - 1 and not (out / "results.jsonl").exists()
    (out / "parts" / f"{HELD // SIZE:06}.jsonl.0.tmp").write_text("half a li")
    run = start(command(given, out))
    hand_out(given)
    code, text = finish(run)
    assert code == 0 and f"{SIZE} files in" in text and f"{N} files in" in text, text
    check_results(given, out)
    assert {name: done_parts(out)[name] for name in before} == before, "parts that were done are done again"


def plan(job, model, files, size=SIZE):
    job.plan(str(model), files, size)
    return [names for _, names in job.todo()]


def test_what_is_planned(given, tmp_path):
    model, folder = given
    files = sorted(folder.glob("*.png"))[:10]
    parts.model_of.cache_clear()
    with parts.Job(tmp_path / "out") as job:
        first = plan(job, model, files[:6])
        assert [len(names) for names in first] == [4, 2]
        assert parts.rate_of_one(types.SimpleNamespace(out=job.out, values="raw"), job.todo()) > 0
        for number, names in job.todo():
            parts.do_part(str(tmp_path / "out"), "raw", number, names)
        with pytest.raises(ValueError, match="another run is writing"), parts.Job(tmp_path / "out"):
            pass
    with parts.Job(tmp_path / "out") as job:
        assert plan(job, model, files) == [[str(f) for f in files[6:]]], "new files become new parts, and only they"
        with pytest.raises(ValueError, match="begun with another model"):
            job.plan(str(small_pictures.areas(tmp_path / "other.lnt")), files, SIZE)


def test_files_that_cannot_be_looked_at(given, tmp_path):
    (tmp_path / "none.png").write_text("no picture")
    good = given[1] / "000.png"
    parts.model_of.cache_clear()
    with parts.Job(tmp_path / "out") as job:
        job.plan(str(given[0]), [good, tmp_path / "none.png", tmp_path / "gone.png"], SIZE)
        ((number, names),) = job.todo()
        parts.do_part(str(tmp_path / "out"), "raw", number, names)
        assert job.finish() == (3, 2)
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [(pathlib.Path(line["file"]).name, "classes" in line) for line in lines] == [
        ("gone.png", False), ("000.png", True), ("none.png", False)]
    assert all("no picture" in line["error"] or "No such file" in line["error"] for line in lines if "error" in line)


def test_a_part_that_ends_every_worker_is_given_up(tmp_path):
    code, text = finish(start([sys.executable, pathlib.Path(__file__).with_name("poisoned.py"), tmp_path]))
    assert code == 0 and "['part 1 ended 3 workers: poison']" in text, text
    assert {p.name for p in tmp_path.iterdir()} == {"part0", "part2", "part3", "part4"}


@pytest.mark.skipif(not (LONG and OTHERS.is_file()), reason="LINNET_LONG=1 and make deps-long")
@pytest.mark.parametrize("driver, title, more", [("with_ray.py", "ray::do_part", ()), ("with_spark.py", "pyspark.daemon", ()),
                                                 ("with_spark.py", "pyspark.daemon", ["--pandas"])])
def test_clusters(given, tmp_path, driver, title, more):
    run = start(command(given, tmp_path / "out", driver, OTHERS, more))
    try:
        wait_for_parts(tmp_path / "out", N // SIZE - 1, run)
        kill_all(workers_of(run.pid, title))
        hand_out(given)
        code, text = finish(run)
    finally:
        kill_all([*workers_of(run.pid, ""), run.pid])
    assert code == 0 and f"{N} files in" in text, text
    check_results(given, tmp_path / "out")
