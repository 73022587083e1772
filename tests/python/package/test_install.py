"""`make install`: what it puts where, and that programs are built with it by pkg-config and by CMake."""

import os
import shutil
import subprocess
import tarfile

import pytest

from harness import ROOT, linnet

PROGRAM = """
#include <linnet.h>
#include <stdio.h>
int main(void) { return puts(lnt_version()) < 0; }
"""
VOICE = """
#include <linnet_voice.h>
#include <stdio.h>
int main(void)
{
    lnt_voice *voice = NULL;
    lnt_voice_destroy(&voice);
    return puts(lnt_version()) < 0;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(try C)
find_package(Linnet 0.1 REQUIRED)
foreach(target linnet linnet_static)
  add_executable(with_${target} program.c)
  target_link_libraries(with_${target} PRIVATE Linnet::${target})
endforeach()
add_executable(with_speech voice.c)
target_link_libraries(with_speech PRIVATE Linnet::speech)
"""
VERSION = linnet("--version").stdout.split()[1]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX")}


def run(*command, code=0, **keywords):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600,
                          **{"cwd": ROOT, "env": ENVIRONMENT, **keywords})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation below a prefix that the loader does not know, which is said."""
    prefix = tmp_path_factory.mktemp("prefix")
    assert f"LD_LIBRARY_PATH={prefix}/lib" in run("make", "install", f"PREFIX={prefix}")
    return prefix


def test_files(prefix, tmp_path):
    files = {str(p.relative_to(prefix)) for p in prefix.rglob("*") if not p.is_dir()}
    assert files >= {
        "bin/linnet", "include/linnet.h", "include/linnet_types.h", "include/linnet_voice.h", "lib/liblinnet.a", "lib/liblinnet.so",
        "lib/liblinnet.so.0", f"lib/liblinnet.so.{VERSION}", "lib/liblinnet-speech.a", "lib/pkgconfig/linnet.pc",
        "lib/cmake/Linnet/LinnetConfig.cmake", "lib/cmake/Linnet/LinnetConfigVersion.cmake", "share/man/man1/linnet.1.gz",
        "share/man/man1/linnet-convert.1.gz", "share/bash-completion/completions/linnet", "share/zsh/site-functions/_linnet",
        "share/fish/vendor_completions.d/linnet.fish", "share/linnet/voices/robin.lnt", "share/linnet/voices/wren.lnt",
        "share/linnet/voices/NOTICE"}
    said = run("make", "install", f"DESTDIR={tmp_path}", "PREFIX=/opt/linnet", "LIBDIR=lib64", "DOCS=")
    assert "LD_LIBRARY_PATH" not in said
    assert (tmp_path / "opt/linnet/lib64/liblinnet.so").exists()
    assert [p.name for p in (tmp_path / "opt/linnet/share").iterdir()] == ["linnet"]


def test_pkg_config(prefix, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    flags = run("pkg-config", "--cflags", "--libs", "linnet", env={**ENVIRONMENT, "PKG_CONFIG_PATH": prefix / "lib/pkgconfig"})
    run("gcc", "program.c", *flags.split(), "-o", "program", cwd=tmp_path)
    assert run(tmp_path / "program", env={"LD_LIBRARY_PATH": str(prefix / "lib")}).strip() == VERSION


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_cmake(prefix, tmp_path):
    for name, text in {"program.c": PROGRAM, "voice.c": VOICE, "CMakeLists.txt": CMAKE}.items():
        (tmp_path / name).write_text(text)
    found = f"-DCMAKE_PREFIX_PATH={prefix}"
    run("cmake", "-S", tmp_path, "-B", tmp_path / "out", found)
    run("cmake", "--build", tmp_path / "out")
    for name in ("linnet", "linnet_static", "speech"):
        assert run(tmp_path / f"out/with_{name}").strip() == VERSION
    assert "liblinnet" not in run("ldd", tmp_path / "out/with_linnet_static")
    for version in ("0.2", "1.0"):
        (tmp_path / "CMakeLists.txt").write_text(CMAKE.replace("Linnet 0.1", f"Linnet {version}"))
        said = run("cmake", "-S", tmp_path, "-B", tmp_path / f"out{version}", found, code=1)
        assert "not accepted" in said


@pytest.mark.parametrize("board", ["", "BOARD=rpi4 "])
def test_what_is_missing_is_told_with_what_installs_it(board, tmp_path):
    said = run("make", *board.split(), "CROSS=no-such-", "CC=no-such-gcc", f"BUILD={tmp_path}", f"{tmp_path}/obj/base/cpu.o", code=2)
    assert "no no-such-gcc here" in said and f"by: make {board}deps\n" in said


def test_tarball_of_the_last_commit():
    name = run("make", "dist").strip()
    assert name == f"build/linnet-{VERSION}.tar.gz"
    with tarfile.open(ROOT / name) as tar:
        names = tar.getnames()
    assert f"linnet-{VERSION}/Makefile" in names and all(n.startswith(f"linnet-{VERSION}") for n in names)
