"""trees.py: decision trees from a letter and what is around it to its phonemes: one for each letter, grown as in Breiman et
al., "Classification and Regression Trees", 1984, with entropy as the measure, and as bytes."""
import numpy as np

from dictionary import NUMBER, bare

LETTERS = "'abcdefghijklmnopqrstuvwxyz"
LETTER = {c: i + 1 for i, c in enumerate(LETTERS)}  # 0: there is none
AROUND = 4
# How many values each feature has: letters before and behind, nearest first; the last three phonemes; stress of the last two
# vowels; was one of them the primary stress; vowels so far; groups of vowel letters to come; letters of the word, before
# and behind.
SIZES = [28] * (2 * AROUND) + [40] * 3 + [4, 4, 2, 6, 6, 13, 7, 7]
FIXED = 1 << 16  # entropy is counted in whole numbers, so that every machine finds the same


class Walk:
    """Goes through a word from its first letter to the last; what was taken for the letters behind is part of the features."""

    def __init__(self, word):
        self.word, self.letters = word, [0] * AROUND + [LETTER[c] for c in word] + [0] * AROUND
        self.phones, self.stress, self.primary, self.vowels = [0, 0, 0], [0, 0], 0, 0
        vowel = [c in "aeiouy" for c in word]
        starts = [v and not before for v, before in zip(vowel, [False] + vowel)]
        self.to_come = [sum(starts[i + 1:]) for i in range(len(word))]

    def features(self, i):
        n, at = len(self.word), self.letters[i:i + 2 * AROUND + 1]
        return at[AROUND - 1::-1] + at[AROUND + 1:] + self.phones + self.stress + [
            self.primary, min(self.vowels, 5), min(self.to_come[i], 5), min(n, 12), min(i, 6), min(n - 1 - i, 6)]

    def take(self, phones):
        for phone in phones:
            self.phones = [NUMBER[bare(phone)] + 1] + self.phones[:2]
            if phone != bare(phone):
                self.stress = [int(phone[-1]) + 1, self.stress[0]]
                self.primary |= phone[-1] == "1"
                self.vowels += 1


def examples(aligned, classes):
    """{letter: (features, class numbers)} of all places of all words; class 0 is the most frequent."""
    number = {g: i for i, g in enumerate(classes)}
    rows = {c: ([], []) for c in LETTERS}
    for word, groups in aligned.items():
        walk = Walk(word)
        for i, group in enumerate(groups):
            rows[word[i]][0].append(walk.features(i))
            rows[word[i]][1].append(number[group])
            walk.take(group)
    return {c: (np.array(f, np.uint8).reshape(-1, len(SIZES)), np.array(y, np.int64)) for c, (f, y) in rows.items()}


class Grower:
    """Asks, as long as an answer is worth what a question costs in the file."""

    def __init__(self, most, worth, worth_set):
        n = np.arange(most + 1, dtype=np.float64)
        n[0] = 1
        self.bits = np.rint(n * np.log2(n) * FIXED).astype(np.int64)  # n log2 n
        self.worth, self.worth_set = int(worth * FIXED), int(worth_set * FIXED)

    def saved(self, whole, total, n, part, n_part):
        """Bits that are saved by telling the places counted in part from the others, for each row of part."""
        bits = self.bits
        return (whole + bits[part].sum(1) - bits[n_part] + bits[total - part].sum(1) - bits[n - n_part])

    def ask(self, counts, total, whole):
        """The best question about a feature with counts [value][class]: (bits saved less what it costs, its values)."""
        n, of_value = total.sum(), counts.sum(1)
        values = np.flatnonzero(of_value)
        counts, of_value = counts[values], of_value[values]
        gain = self.saved(whole, total, n, counts, of_value) - self.worth
        k = int(gain.argmax())
        best = gain[k], values[k:k + 1]
        if len(values) <= 2:
            return best
        for c in np.argsort(-total, kind="stable")[:2]:
            order = np.argsort(-(counts[:, c] << 32) // of_value, kind="stable")
            gain = self.saved(whole, total, n, counts[order].cumsum(0)[:-1], of_value[order].cumsum()[:-1]) - self.worth_set
            k = int(gain.argmax())
            if gain[k] > best[0]:
                best = gain[k], values[order[:k + 1]]
        return best

    def question(self, features, y):
        """(feature, its values) of the best question; None: none is worth it."""
        classes, y = np.unique(y, return_inverse=True)
        m, total = len(classes), np.bincount(y)
        whole = self.bits[len(y)] - self.bits[total].sum()
        best = 0, None
        if m == 1 or whole <= self.worth:
            return None
        for f, size in enumerate(SIZES):
            column = features[:, f].astype(np.int64)
            if (column == column[0]).all():
                continue
            gain, values = self.ask(np.bincount(column * m + y, minlength=size * m).reshape(size, m), total, whole)
            if gain > best[0]:
                best = gain, (f, values)
        return best[1]

    def grow(self, features, y):
        """A tree: a class number, or (feature, values, tree where it has one of them, tree where it has none)."""
        asked = self.question(features, y)
        if asked is None:
            return int(np.bincount(y).argmax()) if len(y) else 0
        f, values = asked
        yes = np.isin(features[:, f], values)
        return f, [int(v) for v in values], self.grow(features[yes], y[yes]), self.grow(features[~yes], y[~yes])


def mask_bytes(feature):
    return (SIZES[feature] + 7) // 8


def as_bytes(tree):
    """A leaf: 128 + class. A question: 4 * feature, + 1 if its values are a mask and not a single one, + 2 if the distance has
    two bytes; the value or the mask; how many bytes the tree for yes has, behind which that for no is; the tree for yes."""
    if isinstance(tree, int):
        return bytes([128 + tree])
    feature, values, yes, no = tree
    yes, no = as_bytes(yes), as_bytes(no)
    single, near = len(values) == 1, len(yes) < 256
    what = values[0].to_bytes(1, "little") if single else sum(1 << v for v in values).to_bytes(mask_bytes(feature), "little")
    return bytes([4 * feature + (not single) + 2 * (not near)]) + what + len(yes).to_bytes(1 if near else 2, "little") + yes + no


def sizes(tree):
    """Questions and leaves of a tree."""
    if isinstance(tree, int):
        return 0, 1
    a, b = sizes(tree[2]), sizes(tree[3])
    return 1 + a[0] + b[0], a[1] + b[1]
