"""The bench's list of models, and the report made of what was measured."""

import copy
import re
import sys
import xml.etree.ElementTree

import onnx

from harness import ROOT

sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tests/zoo")]
import bench  # noqa: E402
import make  # noqa: E402
import quantized  # noqa: E402
import report  # noqa: E402

SIDE = {"version": "1", "load_us": 1000, "library_us": 0, "p50_us": 5000, "start_us": 4000, "start_cold_us": 4000, "rss_kib": 4096,
        "base_kib": 1024, "dirty_kib": 100, "arena_bytes": 1 << 20, "library_file_bytes": 900000}


def duel(ratio, low, high, agree=True):
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high, "cpu_ratio": 3.0, "agree": agree, "rounds": 31, "processes": 3,
            "shape": "1x3", "multiply_adds": 250_000_000, "peak_gflops": 200.0,
            "outputs": [{"plain": {"max_rel": 1e-6}}], "linnet": dict(SIDE),
            "onnxruntime": SIDE | {"p50_us": 5000 * ratio, "version": "1.31.1"}}


def results(**of):
    found = {f"{r['key']}/{n}": duel(2.0, 1.9, 2.1) for r in bench.rows() for n in (1, 2)}
    return {"duels": found | of, "start": duel(3.0, 2.9, 3.1),
            "machine": {"cpu": "Some CPU", "cores": 2, "memory_gib": 8, "kernel": "6", "levels": ["scalar", "avx2"], "chosen": "avx2",
                        "linnet": "0.1.0", "commit": "abc", "date": "2026-01-01", "load": 0.5}}


def section(text, heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.S | re.M)[1]


def test_list_holds_every_model(shared):
    rows = bench.rows()
    assert len({r["key"] for r in rows}) == len(rows) and {r["class"] for r in rows} <= set(report.CLASSES)
    zoo = {(name, label) for name, (_, inputs) in make.ZOO.items() for label in inputs()}
    assert {(r["source"], r["set"]) for r in rows if r["where"] == "zoo" and not r["form"]} == zoo
    assert {(r["source"], r["set"]) for r in rows if r["form"]} <= {(r["source"], r["set"]) for r in rows if not r["form"]}
    assert {r["form"] for r in rows} == {"", *quantized.FORMS}
    listed = {}
    for r in rows:
        if r["where"] == "shared" and not r["form"]:
            listed.setdefault(r["source"], set()).add(extents(bench.folder(r) / f"test_data_set_{r['set']}"))
    recorded = {m.name: {extents(s) for s in m.glob("test_data_set_*")} for m in (shared / "models").iterdir() if m.is_dir()}
    assert listed == recorded  # every shape that was recorded


def extents(case):
    return tuple(tuple(onnx.load_tensor(f).dims) for f in sorted(case.glob("input_*.pb")))


def test_report_counts_means_and_losses():
    text = report.text(bench.rows(), results(**{"resnet50/224x224/1": duel(0.5, 0.4, 0.6)}))
    assert "faster, 1 slower, 0 undecided" in text
    assert "resnet50 224x224 | 1 | 2.5 | 5 | **0.50** [0.40, 0.60] | 50 %" in section(text, "Where onnxruntime is faster")
    mobile = next(line for line in section(text, "In short").split("\n") if line.startswith("| Mobile"))
    assert mobile.endswith("≥ 1.50 | 2.00 | 2.00 | 3.00 | 3.00 |")
    large = next(line for line in section(text, "In short").split("\n") if line.startswith("| Large"))
    count = sum(r["class"] == "large" for r in bench.rows())
    assert large.endswith(f"| {2 * 0.25 ** (1 / count):.2f} | 2.00 | 3.00 | 3.00 |")
    assert "What is missing" not in text


def test_report_names_what_is_missing_or_wrong():
    found = results(**{"resnet18/224x224/2": {"error": "no kernel"}, "unet/256x256/1": duel(2, 1.9, 2.1, agree=False)})
    del found["duels"]["mnist12/0/1"]
    missing = section(report.text(bench.rows(), found), "What is missing")
    assert "resnet18 224x224, 2 threads: no kernel" in missing and "mnist12 0, 1 thread: not measured" in missing
    assert "unet 256x256: outputs differ" in missing


def test_picture_is_a_drawing():
    found = copy.deepcopy(results(**{"resnet50/224x224/1": duel(0.5, 0.4, 0.6)}))
    root = xml.etree.ElementTree.fromstring(report.picture(bench.rows(), found))
    bars = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(bars) == 2 * len(bench.rows()) and sum(b.get("class") == "la" for b in bars) == 1


def peers_found():
    return {"machine": results()["machine"], "rounds": 11,
            "engines": {"linnet": {"name": "Linnet", "version": None}, "openvino": {"name": "OpenVINO", "version": "2026.4"},
                        "torch": {"name": "torch.compile", "version": "2.15"}},
            "rows": {"unet/256x256/1": {"linnet": {"us": 2000, "ratio": 1, "max_rel": 0}, "torch": {"error": "no such operator"},
                                        "openvino": {"us": 1500, "ratio": 0.75, "max_rel": 1e-6}}}}


def test_peers_are_bold_where_they_are_faster():
    text = section(report.peers_section(peers_found()), "Peers")
    assert "| unet 256x256 | 2 | **1.5 (0.75)** | – [1] |" in text and "1. no such operator" in text
    assert "* OpenVINO: unet 256x256 (1)" in text and "OpenVINO 2026.4" in text


def test_peers_stay_when_the_bench_is_rendered(tmp_path):
    """And the other way round: each command renews its own part of the page."""
    (tmp_path / "docs").mkdir()
    report.write(bench.rows(), results(), tmp_path)
    first = (tmp_path / "BENCHMARKS.md").read_text()
    report.write_peers(peers_found(), tmp_path)
    both = (tmp_path / "BENCHMARKS.md").read_text()
    assert both.startswith(first.rstrip("\n")) and section(both, "Peers")
    report.write_section(f"{report.ARM}\nfigures\n", report.ARM, tmp_path)
    report.write(bench.rows(), results(), tmp_path)
    report.write_peers(peers_found(), tmp_path)
    assert (tmp_path / "BENCHMARKS.md").read_text() == f"{both}\n{report.ARM}\nfigures\n"


def test_peers_models_are_the_benchs():
    import peers
    assert set(peers.MODELS) <= {r["key"] for r in bench.rows()}
