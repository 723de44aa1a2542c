#!/usr/bin/env python3
"""where.py: where the time of a hop goes, from MPI_Send to MPI_Recv: processor time by part of the program, system calls and context
switches, of all six processes of a 1+1 job. Of calls and switches, what starting and ending cost is taken off: each size runs with many
hops and with few.

usage: where.py [--build DIR] [--link OPTIONS] [--mpi X+Y] [BYTES ...]

Needs perf, and the right to use it (as root, or kernel.perf_event_paranoid below 1). The processor time of a hop is more than the time
it takes, as waiting is polling: the ranks and the daemons of two sites share the processors.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

HZ = 4000
PARTS = [  # first match of "program, object"
    ("kernel", re.compile(r"kernel|\[vdso\]")),
    ("TLS", re.compile(r"libcrypto|libssl")),
    ("PACX", re.compile(r"libpacx|pacxd-|/pacxd")),
    ("native MPI", re.compile(r"libmpi|mca_|libopen-|libuc[a-z]|libuct|libmpich|libpmix|libevent")),
    ("copying, libc", re.compile(r"libc\.so|libc-")),
]


def perf(args, cmd):
    p = subprocess.run(["perf", *args, "--", *cmd], capture_output=True, text=True, timeout=300)
    if p.returncode != 0:
        sys.exit(f"where.py: {' '.join(cmd)}: {(p.stderr or p.stdout).strip()[-800:]}")
    return p


def profile(cmd):
    """Seconds of processor time by (program, part); microseconds of a hop."""
    seconds = collections.Counter()
    with tempfile.TemporaryDirectory() as d:
        p = perf(["record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", str(HZ), "-o", f"{d}/data"], cmd)
        us = float(re.search(r"^us ([\d.]+)", p.stdout, re.M)[1])
        between = re.search(r"^between ([\d.]+) ([\d.]+)", p.stdout, re.M)
        text = subprocess.run(["perf", "script", "-i", f"{d}/data", "-F", "comm,ip,sym,dso", "--time", f"{between[1]},{between[2]}"],
                              capture_output=True, text=True).stdout
    for line in text.splitlines():
        comm = line.split()[0]
        if comm == "swapper":
            continue
        who = "daemons" if comm.startswith("pacxd") else "ranks" if comm.startswith("hop") else "others"
        part = next((name for name, what in PARTS if what.search(line.rsplit("(", 1)[-1])), "others")
        seconds[who, part] += 1 / HZ
    return seconds, us


def counts(cmd):
    p = perf(["stat", "-x", ";", "-e", "context-switches,raw_syscalls:sys_enter"], cmd)
    return [int(line.split(";")[0]) for line in p.stderr.splitlines() if "context-switches" in line or "sys_enter" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--link", default="security: tls")
    parser.add_argument("--mpi", nargs="*", default=["openmpi", "mpich"])
    parser.add_argument("bytes", nargs="*", type=int, default=[1, 65536, 1 << 20, 16 << 20])
    args = parser.parse_args()
    if not shutil.which("perf"):
        print("where.py: there is no perf here (Debian: linux-perf)")
        return 0
    print(f"1+1 ranks, {args.link}; microseconds of processor time of a hop, system calls and context switches, all processes")
    names = [name for name, _ in PARTS] + ["others"]
    print(f"{'':9}{'bytes':>9}{'hop us':>9}  {'':8}" + "".join(f"{n:>14}" for n in names) + f"{'calls':>8}{'switches':>9}")
    for mpi in args.mpi:
        flavor = "{mpi}" if "+" in mpi else mpi
        for size in args.bytes:
            many = int(3e6 / (30 + size / 1000))  # about 3 s
            few = many // 10

            def cmd(hops):
                return [f"{args.build}/bin/pacxrun", "-n", "1+1", "--mpi", mpi, "--link", args.link, "--",
                        os.path.abspath(args.build) + f"/{flavor}/bench/hop", str(size), str(hops)]
            seconds, us = profile(cmd(many))
            n = [(x - y) / (many - few) for x, y in zip(counts(cmd(many)), counts(cmd(few)))]
            for who in ("ranks", "daemons"):
                each = [1e6 * seconds[who, name] / many for name in names]
                head = f"{mpi:9}{size:>9}{us:>9.1f}" if who == "ranks" else " " * 27
                print(f"{head}  {who:8}" + "".join(f"{v:14.1f}" for v in each) + (f"{n[1]:8.1f}{n[0]:9.1f}" if who == "ranks" else ""))
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
