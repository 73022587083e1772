#!/usr/bin/env python3
"""bundle.py PROGRAM MODEL.lnt -o FILE: program and model in one file.

    program | padding | model, at a multiple of 65536 | offset, bytes: uint64 little-endian | magic

Whatever opens the file as a model finds the one inside; `FILE run` and the other verbs use it where no model is named."""
import argparse
import pathlib
import struct

ALIGN = 65536
MAGIC = b"\x89LNTBNDL"

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("program", type=pathlib.Path)
options.add_argument("model", type=pathlib.Path)
options.add_argument("-o", dest="to", type=pathlib.Path, required=True)
given = options.parse_args()

program, model = given.program.read_bytes(), given.model.read_bytes()
offset = (len(program) + ALIGN - 1) // ALIGN * ALIGN
part = given.to.with_name(given.to.name + ".part")
part.write_bytes(program.ljust(offset, b"\0") + model + struct.pack("<QQ", offset, len(model)) + MAGIC)
part.chmod(0o755)
part.rename(given.to)
print(f"{given.to}: {given.to.stat().st_size} bytes")
