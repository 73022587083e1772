#!/usr/bin/env python3
"""trim.py LIST.h INFO.json TRIMMED.h ABSENT.h: the operator list with only those operators that a model has (make
OPS_FROM=model.lnt; INFO.json is what `linnet info model.lnt --json` prints).

The other rows keep their number only, the linker drops what nobody calls any more, and a file that uses them is refused.
ABSENT.h declares their functions for the files that still hold them, and says whether weights of 16 bits, of depthwise
convolutions and of convolutions in ONNX order are read, and whether there is text."""
import json
import re
import sys

source, info, trimmed, absent = sys.argv[1:]
model = json.load(open(info))
kept = set(model["operators"])
halves = any(model["packed_types"].get(name) for name in ("float16", "bfloat16"))
text = any(port["dtype"] == "string" for port in model["inputs"] + model["outputs"])
plain = model["plain_convolutions"] > 0
depthwise = plain or any(layout in model["packed_layouts"] for layout in ("2", "8", "11"))
row = re.compile(r'^(?:OP|PRODUCT)\((\d+), \d+, (\w+), \w+, "([^"]+)", (?:\w+, ){5}(\w+), (\w+), ')
functions = set()
with open(trimmed, "w") as out:
    out.write("#ifndef ABSENT\n#define ABSENT(id, ident)\n#endif\n")
    for line in open(source):
        found = row.match(line)
        if found and found[3] not in kept:
            functions |= {f"lnt_shape_{found[4]}", f"lnt_bind_{found[5]}"}
            line = f"ABSENT({found[1]}, {found[2]})\n"
        out.write(line)
with open(absent, "w") as out:
    out.write("#define LNT_TRIMMED 1\n")
    out.write(f'#define LNT_HAS_HALVES {int(halves)}\n#define LNT_HAS_DEPTHWISE {int(depthwise)}\n'
              f'#define LNT_HAS_PLAIN_CONV {int(plain)}\n#define LNT_HAS_TEXT {int(text)}\n#include "ops/op.h"\n')
    out.writelines(f"lnt_status {name}(lnt_site *site);\n" for name in sorted(functions))
