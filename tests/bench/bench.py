#!/usr/bin/env python3
"""bench.py: make bench: figures of the relay next to what was measured in the same run. Medians of --runs runs.

One-way time of 1 byte minus raw TCP over loopback; streaming as a share of raw TCP; what libpacx adds to a
message inside a site, and to calls of two ranks of one site in a world that spans sites. Prints a table; never fails because of a figure.
"""
import argparse
import os
import statistics
import subprocess


def values(cmd):
    env = dict(os.environ)
    out = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=300, env=env, check=True).stdout
    return {k: float(v) for k, v in (line.split() for line in out.splitlines() if len(line.split()) == 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--part", default="", help="onesite: only calls of two ranks of one site")
    args = parser.parse_args()
    b = args.build
    if args.part == "onesite":
        one_site(b, args.runs)
        return
    pairs = [p for p in ("openmpi+openmpi", "mpich+mpich", "openmpi+mpich")
             if all(os.path.exists(f"{b}/{f}/bench/latency") for f in p.split("+"))]
    seen = {}
    for _ in range(args.runs):
        raw = values([f"{b}/bench/rawtcp"])
        for p in pairs:
            v = values([f"{b}/bin/pacxrun", "-n", "1+1", "--mpi", p, "--", f"{b}/{{mpi}}/bench/latency"])
            seen.setdefault(p, []).append((raw, v))
    print(f"{'sites (1+1 ranks)':20} {'1 B one way':>12} {'raw TCP':>9} {'added':>9} {'1 MiB':>12} {'of raw':>7} {'16 MiB':>12} {'of raw':>7}")
    for p, runs in seen.items():
        med = lambda f: statistics.median(f(r, v) for r, v in runs)
        print(f"{p:20} {med(lambda r, v: v['lat_us']):9.1f} us {med(lambda r, v: r['lat_us']):6.1f} us"
              f" {med(lambda r, v: v['lat_us'] - r['lat_us']):6.1f} us"
              f" {med(lambda r, v: v['mbs_1m']):7.0f} MB/s {100 * med(lambda r, v: v['mbs_1m'] / r['mbs_1m']):5.0f} %"
              f" {med(lambda r, v: v['mbs_16m']):7.0f} MB/s {100 * med(lambda r, v: v['mbs_16m'] / r['mbs_16m']):5.0f} %")
    print(f"\n{'inside a site':20} {'native':>10} {'one-site comm':>14} {'spanning world':>15}   (ns added to a 1-byte message to self)")
    for f in ("openmpi", "mpich"):
        if not os.path.exists(f"{b}/{f}/bench/overhead"):
            continue
        rows = [values([f"{b}/bin/pacxrun", "-n", "1+1", "--mpi", f, "--", f"{b}/{{mpi}}/bench/overhead"]) for _ in range(args.runs)]
        med = lambda k: statistics.median(r[k] for r in rows)
        print(f"{f:20} {med('native_ns'):7.1f} ns {med('add_local_ns'):+11.1f} ns {med('add_world_ns'):+12.1f} ns")
    one_site(b, args.runs)
    rates(b, args.runs)


def one_site(b, runs):
    """Calls of two ranks: a native job of two, and 2+1 ranks whose third is idle, by both ways of making progress; in turns."""
    print(f"\n{'two ranks of a site':20} {'native':>10} {'hook':>10} {'added':>10} {'of native':>10} {'poll':>10} {'of native':>10}   (2+1 ranks, a receive from the third pending)")
    for f in ("openmpi", "mpich"):
        if not os.path.exists(f"{b}/{f}/bench/onesite"):
            continue
        seen = {"native": [], "hook": [], "poll": []}
        for _ in range(runs):
            seen["native"].append(values([f"mpirun.{f}", "-np", "2", f"{b}/{f}/bench/onesite"]))
            for way in ("hook", "poll"):
                seen[way].append(values(["env", f"PACX_PROGRESS={way}", f"{b}/bin/pacxrun", "-n", "2+1", "--mpi", f, "--",
                                         f"{b}/{{mpi}}/bench/onesite"]))
        for name in seen["native"][0]:
            native, hook, poll = (statistics.median(v[name] for v in seen[way]) for way in ("native", "hook", "poll"))
            print(f"{f + ' ' + name:24} {native:6.2f} us {hook:7.2f} us {hook - native:+7.2f} us {hook / native:8.2f} x {poll:7.2f} us {poll / native:8.2f} x")


def rates(b, runs):
    """Windows of 64 messages at 2+2 ranks, next to one flat Open MPI job over TCP loopback."""
    if not os.path.exists(f"{b}/openmpi/bench/rate"):
        return
    flat_cmd = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "tcp,self", "-np", "4", f"{b}/openmpi/bench/rate"]
    forms = [(f, link) for f in ("openmpi", "mpich") if os.path.exists(f"{b}/{f}/bench/rate") for link in ("tls", "none")]
    seen = {}
    for _ in range(runs):
        flat = values(flat_cmd)
        for f, link in forms:
            v = values([f"{b}/bin/pacxrun", "-n", "2+2", "--mpi", f, "--link", f"security: {link}", "--", f"{b}/{{mpi}}/bench/rate"])
            for size in v:
                seen.setdefault((f, link, size), []).append((v[size], v[size] / flat[size]))
    print("\nwindows of 64, 2+2 ranks, messages/s (share of flat Open MPI over TCP in the same run)")
    print(f"{'bytes':>8} " + " ".join(f"{f + ' ' + link:>22}" for f, link in forms))
    for size in sorted({k[2] for k in seen}, key=int):
        cells = [(statistics.median(x for x, _ in seen[f, link, size]), statistics.median(y for _, y in seen[f, link, size])) for f, link in forms]
        print(f"{size:>8} " + " ".join(f"{m:14.0f} ({r:5.2f})" for m, r in cells))


if __name__ == "__main__":
    main()
