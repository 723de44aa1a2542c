#!/usr/bin/env python3
"""thin.py: whole exchanges (tests/bench/carry.c) over emulated links with `compress: auto` against `compress: none` in the same run: `make
bench-predict`. The ratio is of the medians of ROUNDS runs each, in an order that is drawn by lot. Where runs are short and their differences small, rounds
are many, and `none` runs twice in each: the last column is what the machine makes of nothing.

usage: thin.py --build B --carry PROGRAM [--part WORD] [--rounds N]     WORD: only links or series whose name has it
"""
import argparse
import random
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
    a.add_argument("--rounds", type=int, help="default: 1 over 10 Mbit/s, 21 over 1 Gbit/s")
    a = a.parse_args()
    print("link       messages          none s   auto s   none / auto   aim            none / none")
    for name, link, all_aim in LINKS:
        for what, series, aim in SERIES:
            if a.part not in name and a.part not in what:
                continue
            t = [[] for _ in range(3 if all_aim else 2)]  # of none, auto, none
            for _ in range(a.rounds or (21 if all_aim else 1)):
                for i in random.sample(range(len(t)), len(t)):
                    t[i].append(seconds(a.build, a.carry, link, "auto" if i == 1 else "none", series))
            none, auto, *again = map(statistics.median, t)
            goal = all_aim or aim
            verdict = "" if not goal or none / auto >= goal else "missed"
            print(f"{name:10} {what:16} {none:7.3f}  {auto:7.3f}  {none / auto:8.2f}      {f'{goal:.2f}' if goal else '   -'}   {verdict:9}"
                  f"{f'{none / again[0]:8.2f}' if again else ''}".rstrip(), flush=True)


main()
