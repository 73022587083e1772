"""Completion in shells, and manual pages: the program prints them from its tables of options."""

import re
import shutil
import subprocess

import pytest

from harness import linnet

VERBS = re.findall(r"^  (\w+)   ", linnet().stderr.partition("Verbs")[2], re.M)


def options_of(verb):
    """Names in the help's first column."""
    lines = re.findall(r"^  (-[\w-]+(?:, -[\w-]+)*)", linnet(verb, "--help").stdout, re.M)
    return {name for line in lines for name in line.split(", ")}


def run(program, *args, **keywords):
    if not shutil.which(program):
        pytest.skip(f"no {program}")
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=60, **keywords)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shells")
    for shell in ("bash", "zsh", "fish"):
        done = linnet("--completion", shell)
        assert done.returncode == 0
        (folder / shell).write_text(done.stdout)
    (folder / "below").mkdir()
    return folder


def bash(scripts, *words):
    """What bash offers for the last of the words."""
    quoted = " ".join(f"'{w}'" for w in ("linnet", *words))
    line = f"source ./bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _linnet; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return set(run("bash", "--norc", "-c", line, cwd=scripts).split("\n")) - {""}


def test_bash_offers_verbs_options_and_values(scripts):
    assert bash(scripts, "") == {"--help", "--version", *VERBS} and len(VERBS) > 4
    assert bash(scripts, "ver") == {"verify"}
    for verb in VERBS:
        assert bash(scripts, verb, "-") == options_of(verb)
    assert bash(scripts, "verify", "--op") == {"--opt"}
    for words in (["--opt", ""], ["--opt", "="], ["--opt", "=", ""]):
        assert bash(scripts, "verify", *words) == {"none", "basic", "all"}
    assert "scalar" in bash(scripts, "run", "m.lnt", "--level", "s")
    assert bash(scripts, "verify", "--suite", "") == {"below"}
    for words in (["--threads", ""], ["--json", ""], ["m"], ["--input", "x", "=", "f"]):
        assert bash(scripts, "run", *words) == set()  # nothing, or bash's own files


def test_zsh_is_given_every_option(scripts):
    """zsh's own function for options, in its place one that prints what it is told."""
    line = """_arguments() { if [[ $1 == -C ]]; then state=rest; else print -rl -- "$@"; fi }
        words=(VERB); compdef() { :; }; source ./zsh"""
    for verb in VERBS:
        told = run("zsh", "-f", "-c", line.replace("VERB", verb), cwd=scripts)
        assert set(re.findall(r"^(?:\*|\([^)]*\))?(-[\w-]+)[=+]?\[", told, re.M)) == options_of(verb)
    assert re.search(r"^\(--level\)--level=\[[^\]]+\]:L:\(scalar ", told + run(
        "zsh", "-f", "-c", line.replace("VERB", "run"), cwd=scripts), re.M)


def fish(scripts, line):
    return {offer.split("\t")[0] for offer in run("fish", "--no-config", "-c", f"source ./fish; complete -C '{line}'",
                                                  cwd=scripts, env={"HOME": str(scripts), "PATH": "/usr/bin:/bin"}).split("\n")} - {""}


def test_fish_offers_verbs_options_and_values(scripts):
    assert fish(scripts, "linnet ") >= set(VERBS)
    for verb in VERBS:
        assert fish(scripts, f"linnet {verb} --") == {name for name in options_of(verb) if name.startswith("--")}
    assert fish(scripts, "linnet verify --opt ") == {"none", "basic", "all"}
    assert fish(scripts, "linnet verify --suite ") == {"below/"}


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_manual_page(verb, tmp_path):
    """groff has nothing to say about it, and all options and lines of the help are there."""
    page = linnet("--man", *[verb] * bool(verb))
    assert page.returncode == 0 and page.stdout.startswith(".TH LINNET")
    (tmp_path / "page.1").write_text(page.stdout)
    text = run("groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", str(tmp_path / "page.1"))
    if not verb:
        assert all(f"linnet-{other}(1)" in text for other in VERBS)
        return
    assert options_of(verb) == {name for line in re.findall(r"^       (-[^\n]*)", text, re.M)
                                for name in re.findall(r"(?:^|, )(-[\w-]+)", line.split("  ")[0])} & options_of(verb)
    examples = linnet(verb, "--help").stdout.partition("Examples:\n")[2]
    for line in examples.strip().split("\n"):
        assert line.strip() in text


@pytest.mark.parametrize("words", [("--completion",), ("--completion", "csh"), ("--man", "bnech")])
def test_what_there_is_not_is_said(words):
    done = linnet(*words)
    assert done.returncode == 2 and not done.stdout
    assert "bash, zsh or fish" in done.stderr or "did you mean bench?" in done.stderr
