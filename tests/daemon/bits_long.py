#!/usr/bin/env python3
"""bits_long.py: bits_test.py with every byte: of the first KiB of first connections, of the first 4 KiB of later ones. For `make
check-long`.

usage: bits_long.py [TEST...]
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bits_test as bits  # noqa: E402
from sites import run  # noqa: E402


def main():
    if not bits.prepare():
        print("no daemon has been built")
        return 77
    tests = []
    for link in ("none", "tls"):
        tests.append((f"first_connections_{link}", lambda l=link: bits.first_connections(
            f"security: {l}", bits.both_ways(range(1024 if l == "tls" else 320)))))
        tests.append((f"later_connections_{link}", lambda l=link: bits.later_connections(
            f"security: {l}", bits.both_ways(range(bits.FIRST)), 3000)))
    only = sys.argv[1:]
    run([t for t in tests if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
