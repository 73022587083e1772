"""Linnet's side: programs for the cores, files, and the command that runs a model."""

import functools
import json
import os
import pathlib
import subprocess

import agreement
import bench
import emulation
import numpy as np
from emulation import OUT, ROOT
from symbols import Symbols

RUNS = (1, 3)  # whose difference is two runs
FILES = 4  # of a model, by as many converters
PLAIN_ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}


def make(tree, *words, lock=None):
    """lock: a file that others who make the same hold, too."""
    alone = ["flock", str(lock)] if lock else []
    done = subprocess.run([*alone, "make", "-s", f"-j{os.cpu_count() or 1}", "-C", str(tree), *words], env=PLAIN_ENVIRONMENT,
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"make -C {tree} {' '.join(words)}:\n{done.stdout}{done.stderr}")


@functools.lru_cache(None)
def built(tree, board):
    """The board's program of a checkout, static: where its code lies is the same in each run."""
    program = f"build/{board}/linnet-static"
    (tree / "build").mkdir(exist_ok=True)
    make(tree, f"BOARD={board}", "STATIC=1", program, lock=tree / "build" / f"{board}.lock")
    return tree / program


@functools.lru_cache(None)
def converter(tree):
    make(tree, "build/linnet")
    return tree / "build/linnet"


def ours(core, program):
    return program.resolve() if program else built(ROOT, core.board)


def ours_converter():
    return converter(ROOT)


class Run:
    """A model on a program, its file made by a converter."""

    def __init__(self, row, program, converter, level=None):
        self.row, self.program, self.converter = row, program, converter
        self.level = ["--level", level] if level else []
        self.model = bench.folder(row) / "model.onnx"
        case = bench.folder(row) / f"test_data_set_{row['set']}"
        self.lnt = converted(row, self.model, converter)
        names = [i["name"] for i in json.loads(bench.linnet("info", self.lnt, "--json", program=converter))["inputs"]]
        inputs = [case / f"input_{k}.pb" for k in range(len(names))]
        self.fed = [word for name, path in zip(names, inputs) for word in ("--input", f"{name}={path}")]
        self.depends = (program, self.lnt, *inputs)

    def command(self, runs):
        return [self.program, "bench", self.lnt, *self.fed, "--trust", "--threads", 1, "--warmup", 0, "--runs", runs, "--json",
                *self.level]

    def profile(self, core):
        return emulation.profile(core, self.command, self.depends, RUNS)

    def traffic(self, core):
        return emulation.traffic(core, self.command, self.depends, RUNS)

    def symbols(self):
        return Symbols(self.program)

    def outputs_command(self, program, folder):
        return [program, "run", self.lnt, *self.fed, "--threads", 1, "--output-dir", folder]

    def difference(self, core):
        """Of the outputs to those computed here, and the largest that is taken for the same."""
        kept = OUT / "outputs" / f"{emulation.digest([core, self.converter, *self.level, *self.depends])}.json"
        if not kept.exists():
            there, here = kept.with_suffix(".arm"), kept.with_suffix(".x86")
            for folder in (there, here):
                folder.mkdir(parents=True, exist_ok=True)
            emulation.emulate(core, [*self.outputs_command(self.program, there), *self.level])
            bench.linnet(*self.outputs_command(None, here)[1:], program=self.converter)
            names = sorted(path.name for path in here.glob("*.npy"))
            kept.write_text(json.dumps(agreement.difference(*([np.load(f / name) for name in names] for f in (here, there)))))
        return json.loads(kept.read_text()), agreement.tolerance(self.row)


def converted(row, model, converter):
    """Kept by the contents of what it is made of."""
    lnt = OUT / "files" / f"{row['name']}-{emulation.digest([converter, model, row['convert']])}.lnt"
    if not lnt.exists():
        lnt.parent.mkdir(parents=True, exist_ok=True)
        bench.linnet("convert", model, "-o", lnt, *row["convert"].split(), program=converter)
        for old in sorted(lnt.parent.glob(f"{row['name']}-*"), key=lambda p: p.stat().st_mtime)[:-FILES]:
            old.unlink(missing_ok=True)
    return lnt


def other(row, core, against, level):
    """The same model on another program: of a checkout, whose own converter writes the file, or as a file, with ours."""
    if (against / "Makefile").exists():
        tree = against.resolve()
        return Run(row, built(tree, core.board), converter(tree), level)
    programs = [against / "linnet-static", against / "linnet"] if against.is_dir() else [against]
    found = [program for program in programs if program.exists()]
    if not found:
        raise RuntimeError(f"{against}: neither a checkout nor a program, nor a folder with one")
    return Run(row, found[0].resolve(), ours_converter(), level)
