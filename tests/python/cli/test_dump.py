"""formats/dump_lnt.py, the second reader, and `linnet info` agree on what a file holds."""

import json
import subprocess
import sys

import pytest

from harness import ROOT, linnet

MODELS = sorted((ROOT / "tests" / "data" / "models").glob("*.onnx"))
OF_THE_MACHINE = {"restored_bytes", "arena_bytes", "alive_bytes", "arena_unknown_because", "threads", "level", "steps",
                  "evaluated", "unbounded"}


def dump(path, *options):
    return subprocess.run([sys.executable, ROOT / "formats" / "dump_lnt.py", path, *options], capture_output=True,
                          text=True)


@pytest.fixture(params=MODELS, ids=lambda path: path.stem)
def lnt(request, tmp_path):
    path = tmp_path / "m.lnt"
    done = linnet("convert", request.param, "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def test_both_readers_agree(lnt):
    info = json.loads(linnet("info", lnt, "--json").stdout)
    dumped = dump(lnt)
    assert dumped.returncode == 0, dumped.stderr
    second = json.loads(dumped.stdout)
    assert set(info) - OF_THE_MACHINE == set(second)
    assert {key: info[key] for key in second} == second


def test_the_dump_lists_every_record(lnt):
    info = json.loads(linnet("info", lnt, "--json").stdout)
    everything = json.loads(dump(lnt, "--all").stdout)
    for key, counted in (("value_list", "values"), ("constant_list", "constants"), ("node_list", "nodes"),
                         ("subgraph_list", "subgraphs")):
        assert len(everything[key]) == info[counted]


def test_the_dump_refuses_damage(lnt):
    data = bytearray(lnt.read_bytes())
    damaged = lnt.with_name("damaged.lnt")
    for at in range(0, 64, 7):
        data[at] ^= 0x10
        damaged.write_bytes(data)
        data[at] ^= 0x10
        assert dump(damaged).returncode == 1, f"byte {at}"
    damaged.write_bytes(data[:-64])
    assert dump(damaged).returncode == 1
