"""lexicon_file.py: the file of a lexicon and its reader in Python, against which the one in C is tested; docs/say.md has the
format."""
import functools
import struct

import xxhash

from dictionary import code, name
from trees import LETTERS, Walk, mask_bytes

MAGIC = b"\x89LEX\r\n\x1a\n"
VERSION = 1
WORD_MOST = 64  # letters; longer words have no entries and no endings
HEAD = struct.Struct("<8s7IQ20x")
RAW, AS_GROWN = 30, 31  # in place of a number of corrections: phonemes; none
KEY_BITS, GAP_BITS, RANK_BITS, COUNT_BITS, RAW_BITS = 18, 1, 1, 0, 3

UNVOICED, HISSING = {"P", "T", "K", "F", "TH"}, {"S", "Z", "SH", "CH", "JH", "ZH"}


def plural(phones):
    """What "s" is behind them."""
    return ("AH0", "Z") if phones[-1] in HISSING else ("S",) if phones[-1] in UNVOICED else ("Z",)


def past(phones):
    """What "ed" is behind them."""
    return ("AH0", "D") if phones[-1] in ("T", "D") else ("T",) if phones[-1] in UNVOICED | HISSING - {"Z", "JH", "ZH"} else ("D",)


# (end of the word, what the stem has in its place, what it sounds like). Of the first two every word is taken apart, of the
# others those whose stem has an entry.
ENDINGS = (
    ("'s", "", plural), ("s'", "s", ()),
    ("s", "", plural), ("es", "", plural), ("ies", "y", plural), ("ed", "", past), ("ed", "e", past), ("ied", "y", past),
    ("ing", "", ("IH0", "NG")), ("ing", "e", ("IH0", "NG")), ("ly", "", ("L", "IY0")), ("er", "", ("ER0",)), ("er", "e", ("ER0",)),
    ("ers", "", ("ER0", "Z")), ("ers", "e", ("ER0", "Z")), ("ness", "", ("N", "AH0", "S")), ("less", "", ("L", "AH0", "S")),
    ("man", "", ("M", "AH0", "N")), ("son", "", ("S", "AH0", "N")), ("ton", "", ("T", "AH0", "N")), ("ville", "", ("V", "IH2", "L")),
)
ALWAYS = 2


