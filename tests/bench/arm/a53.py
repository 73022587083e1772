"""Cycles of the Cortex-A53: two instructions a cycle, in order, every load a hit of the first cache, every branch foreseen.

Rules, by their sources:
- Of vector loads, "ARM A53/A55 dual issue" in ncnn's documentation: one of 128 bits takes two cycles and one of 64 bits one,
  in which no vector arithmetic issues, but an insertion into an element beside one of 64 bits; loads into general registers and
  updates of pointers cost multiply-adds nothing.
- Latencies, Arm's Cortex-A55 Software Optimization Guide, the A53's nearest relative with one: 4 cycles of vector arithmetic,
  8 of a multiply-add but 4 to the next that adds to the same register, 3 of loads.
- Widths of the units, GCC's cortex-a53.md: one load or store, one branch, one integer multiplication a cycle; vector arithmetic
  of 128 bits takes both halves of the vector unit, of 64 bits one.

The model knows no fetch, no caches and no limits of stores. Its figures rank versions of a loop; they are no clock."""

WIDTH = 2
HALVES = 2
LATENCY = {"integer": 1, "multiply": 3, "divide": 12, "load": 3, "vector_load": 4, "vector": 4, "branch": 1, "store": 1,
           "vector_store": 1}
MULTIPLY_ADD = 8
FORWARDED = 4  # earlier that the next instruction may add to the same register
DIVISION, ROOT = (18, 14), (17, 13)  # (latency, cycles that the unit is taken); 128 bits: twice
WARM, TIMED = 4, 12  # repetitions of a loop


class Pipeline:
    """State between instructions: what is ready when, what is taken until when."""

    def __init__(self):
        self.cycle = 0
        self.slots = WIDTH
        self.ready = {}
        self.accumulates = set()  # registers whose value comes from a multiply-add
        self.memory_free = self.vector_free = self.divider_free = 0
        self.begin_cycle(0)

    def begin_cycle(self, cycle):
        self.cycle, self.slots = cycle, WIDTH
        self.halves, self.branches, self.products = HALVES, 1, 1
        self.only_insertions = True  # of the vector arithmetic of this cycle
        self.narrow_load = False  # a vector load of 64 bits issued in this cycle

    def issue(self, i):
        earliest = max([self.ready.get(r, 0) for r in i.reads], default=0)
        if i.adds_to:
            earliest = max(earliest, self.sum_ready(i))
        if earliest > self.cycle:
            self.begin_cycle(earliest)
        while not self.fits(i):
            self.begin_cycle(self.cycle + 1)
        self.slots -= 1
        latency = self.take(i)
        for r in i.writes:
            self.ready[r] = self.cycle + latency
            (self.accumulates.add if i.adds_to else self.accumulates.discard)(r)

    def sum_ready(self, i):
        """When the register that an instruction adds to can be added to."""
        early = FORWARDED if i.adds_to in self.accumulates and i.op.startswith("f") else 0
        return self.ready.get(i.adds_to, 0) - early

    def fits(self, i):
        if not self.slots:
            return False
        if i.kind == "vector":
            beside_load = self.narrow_load and i.op == "ins"
            return self.halves >= 1 + i.full and (self.vector_free <= self.cycle or beside_load) and (
                self.divider_free <= self.cycle or not division(i))
        if i.kind.startswith("vector_"):
            alone = self.halves == HALVES or (self.only_insertions and not wide(i))
            return self.memory_free <= self.cycle and alone
        if i.kind in ("load", "store"):
            return self.memory_free <= self.cycle
        return {"branch": self.branches, "multiply": self.products}.get(i.kind, 1) > 0

    def take(self, i):
        """Takes what it needs of this cycle and the next ones; returns after how many its result is there."""
        if i.kind == "vector":
            self.halves -= 1 + i.full
            self.only_insertions &= i.op == "ins"
            return self.vector_latency(i)
        if i.kind.startswith("vector_"):
            taken = max(i.registers, 1) * (2 if wide(i) and i.kind == "vector_load" else 1)
            self.memory_free = self.vector_free = self.cycle + taken
            self.narrow_load = taken == 1
            return LATENCY[i.kind] + taken - 1
        if i.kind in ("load", "store"):
            self.memory_free = self.cycle + (2 if i.registers > 1 else 1)
        self.branches -= i.kind == "branch"
        self.products -= i.kind == "multiply"
        return LATENCY[i.kind]

    def vector_latency(self, i):
        latency, taken = division(i) or (0, 0)
        if latency:
            self.divider_free = self.cycle + taken
            return latency
        return MULTIPLY_ADD if i.adds_to and i.op.startswith("f") or i.op in ("fmadd", "fmsub") else LATENCY["vector"]


def wide(i):
    """ld1r and the like fill a vector from 64 bits or fewer."""
    return i.full and not i.op.endswith("r") or i.full and i.op in ("ldr", "str", "ldur", "stur")


def division(i):
    found = DIVISION if i.op == "fdiv" else ROOT if i.op == "fsqrt" else None
    return found and tuple(n * (1 + i.full) for n in found)


def loop_cycles(instructions):
    """Of one pass, when the instructions follow themselves over and over."""
    pipeline = Pipeline()
    for k in range(WARM + TIMED):
        if k == WARM:
            begin = pipeline.cycle
        for i in instructions:
            pipeline.issue(i)
    return (pipeline.cycle - begin) / TIMED


def schedule(instructions):
    """The cycle in which each issues, in a pass of a loop that is under way."""
    pipeline = Pipeline()
    for _ in range(WARM):
        issued = []
        for i in instructions:
            pipeline.issue(i)
            issued.append(pipeline.cycle)
    return [n - issued[0] for n in issued] if issued else []


def cycles_after(before, instructions):
    """Of one pass after the instructions `before`."""
    pipeline = Pipeline()
    for i in before:
        pipeline.issue(i)
    begin = pipeline.cycle
    for i in instructions:
        pipeline.issue(i)
    return pipeline.cycle - begin
