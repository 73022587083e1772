"""make_lexicon.py CMUDICT -o FILE: a lexicon of English for voices. Letter-to-sound trees are grown from all words; the words
that they and the rules for endings get wrong become entries. Two runs write the same bytes. --measure: what trees know of
words that were held out of them, too."""
import argparse
import sys
from collections import Counter

import dictionary
import trees
from align import align
from lexicon_file import ALWAYS, ENDINGS, Lexicon, write

def choose_classes(aligned, rare):
    """Phonemes that belong to a letter. Words with some that do so less than rare times have them written out."""
    counts = Counter(g for groups in aligned.values() for g in groups)
    classes = sorted((g for g, n in counts.items() if n >= rare), key=lambda g: (-counts[g], g))
    assert len(classes) <= 128
    return classes


def taken_apart(word, words):
    """Is it one of the words that are always made of their stem, and is that right?"""
    for end, put, sound in ENDINGS[:ALWAYS]:
        stem = words.get(word[:-len(end)] + put) if word.endswith(end) else None
        if stem and stem + tuple(sound(stem) if callable(sound) else sound) == words[word]:
            return True
    return False


def grow(words, arguments):
    """(alignments, classes, {letter: tree})"""
    aligned = align({w: p for w, p in words.items() if not taken_apart(w, words)})
    classes = choose_classes(aligned, arguments.rare)
    known = set(classes)
    aligned = {w: g for w, g in aligned.items() if known.issuperset(g)}
    examples = trees.examples(aligned, classes)
    grower = trees.Grower(max(len(y) for _, y in examples.values()), arguments.worth, arguments.worth_set)
    return aligned, classes, {c: grower.grow(*examples[c]) for c in trees.LETTERS}


def corrections(lexicon, word, groups):
    """[(place, class)] where trees say something else, each place told what is right of those before it."""
    walk, wrong = trees.Walk(word), []
    for i, group in enumerate(groups):
        if lexicon.classes[lexicon.leaf(word[i], walk.features(i))] != group:
            wrong.append((i, group))
        walk.take(group)
    return wrong


class Maker:
    """Entries for the words that the lexicon so far has not right."""

    def __init__(self, words, aligned, classes, grown):
        self.words, self.aligned, self.classes = words, aligned, classes
        self.bytes = {c: trees.as_bytes(t) for c, t in grown.items()}
        bare = Lexicon(write(self.bytes, {c: [] for c in trees.LETTERS}, classes, {}))
        self.by_trees = {w: bare.grown(w) for w in words}
        self.wrong = {w: corrections(bare, w, g) for w, g in aligned.items()}
        counts = {c: Counter() for c in trees.LETTERS}
        for word, places in self.wrong.items():
            for i, group in places:
                counts[word[i]][classes.index(group)] += 1
        self.ranks = {c: sorted(n, key=lambda k: (-n[k], k)) for c, n in counts.items()}
        self.rank = {c: {classes[k]: i for i, k in enumerate(r)} for c, r in self.ranks.items()}

    def entry(self, word):
        if word not in self.aligned:
            return self.words[word]
        return {i: self.rank[word[i]][group] for i, group in self.wrong[word]}

    def say(self, word, entries):
        """As Lexicon.phonemes, without a file."""
        return self.words[word] if word in entries else self.derive(word, entries) or self.by_trees[word]

    def derive(self, word, entries):
        for k, (end, put, sound) in enumerate(ENDINGS):
            stem = word[:-len(end)] + put
            if not word.endswith(end) or len(stem) < 2 or (k >= ALWAYS and (len(stem) < 3 or word.endswith("ss"))):
                continue
            if k < ALWAYS:
                phones = self.say(stem, entries) if stem in self.words else None
            else:
                phones = self.words[stem] if stem in entries else None
            if phones:
                return phones + tuple(sound(phones) if callable(sound) else sound)
        return None

    def make(self):
        """(the file's bytes, what it says of each word). Words whose key is another's by chance get an entry of their own."""
        entries = {}
        for word in sorted(self.words, key=lambda w: (len(w), w)):
            if self.say(word, entries) != self.words[word]:
                entries[word] = self.entry(word)
        salt = 1
        while True:
            data = write(self.bytes, self.ranks, self.classes, entries, salt)
            lexicon = Lexicon(data)
            said = {w: lexicon.phonemes(w) for w in self.words}
            missed = [w for w, p in self.words.items() if w not in entries and said[w] != p]
            if not missed:
                return data, said
            entries.update((w, self.entry(w)) for w in missed)
            salt = lexicon.salt  # with another one other words would have another's key


def right(words, said):
    """Percent of words that are right, with stress and without."""
    exact = bare = 0
    for word, phones in words.items():
        got = said[word]
        exact += got == phones
        bare += [*map(dictionary.bare, got)] == [*map(dictionary.bare, phones)]
    return 100 * exact / len(words), 100 * bare / len(words)


def report(data, maker, grown):
    lexicon = Lexicon(data)
    questions, leaves = map(sum, zip(*map(trees.sizes, grown.values())))
    rows = [("words", len(maker.words)), ("questions", questions), ("leaves", leaves), ("entries", lexicon.n_entries),
            ("corrections", sum(map(len, maker.wrong.values()))),
            ("bytes of trees", len(lexicon.nodes)), ("bytes of entries", len(lexicon.entries.text) // 8),
            ("bytes of buckets", 4 * len(lexicon.bucket)), ("bytes", len(data))]
    for what, n in rows:
        print(f"{what:<44}{n:>9,}")


def accuracy(what, words, said):
    print(f"{what:<44}{len(words):>9,}  {'%.2f %% right with stress, %.2f %% without' % right(words, said)}")


def build(words, arguments):
    aligned, classes, grown = grow(words, arguments)
    maker = Maker(words, aligned, classes, grown)
    return maker, grown, *maker.make()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cmudict")
    parser.add_argument("-o", "--output")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th word only")
    parser.add_argument("--measure", type=int, metavar="N", help="hold every N-th word out, and say how many of them are right")
    parser.add_argument("--rare", type=int, default=12, help="phonemes of a letter seen less often are no class of its tree")
    parser.add_argument("--worth", type=float, default=6, help="bits that a question must save")
    parser.add_argument("--worth-set", type=float, default=9, help="the same of one about several values")
    arguments = parser.parse_args()
    words = dictionary.of_number(dictionary.read(arguments.cmudict), arguments.every, 0)
    if arguments.measure:
        held = dictionary.of_number(words, arguments.measure, 0)
        _, _, data, _ = build({w: p for w, p in words.items() if w not in held}, arguments)
        lexicon = Lexicon(data)
        accuracy("held out, by trees alone", held, {w: lexicon.grown(w) for w in held})
        accuracy("held out, by trees and rules for endings", held, {w: lexicon.phonemes(w) for w in held})
    if arguments.output:
        maker, grown, data, said = build(words, arguments)
        with open(arguments.output, "wb") as file:
            file.write(data)
        report(data, maker, grown)
        accuracy("by trees alone", words, maker.by_trees)
        accuracy("by all", words, said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
