#!/usr/bin/env python3
"""thin.py: whole exchanges (tests/bench/carry.c) over emulated links with `compress: auto` against `compress: none` in the same run: `make
bench-predict`. Each pair of times is of runs one after the other; the ratio is of the medians of ROUNDS each, which are many where runs are short.

usage: thin.py --build B --carry PROGRAM [--part WORD] [--rounds N]     WORD: only links or series whose name has it
"""
import argparse
import re
import statistics
import subprocess
import sys

# Series of series.h and how many times as fast as none they are to be: over 10 Mbit/s and 35 ms there and back, and over 1 Gbit/s.
SERIES = (("first sweeps", 0, 1.6), ("near convergence", 1, 3.0), ("heat", 2, None), ("cavity", 3, None), ("melt", 5, 1.4), ("solid", 6, 1.4),
          ("smooth fields", 8, 1.8), ("random", 9, 1 / 1.02))
LINKS = (("10 Mbit/s", "emulate: {latency: 17.5ms, rate: 1.25MB/s}", None), ("1 Gbit/s", "emulate: {latency: 0.1ms, rate: 125MB/s}", 1 / 1.02))


def seconds(build, carry, link, compress, series):
    p = subprocess.run([build + "/bin/pacxrun", "-n", "1+1", "--link", f"{link}, compress: {compress}, streams: 1", "--", carry, str(series)],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, text=True)
    m = re.search(r" in ([0-9.]+) s, 0 wrong", p.stdout)
    if p.returncode or not m:
        sys.exit(f"thin.py: series {series}, {compress}: status {p.returncode}: {p.stdout}")
    return float(m.group(1))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default="build")
    a.add_argument("--carry", required=True)
    a.add_argument("--part", default="")
    a.add_argument("--rounds", type=int, help="default: 1 over 10 Mbit/s, 9 over 1 Gbit/s")
    a = a.parse_args()
    print("link       messages          none s   auto s   none / auto   aim")
    for name, link, all_aim in LINKS:
        for what, series, aim in SERIES:
            if a.part not in name and a.part not in what:
                continue
            t = {c: [] for c in ("none", "auto")}
            for _ in range(a.rounds or (9 if all_aim else 1)):
                for c in t:
                    t[c].append(seconds(a.build, a.carry, link, c, series))
            none, auto = (statistics.median(t[c]) for c in ("none", "auto"))
            goal = all_aim or aim
            print(f"{name:10} {what:16} {none:7.3f}  {auto:7.3f}  {none / auto:8.2f}      {f'{goal:.2f}' if goal else '   -'}"
                  f"{'' if not goal or none / auto >= goal else '   missed'}", flush=True)


main()
