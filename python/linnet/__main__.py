"""The command `linnet`: becomes the program that lies in the package."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).with_name("linnet")
    if not program.exists():
        sys.exit("linnet: this package is used from a checkout; the program is build/linnet there (make)")
    os.execv(program, ["linnet", *sys.argv[1:]])


if __name__ == "__main__":
    main()
