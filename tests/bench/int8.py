#!/usr/bin/env python3
"""int8.py [--calibrated] [NAME ...]: what --int8 makes of the float models of models.tsv (or those named), as a table in
Markdown: size of the file, share of the multiplications in INT8, lowest SNR of an output, speed on one thread, all against
the float file. --calibrated: --int8 static, with ranges from the models' recorded cases.

SNR is measured on seeded noise where nothing was recorded. No layer is kept in float for it (--min-snr 0).
"""

import argparse
import json

from bench import OUT, folder, linnet, rows

ROUNDS, RUNS = 5, 15


def fastest(lnt, case):
    return json.loads(linnet("bench", lnt, "--data", case, "--trust", "--threads", 1, "--runs", RUNS, "--json"))["min_us"]


def compare(row, mode):
    """The line of a model; None where no layer has such a form."""
    cases, name = folder(row), row["name"]
    words = (row["convert"] or "").split()
    plain, made, report = OUT / f"{name}.lnt", OUT / f"{name}.{mode}.lnt", OUT / f"{name}.{mode}.json"
    linnet("convert", cases / "model.onnx", "-o", plain, *words)
    linnet("convert", cases / "model.onnx", "-o", made, *words, "--int8", mode, "--min-snr", 0, "--report", report,
           *(["--calibrate", cases] if mode == "static" else []))
    found = json.loads(report.read_text()).get("int8", {"layers": []})
    if not any(layer["int8"] for layer in found["layers"]):
        return None
    case = cases / f"test_data_set_{row['set']}"
    times = [(fastest(plain, case), fastest(made, case)) for _ in range(ROUNDS)]
    before, after = (min(t) for t in zip(*times))
    share, snr = found["multiplications_in_int8"], [o["snr_db"] for o in found["outputs"]]
    return [name, f"{plain.stat().st_size / 1000:.0f} KB", f"{made.stat().st_size / plain.stat().st_size:.3f}",
            "" if share is None else f"{100 * share:.1f} %", f"{min(snr):.0f} dB" if snr else "", f"{before / after:.2f}x"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibrated", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    chosen = {row["name"]: row for row in rows() if not row["form"] and (not given.names or row["name"] in given.names)}
    OUT.mkdir(parents=True, exist_ok=True)
    print("| model | float | INT8 | in INT8 | SNR | speed |\n|---|---|---|---|---|---|", flush=True)
    for row in chosen.values():
        try:
            line = compare(row, "static" if given.calibrated else "dynamic")
        except RuntimeError as why:
            line = [row["name"], *[""] * 4, str(why).splitlines()[-1]]
        if line:
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
