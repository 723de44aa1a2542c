#!/usr/bin/env python3
"""thermo.py: compare the thermo tables of LAMMPS runs: thermo.py [--same N] PLAIN... COUPLED

The last file must agree with the first line by line, to the printed digits, or to the largest difference that the
plain runs before it show among themselves. Exit status 1 and the differing lines otherwise.
"""
import sys


def table(path):
    rows, inside = [], False
    for line in open(path, errors="replace"):
        words = line.split()
        if words[:1] == ["Step"]:
            inside = True
        elif line.startswith("Loop time"):
            inside = False
        elif inside and words:
            try:
                rows.append([float(w) for w in words])
            except ValueError:
                pass
    return rows


def spread(a, b):
    return max((abs(x - y) / max(1.0, abs(x)) for r, s in zip(a, b) for x, y in zip(r, s)), default=0.0)


def main():
    *plain, coupled = [table(p) for p in sys.argv[1:]]
    if not plain or not plain[0] or any(len(t) != len(coupled) for t in plain):
        print(f"thermo: tables of {[len(t) for t in plain]} and {len(coupled)} lines")
        return 1
    allowed = max((spread(plain[0], p) for p in plain[1:]), default=0.0)
    found = spread(plain[0], coupled)
    print(f"thermo: {len(coupled)} lines, largest relative difference {found:g} (plain runs among themselves: {allowed:g})")
    if found > allowed:
        for r, s in zip(plain[0], coupled):
            if r != s:
                print("  plain  ", r)
                print("  coupled", s)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
