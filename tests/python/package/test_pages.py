"""A mapped file is run in place: see pages.py. tests/board.py asks the same of the boards' programs."""

import pages
from harness import LINNET


def test_nothing_is_packed_at_load(tmp_path):
    why = pages.fault([LINNET], tmp_path)
    assert why is None, why


def test_a_copy_is_found(tmp_path):
    """The measure itself: a process that reads the file into memory of its own does not pass."""
    reader = tmp_path / "reader.py"
    reader.write_text("import mmap, sys, time\n"
                      "file = open(sys.argv[2], 'rb')\n"
                      "view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
                      "own = bytearray(view[:])\n"
                      "time.sleep(1000)\n")
    why = pages.fault(["python3", str(reader)], tmp_path)
    assert why and "bytes of its own" in why
