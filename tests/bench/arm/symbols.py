"""Names of the functions of a program, by address."""

import bisect
import re
import subprocess

READELF = "aarch64-linux-gnu-readelf"  # reads what is for 32-bit ARM, too


class Symbols:
    def __init__(self, program):
        listing = subprocess.run([READELF, "-sW", str(program)], capture_output=True, text=True, check=True).stdout
        source, found = "", {}
        for line in listing.splitlines():
            m = re.match(r"\s*\d+: ([0-9a-f]+)\s+\d+ (\w+)\s+(\w+)\s+\w+\s+(\S+) ?(\S*)", line)
            if not m:
                continue
            address, kind, binding, section, name = m.groups()
            if kind == "FILE":
                source = name
            elif kind in ("FUNC", "NOTYPE") and section != "UND" and name and name[0] != "$":
                known = kind == "FUNC" or int(address, 16) not in found
                if known:
                    found[int(address, 16) & ~1 if kind == "FUNC" else int(address, 16)] = (
                        name, source if binding == "LOCAL" else "")
        for name, start in self.sections(program):
            found.setdefault(start, (name, ""))
        self.starts = sorted(found)
        self.names = [found[a] for a in self.starts]

    @staticmethod
    def sections(program):
        """Of code: what has no symbols of its own, as jumps to functions chosen at start, is called by its section."""
        listing = subprocess.run([READELF, "-SW", str(program)], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"\] (\S+)\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ \S+ +AX", listing)
        return [(name, int(start, 16)) for name, start in found]

    def at(self, address):
        """A function's name and, of one that only its file knows, the file."""
        k = bisect.bisect_right(self.starts, address) - 1
        return self.names[k] if k >= 0 else ("?", "")
