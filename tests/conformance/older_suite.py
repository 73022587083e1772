#!/usr/bin/env python3
"""older_suite.py [--out DIR]: the nodes' cases of older ONNX versions, each of which came with those of its day, from the
packages' wheels in PyPI: DIR/node/NAME.oOPSET. A case that a later version mended is taken from the later one."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSIDE = "onnx/backend/test/data/node/"
NEWEST = 24  # newer operator sets are the suite's own
# version of the package: of the Python that it was built for
WHEELS = {"1.2.2": "3.6", "1.3.0": "3.6", "1.4.1": "3.6", "1.5.0": "3.6", "1.6.0": "3.6", "1.7.0": "3.6", "1.8.1": "3.6",
          "1.9.0": "3.6", "1.10.2": "3.6", "1.11.0": "3.7", "1.12.0": "3.7", "1.13.1": "3.7", "1.14.1": "3.7", "1.15.0": "3.8",
          "1.16.2": "3.8", "1.17.0": "3.8", "1.18.0": "3.11", "1.19.1": "3.11", "1.20.1": "3.11", "1.21.0": "3.12",
          "1.22.0": "3.12"}
PLATFORMS = ["manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28"]


def wheel(version, folder):
    where = [part for platform in PLATFORMS for part in ("--platform", platform + "_x86_64")]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
                    "--only-binary", ":all:", "--implementation", "cp", "--python-version", WHEELS[version], *where, "-d", folder,
                    f"onnx=={version}"], check=True)
    return zipfile.ZipFile(next(folder.glob(f"onnx-{version}-*.whl")))


def opset_of(data):
    model = onnx.load_from_string(data)
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def take(package, out, seen):
    """Writes the cases that no newer package had."""
    cases = {}
    for name in package.namelist():
        if name.startswith(INSIDE) and not name.endswith("/"):
            case, _, path = name[len(INSIDE):].partition("/")
            cases.setdefault(case, {})[path] = name
    for case, files in cases.items():
        opset = opset_of(package.read(files["model.onnx"]))
        if not 0 < opset <= NEWEST or (case, opset) in seen:
            continue
        seen.add((case, opset))
        for path, name in files.items():
            to = out / "node" / f"{case}.o{opset}" / path
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(package.read(name))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--out", type=pathlib.Path, default=ROOT / ".deps" / "older", metavar="DIR")
    out, seen = options.parse_args().out, set()
    for version in reversed(WHEELS):
        with tempfile.TemporaryDirectory() as folder:
            take(wheel(version, pathlib.Path(folder)), out, seen)
    print(f"{len(seen)} cases")


if __name__ == "__main__":
    main()
