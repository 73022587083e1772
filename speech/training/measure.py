"""measure.py --voice VOICE.lnt | --teacher NAME: word error rate, by pocketsphinx's English model, of sentences of three kinds that
no voice has learned (corpus.py), with its 95 % interval. A voice of linnet, or one of flite."""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import wave

import corpus
import numpy as np
from features import RATE

MODEL = pathlib.Path("/usr/share/pocketsphinx/model/en-us")
BEFORE, BEHIND, PEAK = int(0.2 * RATE), int(0.3 * RATE), 0.7


def speak(arguments, texts, folder):
    """folder/NNNN.wav of each."""
    if arguments.teacher:
        def one(k):
            subprocess.run([arguments.flite, "-voice", arguments.teacher, "-o", folder / f"{k:04}.wav", "-t", texts[k]], check=True,
                           capture_output=True)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(one, range(len(texts))))
        return
    lines = "".join(json.dumps({"text": text, "output_file": str(folder / f"{k:04}.wav")}) + "\n" for k, text in enumerate(texts))
    subprocess.run([arguments.linnet, "say", "-m", arguments.voice, "--json-input"], input=lines, check=True, text=True,
                   capture_output=True)


def for_recognizer(path):
    """As raw samples, with silence around them, as loud as others."""
    with wave.open(str(path)) as f:
        assert f.getframerate() == RATE, path
        x = np.frombuffer(f.readframes(f.getnframes()), np.int16).astype(float)
    x *= PEAK * 32767 / max(np.abs(x).max(), 1)
    noise = np.random.default_rng(1).normal(0, 3, len(x) + BEFORE + BEHIND)  # digital silence is unknown to the recognizer
    path.with_suffix(".raw").write_bytes((np.pad(x, (BEFORE, BEHIND)) + noise).astype("<i2").tobytes())


def recognize(arguments, folder, names):
    """{name: words heard}"""
    parts = [names[k::arguments.jobs] for k in range(arguments.jobs)]

    def one(k):
        control, heard = folder / f"control{k}", folder / f"heard{k}"
        control.write_text("".join(f"{n}\n" for n in parts[k]))
        subprocess.run(["pocketsphinx_batch", "-adcin", "yes", "-cepdir", folder, "-cepext", ".raw", "-ctl", control,
                        "-hmm", MODEL / "en-us", "-dict", MODEL / "cmudict-en-us.dict", "-lm", MODEL / "en-us.lm.bin", "-hyp", heard],
                       check=True, capture_output=True)
        return heard.read_text()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        text = "".join(pool.map(one, range(len(parts))))
    return {m[2]: words_of(m[1]) for m in re.finditer(r"(.*)\((\S+) -?\d+\)\n", text)}


def words_of(text):
    return re.sub(r"[^a-z' ]+", " ", re.sub(r"\(\d\)", "", text.lower())).split()


def errors(said, heard):
    """The least number of words to replace, add and remove."""
    row = list(range(len(heard) + 1))
    for i, a in enumerate(said, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(heard, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def report(name, pairs):
    wrong, n = sum(e for e, _ in pairs), sum(n for _, n in pairs)
    rates = np.random.default_rng(1).choice(len(pairs), (1000, len(pairs)))
    table = np.array(pairs)[rates].sum(1)
    low, high = np.percentile(table[:, 0] / table[:, 1], [2.5, 97.5])
    print(f"{name:<10}{len(pairs):>5} sentences {n:>6} words {100 * wrong / n:6.1f} % wrong  [{100 * low:.1f}, {100 * high:.1f}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--voice")
    which.add_argument("--teacher")
    parser.add_argument("--linnet", default="build/linnet")
    parser.add_argument("--flite", default="flite")
    parser.add_argument("--wordnet", type=pathlib.Path, default=pathlib.Path("/usr/share/wordnet"))
    parser.add_argument("-n", type=int, default=200, help="sentences of each kind")
    parser.add_argument("--learned", type=int, default=9000, help="sentences that voices have learned")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    kinds = corpus.unheard(arguments.wordnet, arguments.n, arguments.learned)
    texts = [text for kind in kinds.values() for text in kind]
    done = subprocess.run([arguments.linnet, "say", "--print", "words"], input="".join(f"{t}\n" for t in texts), capture_output=True,
                          text=True, check=True)
    said = [words_of(line) for line in done.stdout.split("\n")[:-1]]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        speak(arguments, texts, folder)
        names = [f"{k:04}" for k in range(len(texts))]
        for name in names:
            for_recognizer(folder / f"{name}.wav")
        heard = recognize(arguments, folder, names)
    pairs = [(errors(words, heard.get(name, [])), len(words)) for name, words in zip(names, said)]
    for k, kind in enumerate(kinds):
        report(kind, pairs[k * arguments.n:(k + 1) * arguments.n])
    report("all", pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
