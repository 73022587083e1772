"""Modelled cycles of what ran: blocks joined to the straight pieces of code and loops they are of, each piece's cycles times
how often it ran."""

import dataclasses

import a53
import a64
import mca

COVER = 0.995  # of the instructions that ran; the rest is taken to be as fast as these
MOST = 1500  # pieces
ALWAYS = 0.95  # of the times: one block follows another as if there were no border


@dataclasses.dataclass
class Piece:
    blocks: list
    count: float
    looped: float  # part of the times that it follows itself
    entry: object  # the block that comes before it most often besides itself, or None
    texts: list = dataclasses.field(default_factory=list)
    cycles: float = None

    @property
    def length(self):
        return sum(len(b.code) for b in self.blocks)

    @property
    def instructions(self):
        return self.count * self.length


def successors(blocks):
    """Of each block the one that follows it, and is only entered from it, as good as always."""
    found = {}
    for b in blocks.values():
        for key, n in b.before.items():
            if key != b.key and key in blocks and n >= ALWAYS * max(b.count, blocks[key].count):
                found[key] = b.key
    return found


def chains(blocks):
    """Lists of blocks that always run one after another; a loop of several begins at its lowest address."""
    after = successors(blocks)
    entered = set(after.values())
    left = dict(sorted(blocks.items()))
    for start in [k for k in left if k not in entered] + list(left):
        chain = []
        while start in left:
            chain.append(left.pop(start))
            start = after.get(start)
        if chain:
            yield chain


def pieces(blocks):
    by_key = {b.key: b for b in blocks}
    found = []
    for chain in chains(by_key):
        count = sum(b.instructions for b in chain) / sum(len(b.code) for b in chain)
        head, tail = chain[0], chain[-1]
        again = min(head.before.get(tail.key, 0.0) / head.count, 1.0)
        others = [(n, key) for key, n in head.before.items() if key != tail.key and key in by_key]
        found.append(Piece(chain, count, again, by_key[max(others)[1]] if others else None))
    return sorted(found, key=lambda p: -p.instructions)


def hottest(found):
    """Those that make up COVER of what ran."""
    total, seen, kept = sum(p.instructions for p in found), 0.0, []
    for p in found[:MOST]:
        kept.append(p)
        seen += p.instructions
        if seen >= COVER * total:
            break
    return kept


def code_of(block):
    return bytes.fromhex("".join(block.code))


def fill_texts(found):
    texts = a64.disassemble([code_of(b) for p in found for b in p.blocks])
    at = 0
    for p in found:
        p.texts = [t for block in texts[at:at + len(p.blocks)] for t in block]
        at += len(p.blocks)


def in_order(found):
    entries = [p.entry for p in found if p.entry]
    texts = dict(zip(map(id, entries), a64.disassemble([code_of(b) for b in entries]))) if entries else {}
    for p in found:
        code = [a64.parse(t) for t in p.texts]
        entry = [a64.parse(t) for t in texts[id(p.entry)]] if p.entry else []
        p.cycles = 0.0
        if p.looped:
            p.cycles += p.looped * a53.loop_cycles(code)
        if p.looped < 1:
            p.cycles += (1 - p.looped) * a53.cycles_after(entry, code)


def model(core, blocks, memory):
    """The hottest pieces with their cycles on a core, and the cycles of all that ran."""
    found = hottest(pieces(blocks))
    fill_texts(found)
    if core.model == "a53":
        in_order(found)
    else:
        for p, n in zip(found, mca.cycles(core.model, [p.texts for p in found], memory)):
            p.cycles = n
    known = [p for p in found if p.cycles is not None]
    covered = sum(p.instructions for p in known)
    total = sum(b.instructions for b in blocks)
    return found, sum(p.count * p.cycles for p in known) * total / covered if covered else 0.0


def multiply_adds(piece):
    return sum(a64.parse(t).multiply_adds for t in piece.texts)
