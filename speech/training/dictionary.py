"""dictionary.py: words of CMUdict (Carnegie Mellon University) and the phonemes it is written in."""
import re

# In the order of their numbers in a lexicon's file; C: speech/phones.c.
PHONES = ("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH").split()
VOWELS = {p for p in PHONES if p[0] in "AEIOU"}
NUMBER = {p: i for i, p in enumerate(PHONES)}


def bare(phone):
    """A phoneme without its stress."""
    return phone.rstrip("012")


def code(phone):
    """A phoneme as a byte: its number, and of a vowel 1, 2, 3 for stress 0, 1, 2."""
    return NUMBER[bare(phone)] * 4 + (1 + int(phone[-1]) if phone[-1].isdigit() else 0)


def name(byte):
    """The phoneme of a byte."""
    return PHONES[byte >> 2] + (str((byte & 3) - 1) if byte & 3 else "")


def read(path):
    """{word: phonemes}, of each word the first pronunciation. What the normalizer never writes is left out: words with
    hyphens, points and digits."""
    words = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            word, *phones = line.split("#")[0].split() or [""]
            if phones and re.fullmatch(r"[a-z']*[a-z][a-z']*", word):
                words.setdefault(word, tuple(phones))
    return words


def of_number(words, n, k):
    """Every n-th word in the order of the alphabet, beginning with number k."""
    return {w: words[w] for w in sorted(words)[k::n]}