class Bits:
    """Bits, highest first, and numbers among them: Exp-Golomb codes."""

    def __init__(self, data=b""):
        self.text, self.at, self.parts = format(int.from_bytes(data, "big"), f"0{8 * len(data)}b"), 0, []

    def bits(self, n):
        self.at += n
        return int(self.text[self.at - n:self.at] or "0", 2)

    def number(self, k):
        zeros = self.text.index("1", self.at) - self.at
        self.at += zeros
        return (self.bits(zeros + 1) - 1 << k) + self.bits(k)

    def put(self, value, n):
        if n:
            self.parts.append(format(value, f"0{n}b"))
        self.at += n

    def put_number(self, value, k):
        head = (value >> k) + 1
        self.put(head, 2 * head.bit_length() - 1)
        self.put(value & (1 << k) - 1, k)

    def packed(self):
        text = "".join(self.parts)
        text += "0" * (-len(text) % 8)
        return int(text or "0", 2).to_bytes(len(text) // 8, "big")


def salted(word, salt):
    """The word's key, of 64 bits, the bucket in the highest: with an odd salt for which no two entries have the same one."""
    return xxhash.xxh3_64_intdigest(word.encode()) * salt & (1 << 64) - 1


def place_of(key, log_buckets):
    """(bucket, the bits behind it)"""
    return key >> 64 - log_buckets, key >> 64 - KEY_BITS - log_buckets & (1 << KEY_BITS) - 1


class Lexicon:
    """A lexicon's bytes."""

    def __init__(self, data):
        magic, version, n_classes, n_ranks, log_buckets, nodes, entries, self.n_entries, self.salt = HEAD.unpack_from(data)
        assert magic == MAGIC and version == VERSION and xxhash.xxh3_64_intdigest(data[:-8]) == int.from_bytes(data[-8:], "little")
        self.log_buckets, at = log_buckets, HEAD.size

        def table(kind, n):
            nonlocal at
            got = struct.unpack_from(f"<{n}{kind}", data, at)
            at += struct.calcsize(f"<{n}{kind}")
            return got

        self.root = table("I", len(LETTERS))
        self.bucket = table("I", (1 << log_buckets) + 1)
        self.first_rank = table("H", len(LETTERS) + 1)
        pairs = table("B", 2 * n_classes)
        self.ranks = table("B", n_ranks)
        self.classes = [tuple(name(b) for b in pairs[2 * i:2 * i + 2] if b) for i in range(n_classes)]
        self.nodes, self.entries = data[at:at + nodes], Bits(data[at + nodes:at + nodes + entries])
        assert at + nodes + entries + 8 == len(data)
        self.trees = {letter: self.tree(root) for letter, root in zip(LETTERS, self.root)}

    def tree(self, at):
        """(feature, values, tree for yes, tree for no), or a class number."""
        head, nodes = self.nodes[at], self.nodes
        if head >= 128:
            return head - 128
        feature, width, distance = head >> 2, mask_bytes(head >> 2) if head & 1 else 1, 2 if head & 2 else 1
        what, yes = int.from_bytes(nodes[at + 1:at + 1 + width], "little"), at + 1 + width + distance
        values = {v for v in range(8 * width) if what >> v & 1} if head & 1 else {what}
        return feature, values, self.tree(yes), self.tree(yes + int.from_bytes(nodes[yes - distance:yes], "little"))

    def leaf(self, letter, features):
        """The class that the letter's tree has for the features."""
        node = self.trees[letter]
        while not isinstance(node, int):
            node = node[2 if features[node[0]] in node[1] else 3]
        return node

    @functools.cache
    def entries_of(self, bucket):
        """{low bits of the key: what the file has of the word}: {letter's place: rank}, or a tuple of phonemes."""
        bits, found = self.entries, {}
        bits.at = self.bucket[bucket]
        while bits.at < self.bucket[bucket + 1]:
            low, n, place, ranks = bits.bits(KEY_BITS), bits.number(COUNT_BITS), -1, {}
            for _ in range(n + 1 if n < RAW else 0):
                place += 1 + bits.number(GAP_BITS)
                ranks[place] = bits.number(RANK_BITS)
            found[low] = tuple(name(bits.bits(8)) for _ in range(bits.number(RAW_BITS))) if n == RAW else ranks
        return found

    def entry(self, word):
        """None: there is none."""
        bucket, low = place_of(salted(word, self.salt), self.log_buckets)
        return self.entries_of(bucket).get(low)

    def corrected(self, word, ranks):
        """The word by trees, but for the letters that ranks say otherwise of."""
        walk, phones = Walk(word), []
        for i, letter in enumerate(word):
            if i in ranks:
                number = self.ranks[self.first_rank[LETTERS.index(letter)] + ranks[i]]
            else:
                number = self.leaf(letter, walk.features(i))
            walk.take(self.classes[number])
            phones += self.classes[number]
        return tuple(phones)

    def grown(self, word):
        """The word by trees alone. A word has one primary stress at least: its first vowel's, if no secondary one is there."""
        phones = list(self.corrected(word, {}))
        if not any(p[-1] == "1" for p in phones):
            weak = [i for i, p in enumerate(phones) if p[-1] == "2"] or [i for i, p in enumerate(phones) if p[-1] == "0"]
            if weak:
                phones[weak[0]] = phones[weak[0]][:-1] + "1"
        return tuple(phones)

    def fits(self, word, ranks):
        first = self.first_rank
        return all(i < len(word) and r < first[LETTERS.index(word[i]) + 1] - first[LETTERS.index(word[i])] for i, r in ranks.items())

    def known(self, word):
        """The word by its entry; None. What does not fit the word is another's, whose key is the same by chance."""
        got = self.entry(word) if len(word) <= WORD_MOST else None
        if isinstance(got, dict):
            return self.corrected(word, got) if self.fits(word, got) else None
        return got

    def derived(self, word):
        """The word by its stem and ending; None."""
        for k, (end, put, sound) in enumerate(ENDINGS if len(word) <= WORD_MOST else ()):
            stem = word[:-len(end)] + put
            if not word.endswith(end) or len(stem) < 2 or (k >= ALWAYS and (len(stem) < 3 or word.endswith("ss"))):
                continue
            phones = self.phonemes(stem) if k < ALWAYS else self.known(stem)
            if phones:
                return phones + tuple(sound(phones) if callable(sound) else sound)
        return None

    def phonemes(self, word):
        return self.known(word) or self.derived(word) or self.grown(word)


def keys(words, salt):
    return [salted(w, salt) for w in words]


def write(trees, ranks, classes, entries, salt=1):
    """The bytes of a file. trees: {letter: bytes}; ranks: {letter: class numbers}; classes: pairs of phonemes at most;
    entries: {word: {place: rank} or phonemes}; salt: the first that is tried."""
    log_buckets = max(0, (len(entries) // 16).bit_length() - 1)
    salt = next(s for s in range(salt, 1 << 20, 2) if len({key >> 64 - KEY_BITS - log_buckets for key in keys(entries, s)}) == len(entries))
    buckets, bits, at = [[] for _ in range(1 << log_buckets)], Bits(), []
    for word in sorted(entries):
        bucket, low = place_of(salted(word, salt), log_buckets)
        buckets[bucket].append((low, word))
    for bucket in buckets:
        at.append(bits.at)
        for low, word in sorted(bucket):
            put_entry(bits, low, entries[word])
    nodes = b"".join(trees[c] for c in LETTERS)
    packed, roots, firsts = bits.packed(), [], [0]
    for c in LETTERS:
        roots.append(sum(len(trees[d]) for d in LETTERS[:LETTERS.index(c)]))
        firsts.append(firsts[-1] + len(ranks[c]))
    data = HEAD.pack(MAGIC, VERSION, len(classes), firsts[-1], log_buckets, len(nodes), len(packed), len(entries), salt)
    data += struct.pack(f"<{len(roots)}I", *roots) + struct.pack(f"<{len(at) + 1}I", *at, bits.at)
    data += struct.pack(f"<{len(firsts)}H", *firsts)
    data += b"".join(bytes([*(code(p) for p in g), 0, 0][:2]) for g in classes) + b"".join(bytes(ranks[c]) for c in LETTERS)
    data += nodes + packed
    return data + struct.pack("<Q", xxhash.xxh3_64_intdigest(data))


def put_entry(bits, low, entry):
    bits.put(low, KEY_BITS)
    if isinstance(entry, tuple):
        bits.put_number(RAW, COUNT_BITS)
        bits.put_number(len(entry), RAW_BITS)
        for phone in entry:
            bits.put(code(phone), 8)
    elif not entry:
        bits.put_number(AS_GROWN, COUNT_BITS)
    else:
        bits.put_number(len(entry) - 1, COUNT_BITS)
        before = -1
        for place, rank in sorted(entry.items()):
            bits.put_number(place - before - 1, GAP_BITS)
            bits.put_number(rank, RANK_BITS)
            before = place
