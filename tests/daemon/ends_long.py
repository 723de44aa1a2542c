#!/usr/bin/env python3
"""ends_long.py: ends_test.py with thousands of faults. For `make check-long`.

usage: ends_long.py [TEST...]
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ends_test as ends  # noqa: E402
from sites import run  # noqa: E402


def main():
    if not ends.prepare():
        print("no daemon has been built")
        return 77
    only = sys.argv[1:]
    run([t for t in ends.tests_make(60) if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
