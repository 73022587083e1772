"""`make deb`: Debian packages that depend on what their files need, and that lintian finds no fault with."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import ROOT

ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX")}


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, cwd=ROOT, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages():
    """The packages' files by name."""
    run("make", "deb")
    return {p.name.split("_")[0]: p for p in (ROOT / "build").glob("*.deb")}


def unpacked(package, folder):
    run("dpkg-deb", "-R", package, folder)
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}


def test_what_is_in_them(packages, tmp_path):
    assert set(packages) == {"linnet", "liblinnet0", "liblinnet-dev"}
    files = {name: unpacked(path, tmp_path / name) for name, path in packages.items()}
    for name in packages:
        assert {f"usr/share/doc/{name}/copyright", f"usr/share/doc/{name}/changelog.Debian.gz"} <= files[name]
    assert {"usr/bin/linnet", "usr/share/man/man1/linnet-convert.1.gz", "usr/share/bash-completion/completions/linnet",
            "usr/share/zsh/vendor-completions/_linnet"} <= files["linnet"]
    assert "usr/include/linnet.h" in files["liblinnet-dev"]
    triple = run("gcc", "-print-multiarch").strip()
    (library,) = (f for f in files["liblinnet0"] if re.fullmatch(rf"usr/lib/{triple}/liblinnet\.so\.0\.[0-9.]+", f))
    for binary in (tmp_path / "linnet/usr/bin/linnet", tmp_path / "liblinnet0" / library):
        assert ".symtab" not in run("readelf", "-S", binary)


def test_program_depends_on_what_it_is_linked_with(packages, tmp_path):
    unpacked(packages["linnet"], tmp_path / "all")
    program = tmp_path / "all/usr/bin/linnet"
    needed = re.findall(r"NEEDED +(\S+)", run("objdump", "-p", program))
    owners = set()
    for line in run("ldd", program).split("\n"):
        if line.split() and line.split()[0] in needed:
            library = pathlib.Path(line.split()[2]).resolve()
            owners.add(run("dpkg", "-S", f"*/{library.parent.name}/{library.name}").split(":")[0])  # in /lib or /usr/lib
    depends = run("dpkg-deb", "-f", packages["linnet"], "Depends")
    assert owners == {re.split(r"[ :]", package)[0] for package in depends.strip().split(", ")}


@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian")
def test_lintian_finds_no_errors(packages):
    run("lintian", "--allow-root", "--fail-on", "error", *packages.values())
