#!/usr/bin/env python3
"""A second reader of .lnt files, written from FORMAT.md alone: prints what a file holds as JSON.

    python3 formats/dump_lnt.py MODEL.lnt [--all]

The keys are those of `linnet info --json` that come from the file alone; --all adds values, constants and
nodes. Hashes are checked if the Python package xxhash is installed. Exit status 1: the file is damaged.
"""
import argparse
import json
import pathlib
import re
import struct
import sys

try:
    import xxhash
except ImportError:
    xxhash = None

NONE = 0xFFFFFFFF
MAGIC = b"\x89LNT\r\n\x1a\n"
SECTIONS = {  # kind: (name, record format)
    1: ("strings", None),
    3: ("constants", "<IIQQQ"),
    4: ("packed", "<HHIIIIII3I3I3I"),
    5: ("nodes", "<HHIIHHHHIIIII"),
    6: ("operands", "<I"),
    7: ("attributes", "<IIIIQ"),
    8: ("attribute data", None),
    9: ("programs", "<IHBBBB4s18s"),
    10: ("instructions", "<BB3s3s2f"),
    11: ("subgraphs", "<IIIIIIII"),
    12: ("symbols", "<IIIIqQ"),
    13: ("states", "<IIII"),
    14: ("metadata", "<II"),
    16: ("tensors", None),
    17: ("values", "<IBBBBIII"),
    18: ("extents", "<q"),
    19: ("golden vectors", "<IIHHIHHIIfQQ"),
    20: ("attachments", "<IIQQ"),
    21: ("attached bytes", None),
}
DTYPES = {0: "undefined", 1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
          8: "string", 9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64", 16: "bfloat16"}
SECTION_REQUIRED = 1
ATTR_INT, ATTR_FLOAT, ATTR_STRING, ATTR_INTS, ATTR_FLOATS, ATTR_STRINGS, ATTR_TENSOR, ATTR_GRAPH = range(1, 9)
STORED_READY, STORED_PLAIN, STORED_BYTES, STORED_HALF, STORED_BFLOAT16 = range(5)  # what the bytes of a constant are in the file
BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}


