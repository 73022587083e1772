#!/usr/bin/env python3
"""search.py MODEL VOCAB index TEXTS.txt INDEX.npz
search.py MODEL VOCAB find INDEX.npz QUESTION [-n 5]

Search by meaning: each line of a text becomes a vector (sentence embeddings: Reimers and Gurevych, "Sentence-BERT", 2019), and lines
are found whose vectors point where the question's does. MODEL is a sentence transformer as .onnx or .lnt, VOCAB its vocab.txt."""

import argparse
import sys

import numpy as np
from wordpiece import Tokenizer

import linnet

BATCH, TOKENS = 32, 256


class Embedder:
    """Texts to vectors of length 1. The model's output is the vectors, or one for each token, whose mean is taken."""

    def __init__(self, model, vocabulary):
        self.session, self.tokenizer = linnet.InferenceSession(model), Tokenizer(vocabulary)
        self.names = [port.name for port in self.session.get_inputs()]
        if "input_ids" not in self.names:
            raise ValueError(f"{model} takes no input_ids, but {', '.join(self.names)}")

    def batch(self, ids):
        """[n, t] of n lists of ids."""
        longest = max(map(len, ids))
        mask = np.array([[1] * len(line) + [0] * (longest - len(line)) for line in ids], np.int64)
        padded = np.full(mask.shape, self.tokenizer.ids["[PAD]"], np.int64)
        padded[mask == 1] = np.concatenate(ids)
        given = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
        found = self.session.run(None, {name: given[name] for name in self.names})[0]
        if found.ndim == 3:
            found = (found * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def __call__(self, texts):
        """[len(texts), width], float32. Texts of about the same length go together: padding costs as much as words."""
        ids = [self.tokenizer.encode(text, TOKENS) for text in texts]
        order = sorted(range(len(ids)), key=lambda k: len(ids[k]))
        vectors = [None] * len(ids)
        for at in range(0, len(order), BATCH):
            part = order[at:at + BATCH]
            for k, vector in zip(part, self.batch([ids[k] for k in part])):
                vectors[k] = vector
        return np.array(vectors, np.float32)


def index(embed, texts, target):
    with open(texts, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    if not lines:
        raise ValueError(f"{texts} has no lines")
    np.savez_compressed(target, lines=np.array(lines), vectors=embed(lines))
    print(f"{len(lines)} lines")


def find(embed, path, question, n):
    with np.load(path) as file:
        lines, vectors = file["lines"], file["vectors"]
    closeness = vectors @ embed([question])[0]
    for k in np.argsort(-closeness, kind="stable")[:n]:
        print(f"{closeness[k]:.3f}  {lines[k]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("vocabulary", metavar="VOCAB")
    parser.add_argument("verb", choices=("index", "find"))
    parser.add_argument("first", metavar="TEXTS.txt|INDEX.npz")
    parser.add_argument("second", metavar="INDEX.npz|QUESTION")
    parser.add_argument("-n", type=int, default=5, help="lines to print (5)")
    asked = parser.parse_args()
    try:
        embed = Embedder(asked.model, asked.vocabulary)
        index(embed, asked.first, asked.second) if asked.verb == "index" else find(embed, asked.first, asked.second, asked.n)
    except (OSError, KeyError, ValueError, linnet.LinnetError) as why:
        sys.exit(f"search: {why}")


if __name__ == "__main__":
    main()
