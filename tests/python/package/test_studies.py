"""docs/studies: the pages say what their CSV says, and the study's own measure of who is fastest is right."""

import csv
import re
import sys

import pytest

from harness import ROOT

sys.path.insert(0, str(ROOT / "tests/bench/studies"))
import study  # noqa: E402

NAMES = re.search(r"^STUDIES := (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
OTHER = ("runs", "mean_ms", "std_ms", "min_ms", "per_second", "found")


def row(**times):
    return study.Row({"batch": 2, "tokens": 8}, {name.replace("_", " "): given for name, given in times.items()}, {"ORT": "1.0000"})


def made(rows, engines=("ORT", "ORT INT8", "Linnet", "Linnet INT8")):
    return study.Study("one", list(engines), rows, "Sentences", lambda case: case["batch"], "", {"ORT": 1234567})


def lines_of(name):
    with (ROOT / f"docs/studies/{name}.csv").open() as file:
        return list(csv.DictReader(file))


def page(name):
    return (ROOT / f"docs/studies/{name}.md").read_text()


def test_leads_are_of_one_precision():
    found = study.leads(row(PyTorch=[8, 8], ORT=[3, 5], ORT_INT8=[1, 1], Linnet=[2, 2], Linnet_INT8=[2, 2]))
    assert found == {"float": 2.0, "INT8": 0.5}


def test_who_is_not_fastest_is_listed():
    slower = made([row(ORT=[1, 1], Linnet=[2, 2])])
    assert study.not_fastest(slower) == "* 2 8, float (0.50)"
    assert "**0.50**" in study.time_table(slower)
    assert study.not_fastest(made([row(ORT=[2, 2], Linnet=[1, 1])])) == "Nowhere."


def test_every_engine_runs_as_often_as_there_is_time_for(monkeypatch):
    monkeypatch.setattr(study, "BUDGET", 0.01)
    monkeypatch.setattr(study, "RUNS", 12)
    order = []
    times = study.measure({"quick": lambda: order.append("quick"), "slow": lambda: (order.append("slow"), study.time.sleep(0.02))})
    assert len(times["quick"]) == 12 and len(times["slow"]) == study.FEWEST
    assert "".join(name[0] for name in order[2 * study.WARM:]).count("qs") == study.TURNS


def test_throughput_is_of_what_a_run_gets_through():
    assert re.search(r"\| 2 \| 8 \| 1000 \| – \| 500 \| – \|", study.throughput_table(made([row(ORT=[2, 2], Linnet=[4, 4])])))


def test_only_what_is_between_the_marks_is_replaced():
    text = f"before\n{study.BEGIN}\n\nold\n\n{study.END}\nafter\n"
    assert study.page_of(text, "new") == f"before\n{study.BEGIN}\n\nnew\n\n{study.END}\nafter\n"
    with pytest.raises(ValueError, match="measured"):
        study.page_of("no marks", "new")


def test_chart_has_a_bar_for_each_engine_and_row():
    picture = study.chart(made([row(ORT=[1, 3], Linnet=[10, 10]), row(Linnet=[100, 100])]))
    assert picture.count('height="10" fill=') == 4  # the legend
    bars = [float(h) for h in re.findall(r'width="8" height="([\d.]+)"', picture)]
    assert len(bars) == 3 and bars[1] - bars[0] == pytest.approx(bars[2] - bars[1], rel=0.5) and bars == sorted(bars)


@pytest.mark.parametrize("name", NAMES)
def test_page_is_of_its_csv(name):
    lines, text = lines_of(name), page(name)
    for line in lines:
        assert float(line["mean_ms"]) >= float(line["min_ms"]) > 0 and int(line["runs"]) >= study.FEWEST
        assert f"{float(line['mean_ms']):.3g} ± " in text, line
    assert f"make study-{name}" in text and f"({name}.svg)" in text and (ROOT / f"docs/studies/{name}.svg").exists()


@pytest.mark.parametrize("name", NAMES)
def test_what_linnet_does_not_lead_has_its_reason(name):
    """In the CSV, not in what the page says of itself."""
    by_case = {}
    for line in lines_of(name):
        case = tuple(value for key, value in line.items() if key not in (*OTHER, "engine"))
        by_case.setdefault(case, {})[line["engine"]] = [float(line["mean_ms"])]
    slower = [(case, precision) for case, times in by_case.items()
              for precision, value in study.leads(study.Row({}, times, {})).items() if value < 0.995]
    listed = page(name).partition("## Where Linnet is not the fastest")[2]
    for case, precision in slower:
        assert f"* {' '.join(case)}, {precision} (" in listed
    assert not slower or "## Why" in listed
