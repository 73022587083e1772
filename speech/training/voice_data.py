"""voice_data.py -o DIR: what a voice learns from: sentences as phonemes of our own front end, and a teacher's sound of them with
the time at which each phoneme ends. The teacher is a voice of flite, which is told how each word sounds: so its segments are
our phonemes, and nothing has to be aligned. DIR/train.jsonl and held.jsonl have a line for each sentence: text, symbols, ends
in seconds (of a pause that no mark asks for, the end of the word before it reaches over it), the name of its .wav."""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import corpus
from dictionary import bare

MARKS = set("|.,?!:;")


def front_end(arguments, what, texts):
    """What the program prints of each text."""
    command = [arguments.linnet, "say", "--print", what] + (["--lexicon", arguments.lexicon] if what == "phonemes" else [])
    done = subprocess.run(command, input="".join(f"{t}\n" for t in texts), capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == len(texts)
    return lines


def for_flite(phone):
    """A phoneme as flite's lexicon has it, which knows one kind of stress."""
    return phone.lower().replace("2", "1").replace("ah0", "ax0")


def pronunciations(words, symbols):
    """{word: phonemes for flite}; None where one word sounds in two ways, or is silent."""
    groups, group = [], []
    for s in symbols + ["|"]:
        if s not in MARKS:
            group.append(for_flite(s))
        elif group:
            groups.append(group)
            group = []
    words, table = re.sub(r"[.,?!:;]", "", words).lower().split(), {}
    if len(words) != len(groups):
        return None
    for word, sound in zip(words, groups):
        if word == "the":
            continue  # flite's own rule is ours
        if table.setdefault(word, sound) != sound:
            return None
    return table


def flite(arguments, words, table, wav):
    """[(segment, its end)]"""
    with tempfile.NamedTemporaryFile("w", suffix=".lex") as lexicon:
        lexicon.writelines(f"{word} 0 : {' '.join(sound)}\n" for word, sound in table.items())
        lexicon.flush()
        done = subprocess.run([arguments.flite, "-voice", arguments.voice, "-add_lex", lexicon.name, "-psdur", "-o", wav, "-t", words],
                              capture_output=True, text=True)
    if done.returncode or "add_addenda" in done.stdout + done.stderr:
        return None
    return [(name, float(end)) for name, _, end in (s.partition(":") for s in done.stdout.split())]


def ends_of(symbols, segments):
    """When each symbol ends, the silence at the beginning first and that at the end last; None where the teacher says
    something else."""
    ends, at = [], 0
    if len(segments) < 3 or segments[0][0] != "pau" or segments[-1][0] != "pau":
        return None
    before, last, segments = segments[0][1], segments[-1][1], segments[1:-1]
    ends.append(before)
    for symbol in symbols[:-1] if symbols[-1] in MARKS else symbols:
        end = ends[-1]
        if symbol in MARKS:
            if at < len(segments) and segments[at][0] == "pau":
                end, at = segments[at][1], at + 1
        elif at < len(segments) and segments[at][0] == bare(for_flite(symbol)):
            end, at = segments[at][1], at + 1
        else:
            return None
        ends.append(end)
    return ends + [last] if at == len(segments) else None


def speak(arguments, number, text, words, phonemes):
    """A line for the list; None, and why."""
    symbols, wav = phonemes.split(), f"{number:05}.wav"
    table = pronunciations(words, symbols)
    if not table:
        return None, "one word, two sounds"
    segments = flite(arguments, words.lower(), table, arguments.output / wav)
    ends = ends_of(symbols, segments) if segments else None
    if not ends:
        (arguments.output / wav).unlink(missing_ok=True)
        return None, "the teacher differs" if segments else "the teacher failed"
    return {"text": text, "symbols": symbols, "ends": ends, "wav": wav}, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--linnet", default="build/linnet")
    parser.add_argument("--lexicon", default="build/english.lex")
    parser.add_argument("--wordnet", type=pathlib.Path, default=pathlib.Path("/usr/share/wordnet"))
    parser.add_argument("--flite", default="flite")
    parser.add_argument("--voice", default="rms")
    parser.add_argument("-n", type=int, default=9000, help="sentences")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    texts = corpus.sentences(arguments.wordnet, arguments.n)
    rows = zip(range(len(texts)), texts, front_end(arguments, "words", texts), front_end(arguments, "phonemes", texts))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        said = list(pool.map(lambda row: speak(arguments, *row), rows))
    lists = {"train": [], "held": []}
    for k, (line, _) in enumerate(said):
        if line:
            lists["held" if k % corpus.HELD == 0 else "train"].append(line)
    for name, lines in lists.items():
        (arguments.output / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        print(f"{name:<24}{len(lines):>9,} sentences, {sum(line['ends'][-1] for line in lines) / 3600:.2f} h")
    for why, n in sorted(collections.Counter(why for _, why in said if why).items()):
        print(f"{why:<24}{n:>9,} left out")
    return 0


sys.exit(main())
