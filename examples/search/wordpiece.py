"""Texts as BERT's tokens: WordPiece (Wu et al., "Google's Neural Machine Translation System", 2016) as Devlin et al., "BERT", 2019, have
it for text without case."""

import unicodedata

LONGEST = 100  # characters of a word; longer ones are unknown


def is_mark(c):
    """What stands alone: ASCII's signs and Unicode's punctuation; ideographs, too."""
    return (33 <= ord(c) < 127 and not c.isalnum()) or unicodedata.category(c)[0] == "P" or 0x4e00 <= ord(c) <= 0x9fff


class Tokenizer:
    """Of a vocab.txt, a token a line; pieces that go on in a word begin with ##."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            self.ids = {line.rstrip("\n"): k for k, line in enumerate(lines)}
        missing = {"[CLS]", "[SEP]", "[UNK]", "[PAD]"} - self.ids.keys()
        if missing:
            raise ValueError(f"{path} is no vocabulary of BERT's: it has no {min(missing)}")

    def words(self, text):
        plain = unicodedata.normalize("NFD", text.lower())
        kept = (c for c in plain if unicodedata.category(c) not in ("Mn", "Cc", "Cf") or c.isspace())
        return "".join(f" {c} " if is_mark(c) else c for c in kept).split()

    def pieces(self, word):
        """The longest pieces first; none where some part of the word is not known."""
        found, at = [], 0
        while at < len(word) <= LONGEST:
            end = next((end for end in range(len(word), at, -1) if ("##" * (at > 0) + word[at:end]) in self.ids), None)
            if not end:
                break
            found.append(self.ids["##" * (at > 0) + word[at:end]])
            at = end
        return found if at == len(word) else [self.ids["[UNK]"]]

    def encode(self, text, most):
        """At most `most` ids, those of [CLS] and [SEP] among them."""
        inner = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.ids["[CLS]"], *inner[:most - 2], self.ids["[SEP]"]]