class Damaged(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Damaged(message)


def round_up(n, unit=64):
    return (n + unit - 1) // unit * unit


def packed_bytes(layout, _source, groups, _phases, taps, k, n, gates, *rest):
    """Size of a packed constant: FORMAT.md, "Packed tensors"."""
    if layout in (1, 3, 7, 9, 10, 12):
        return (4 if layout <= 3 else 2) * groups * gates * k * round_up(n, 16)
    if layout in (2, 8, 11):
        return (4 if layout <= 3 else 2) * k * round_up(groups * n, 16)
    if layout in (4, 5):
        return 4 * groups * gates * (taps * round_up(k // taps, 4) // 4 + 1) * round_up(n, 16)
    if layout == 6:
        return (taps + 4) * round_up(groups * n, 16)
    check(layout == 16, f"layout {layout} is unknown")
    line = next((extent for extent in reversed(rest[:3]) if extent != 1), 1)
    return 4 * (taps // line * round_up(line * (k // taps), 4) // 4 + 1) * round_up(n, 16)


def check_hash(data, expected, what):
    if xxhash:
        check(xxhash.xxh3_64_intdigest(data) == expected, f"{what}: hash differs")


class File:
    def __init__(self, data):
        self.data = data
        check(len(data) >= 64 and data[:8] == MAGIC, "header: not a .lnt file")
        self.version, n, size, root = struct.unpack_from("<IIQQ", data, 8)
        check(self.version == 0, f"header: version {self.version}")
        check(size == len(data), f"header: {size} bytes expected, {len(data)} found")
        check(n <= 64 and 64 + 32 * n <= size, "header: too many sections")
        check_hash(data[:24] + bytes(8) + data[32:64 + 32 * n], root, "header")
        self.sections = [struct.unpack_from("<IIQQQ", data, 64 + 32 * i) for i in range(n)]
        self.records = {name: [] for name, _ in SECTIONS.values()}
        self.raw = {name: b"" for name, _ in SECTIONS.values()}
        end = 64 + 32 * n
        for kind, flags, offset, length, _ in self.sections:
            check(kind in SECTIONS or not flags & SECTION_REQUIRED, f"section of kind {kind} is unknown and required")
            check(offset == round_up(end) and offset + length <= size, f"section of kind {kind}: misplaced")
            check(not any(data[end:offset]), f"padding before {offset} is not 0")
            end = offset + length
            if kind in SECTIONS:
                self.take(*SECTIONS[kind], data[offset:end])
        check(size == round_up(end) and not any(data[end:]), "padding at the end of the file")
        self.check_hashes()

    def take(self, name, layout, data):
        self.raw[name] = data
        if layout:
            check(len(data) % struct.calcsize(layout) == 0, f"{name} section: no whole number of records")
            self.records[name] = list(struct.iter_unpack(layout, data))

    def check_hashes(self):
        tensors = self.raw["tensors"]
        for i, (_, _, offset, length, hash_) in enumerate(self.records["constants"]):
            check(offset % (16 if length <= 16 else 64) == 0 and offset + length <= len(tensors), f"constant {i}: misplaced")
            check_hash(tensors[offset:offset + length], hash_, f"constant {i}")
        for kind, _, offset, length, hash_ in self.sections:
            data = self.data[offset:offset + length]
            if SECTIONS.get(kind, ("",))[0] == "tensors":
                data = b"".join(struct.pack("<Q", c[4]) for c in self.records["constants"])
            check_hash(data, hash_, f"section of kind {kind}")

    def string(self, offset):
        strings = self.raw["strings"]
        check(offset < len(strings), f"string {offset} lies outside")
        return strings[offset:strings.index(b"\0", offset)].decode("utf-8", "replace")

    def symbol_name(self, extent):
        return self.string(self.records["symbols"][-extent - 2][0]) if extent <= -2 else None

    def value(self, number):
        name, dtype, rank, order, flags, constant, stored, first = self.records["values"][number]
        extents = [self.records["extents"][first + i][0] for i in range(rank)] if rank <= 8 else []
        names = [self.symbol_name(d) for d in extents]
        dims = [max(d, -1) for d in extents] if rank <= 8 else None
        return {"name": self.string(name), "dtype": DTYPES[dtype], "dims": dims, "dim_names": names,
                "order": order, "flags": flags, "constant": None if constant == NONE else constant,
                "stored": stored}

    def operands(self, first, n):
        return [None if v == NONE else v for (v,) in self.records["operands"][first:first + n]]

    def port(self, number, state, is_input):
        value = self.value(number)
        names = value["dim_names"]
        for axis, extent in enumerate(value["dims"] or []):
            if is_input and extent < 0 and names[axis] is None:
                names[axis] = f"{value['name']}:{axis}"
        return {key: value[key] for key in ("name", "dtype", "dims", "dim_names")} | {"state": state}

    def attribute(self, number):
        name, type_, count, _, data = self.records["attributes"][number]
        pool = self.raw["attribute data"]
        if type_ in (ATTR_INT, ATTR_INTS):
            content = struct.unpack_from(f"<{count}q", pool, data)
        elif type_ in (ATTR_FLOAT, ATTR_FLOATS):
            content = struct.unpack_from(f"<{count}f", pool, data)
        elif type_ == ATTR_STRING:
            content = [self.raw["strings"][data:data + count].decode("utf-8", "replace")]
        elif type_ == ATTR_STRINGS:
            content = [self.string(s) for s in struct.unpack_from(f"<{count}I", pool, data)]
        else:
            content = [data]
        return self.string(name), content[0] if type_ in (ATTR_INT, ATTR_FLOAT, ATTR_STRING, ATTR_TENSOR, ATTR_GRAPH) else list(content)


def operator_names():
    """Number -> name, from the rows of ops/list.h if it is near; else numbers stand for themselves."""
    path = pathlib.Path(__file__).resolve().parent.parent / "ops" / "list.h"
    text = path.read_text() if path.exists() else ""
    rows = re.findall(r'^(?:OP|PRODUCT)\((\d+),\s*\d+,\s*\w+,\s*[^,]+,\s*"([^"]+)"', text, re.M)
    return {int(number): name for number, name in rows}


def plain_convolutions(f, names):
    """Conv nodes whose weights are no packed constant."""
    packed = {value for value, record, *_ in f.records["constants"] if record != NONE}
    weights = [f.operands(first, n_in)[1] for op, _, _, first, n_in, *_ in f.records["nodes"] if names.get(op) == "Conv"]
    return sum(w is not None and w not in packed for w in weights)


def summary(f):
    operators = {}
    names = operator_names()
    for node in f.records["nodes"]:
        name = names.get(node[0], f"#{node[0]}")
        operators[name] = operators.get(name, 0) + 1
    _, _, _, first, n_in, n_out, *_ = f.records["subgraphs"][0]
    states = f.records["states"]
    sizes, types, layouts = [0, 0], {}, {}
    for _, packed, _, length, _ in f.records["constants"]:
        sizes[packed != NONE] += length
        if packed != NONE:
            layout = f.records["packed"][packed][0]
            element = "float" if layout <= 3 else "float16" if 7 <= layout <= 9 else "bfloat16" if 10 <= layout <= 12 else "int8"
            types[element] = types.get(element, 0) + length
            layouts[layout] = layouts.get(layout, 0) + length
    return {
        "format_version": f.version,
        "file_bytes": len(f.data),
        "inputs": [f.port(v, any(s[1] == i for s in states), True)
                   for i, v in enumerate(f.operands(first, n_in))],
        "outputs": [f.port(v, any(s[0] == i for s in states), False)
                    for i, v in enumerate(f.operands(first + n_in, n_out))],
        "sections": [{"kind": kind, "name": SECTIONS.get(kind, ("unknown",))[0], "offset": offset, "bytes": length,
                      "hash": f"{hash_:016x}"} for kind, _, offset, length, hash_ in f.sections],
        "constant_bytes": sizes[0],
        "packed_bytes": sizes[1],
        "packed_types": types,
        "packed_layouts": {str(layout): layouts[layout] for layout in sorted(layouts)},
        **{key: len(f.records[key]) for key in ("values", "constants", "nodes", "programs", "subgraphs")},
        "golden_cases": len({g[0] for g in f.records["golden vectors"]}),
        "plain_convolutions": plain_convolutions(f, names),
        "operators": operators,
        "symbols": [{"name": f.string(s[0]), "kind": s[1], "bound": s[4]} for s in f.records["symbols"]],
        "states": [{"output": s[0], "input": s[1]} for s in states],
        "attachments": {f.string(name): size for name, _, _, size in f.records["attachments"]},
        "metadata": {f.string(key): f.string(text) for key, text in f.records["metadata"]},
    }


def details(f):
    names = operator_names()
    nodes = []
    for op, version, name, first, n_in, n_out, n_program, n_attrs, first_attr, program, flags, *_ in f.records["nodes"]:
        nodes.append({"op": names.get(op, f"#{op}"), "version": version, "name": f.string(name),
                      "inputs": f.operands(first, n_in), "outputs": f.operands(first + n_in, n_out),
                      "program": None if program == NONE else program, "program_inputs": n_program, "flags": flags,
                      "attributes": dict(f.attribute(a) for a in range(first_attr, first_attr + n_attrs))})
    constants = []
    for number, packed, offset, length, _ in f.records["constants"]:
        value = f.value(number)
        if packed != NONE and value["stored"] == STORED_READY:
            check(packed_bytes(*f.records["packed"][packed]) == length, f"constant {value['name']}: has {length} bytes")
        else:
            dtype, count = f.records["values"][number][1], 1
            for extent in value["dims"]:
                count *= extent
            expected = {STORED_BYTES: (count + 3) // 4 * 4 + 4 * (value["dims"] or [0])[0], STORED_HALF: 2 * count,
                        STORED_BFLOAT16: 2 * count}
            expected = expected.get(value["stored"], count * BYTES[dtype])
            check(expected == length, f"constant {value['name']}: has {length} bytes")
        constants.append({"value": number, "packed": None if packed == NONE else packed, "offset": offset,
                          "bytes": length})
    return {"value_list": [f.value(i) for i in range(len(f.records["values"]))], "constant_list": constants,
            "node_list": nodes, "subgraph_list": [{"name": f.string(g[0]), "first_node": g[1], "nodes": g[2],
                                                   "inputs": f.operands(g[3], g[4]),
                                                   "outputs": f.operands(g[3] + g[4], g[5])}
                                                  for g in f.records["subgraphs"]]}


def main():
    parser = argparse.ArgumentParser(description="Print what a .lnt file holds, as JSON.")
    parser.add_argument("file")
    parser.add_argument("--all", action="store_true", help="values, constants and nodes, too")
    given = parser.parse_args()
    try:
        f = File(pathlib.Path(given.file).read_bytes())
        result = summary(f) | (details(f) if given.all else {})
    except (Damaged, struct.error, IndexError, KeyError, ValueError) as fault:
        sys.exit(f"{given.file}: damaged: {fault}")
    json.dump(result, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
