"""letters.py: what speech/letters.c has to know of Unicode's characters below U+10000, as C, from Python's own tables."""
import sys
import unicodedata

LAST = 0xFFFF
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic


def decompositions():
    """(character, first, second or 0) of canonical decompositions, one step of them."""
    for c in range(LAST + 1):
        parts = unicodedata.decomposition(chr(c)).split()
        if parts and not parts[0].startswith("<") and c not in HANGUL and all(int(p, 16) <= LAST for p in parts):
            yield c, *(int(p, 16) for p in parts + ["0"] * (2 - len(parts)))


def runs(values):
    """(first, last, value) of neighbors with the same value other than 0."""
    begin = 0
    for c in range(1, LAST + 2):
        now = values[c] if c <= LAST else None
        if now != values[begin]:
            if values[begin]:
                yield begin, c - 1, values[begin]
            begin = c


def lower():
    """(first, last, step, distance): capital letters and how far behind them the small ones are."""
    pairs = [(c, ord(chr(c).lower()) - c) for c in range(LAST + 1) if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)]
    rows = []
    for c, distance in pairs:
        if rows and rows[-1][3] == distance and c - rows[-1][1] in (1, 2) and rows[-1][2] in (0, c - rows[-1][1]):
            rows[-1][2] = c - rows[-1][1]
            rows[-1][1] = c
        else:
            rows.append([c, c, 0, distance])
    return [(first, last, step or 1, distance) for first, last, step, distance in rows]


def table(kind, name, rows):
    print(f"static const {kind} {name}[] = {{")
    for row in rows:
        print("    {" + ", ".join(str(x) for x in row) + "},")
    print("};")


def main():
    table("decomposition", "decompositions", decompositions())
    table("letters_class", "classes", runs([unicodedata.combining(chr(c)) for c in range(LAST + 1)]))
    table("letters_lower", "capitals", lower())
    return 0


sys.exit(main())
