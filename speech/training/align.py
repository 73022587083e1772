"""align.py: which phonemes of a word belong to which of its letters: none, one or two to each. Probabilities of phonemes
given the letter are estimated from the best alignments under the probabilities before, as in Black, Lenzo and Pagel,
"Issues in Building General Letter to Sound Rules", 1998."""
import math
from collections import Counter, defaultdict

from dictionary import bare

ROUNDS = 5
NEVER = 14.0  # the cost of what was not seen


def scattered(pairs):
    """Counts of phonemes near the place that the letter has in its word."""
    counts = defaultdict(Counter)
    for word, phones in pairs:
        n, m = len(word), len(phones)
        for i, letter in enumerate(word):
            counts[letter][()] += 0.3
            for j in range(m):
                if abs((j + 0.5) / m - (i + 0.5) / n) < 1.5 / n + 0.05:
                    counts[letter][phones[j:j + 1]] += 1
                if m > n and j + 1 < m and abs((j + 1) / m - (i + 0.5) / n) < 1.5 / n:
                    counts[letter][phones[j:j + 2]] += 0.02
    return counts


def best_path(word, phones, costs):
    """How many phonemes each letter takes, at the least cost."""
    m = len(phones)
    before, steps = [0.0] + [1e9] * m, []
    for letter in word:
        cost = costs[letter].get
        silent, now, step = cost((), NEVER), [], []
        for j in range(m + 1):
            best, k = before[j] + silent, 0
            if j and (c := before[j - 1] + cost(phones[j - 1:j], NEVER)) < best:
                best, k = c, 1
            if j > 1 and (c := before[j - 2] + cost(phones[j - 2:j], NEVER + 2)) < best:
                best, k = c, 2
            now.append(best)
            step.append(k)
        before = now
        steps.append(step)
    taken, j = [], m
    for step in reversed(steps):
        taken.append(step[j])
        j -= step[j]
    return taken[::-1]


def align(words):
    """{word: phonemes of each letter}, of the words that have at most two phonemes for each letter."""
    pairs = [(w, tuple(map(bare, p))) for w, p in words.items() if len(p) <= 2 * len(w)]
    counts, paths = scattered(pairs), {}
    for _ in range(ROUNDS):
        costs = {c: {g: -math.log(k / sum(of.values())) for g, k in of.items()} for c, of in counts.items()}
        counts = defaultdict(Counter)
        for word, phones in pairs:
            paths[word], j = best_path(word, phones, costs), 0
            for letter, k in zip(word, paths[word]):
                counts[letter][phones[j:j + k]] += 1
                j += k
    aligned = {}
    for word, path in paths.items():
        ends = [sum(path[:i]) for i in range(len(path) + 1)]
        aligned[word] = [words[word][a:b] for a, b in zip(ends, ends[1:])]
    return aligned
