#!/usr/bin/env python3
"""resume_long.py: resume_test.py with thousands of cuts: couplings of vendors, two and three sites, streams, who dials, security,
compression; each with its own mixture of faults. For `make check-long`.

usage: tests/daemon/resume_long.py [--times N] [--seed N] [--reconnect S] [TEST...]        N faults each (500), reconnect: S seconds (6; more on a
busy machine)
"""
import argparse
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty import Storm  # noqa: E402
from resume_test import predicted  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

CUTS = {"reset": 1, "close": 1}
MIXED = {"reset": 8, "close": 4, "flip": 4, "stall": 2, "drop": 0.1, "discard": 0.1}
# name, options of the links, faults, ranks of each site, number of sites
RUNS = [
    ("cuts_tls", "streams: 1", CUTS, 2, 2),
    ("cuts_plain", "streams: 1, security: none, compress: none", CUTS, 2, 2),
    ("cuts_four_streams", "streams: 4", CUTS, 1, 2),
    ("cuts_one_site_dials", "dial: s0, streams: 2", CUTS, 1, 2),
    ("cuts_three_sites", "streams: 2", CUTS, 1, 3),
    ("cuts_lz4", "compress: lz4", CUTS, 1, 2),
    ("cuts_zstd_plain", "compress: zstd, security: none", CUTS, 1, 2),
    ("mixed_tls", "streams: 2", MIXED, 1, 2),
    ("mixed_plain", "streams: 2, security: none", MIXED, 1, 2),
    ("predict_tls", "predict: always, streams: 1", CUTS, 1, 2),
    ("predict_plain_four_streams", "predict: always, streams: 4, security: none", MIXED, 1, 2),
    ("predict_two_gateways", "predict: always, streams: 2", MIXED, 2, 2),
    ("predict_three_sites_auto", "predict: always, streams: auto", MIXED, 1, 3),
    ("predict_learnt", "predict: always, streams: 2, emulate: {rate: 1.5MB/s}", CUTS, 1, 2),
    ("mixed_three_sites", "streams: auto", MIXED, 1, 3),
]
FAULTS = ("cut", "drop", "flip", "stall")


def survive(name, mpi, link, faults, ranks, times, seed, reconnect):
    predict, gateways = "predict:" in link, 2 if "gateways" in name else 1
    with Storm(mpi, ranks, f"reconnect: {reconnect}s, {link}", seed=seed, gateways=gateways, **(
            {"program": "steady", "largest": 300000} if predict else {})) as j:
        j.running()
        for i, p in enumerate(j.proxies):
            p.chaos(seed + i, faults, most=1 << 20, seconds=0.1)
        j.until(lambda: sum(j.count(f) for f in FAULTS) >= times, f"{times} faults", (60 + times) * reconnect // 6)
        text = j.good()
        if predict:
            print(f"  # {predicted(text, j.links())} segments referred to earlier ones")
        reconnects, lost = sum(l["reconnects"] for l in j.links()), j.count("late")
        assert reconnects >= lost, f"{reconnects} reconnects for {lost} cuts; {j.seen()}\n{text[-4000:]}"
        # Each end of a stream speaks about its first interruptions, then ever more seldom.
        streams = re.search(r"streams: (\d+)", link)
        most = 80 * gateways * (int(streams[1]) if streams else 8) * len(mpi) * (len(mpi) - 1)
        assert text.count("\n") < most, f"too much is said: {text.count(chr(10))} lines\n{text[-2000:]}"
        j.gone()
        print(f"  # {sum(j.count(f) for f in FAULTS)} faults, {reconnects} reconnects, {j.count('bytes') >> 20} MiB", flush=True)


def gigabytes(mpi):
    """A rank of long messages (2.2 GB in 16 MiB) begins many of them before it takes what its daemon has asked after each cut: no error of the peer."""
    with Storm(mpi, link="security: none, compress: none, reconnect: 60s", program="large", arguments=["2200000000", "allreduce_c"]) as j:
        j.running()
        while j.p.poll() is None:
            time.sleep(1.5)  # how often the network breaks
            for p in j.proxies:
                p.reset()
        status, text = j.end()
        assert status == 0 and ", 0 failed" in text and "malformed" not in text, f"exit status {status}; {j.seen()}\n{text[-4000:]}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reconnect", type=int, default=6)
    parser.add_argument("only", nargs="*")
    args = parser.parse_args()
    have = [f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm")]
    if not have:
        print("no daemon has been built")
        return 77
    tests = []
    for n, (name, link, faults, ranks, sites) in enumerate(RUNS):
        pairs = [[have[(n + i) % len(have)] for i in range(sites)]] + ([[have[n % len(have)]] * sites] if len(have) > 1 else [])
        for mpi in pairs:
            tests.append((f"{name}_{'_'.join(mpi)}",
                          lambda m=mpi, a=(link, faults, ranks), s=args.seed + 100 * n, w=name: survive(w, m, *a, args.times, s, args.reconnect)))
    tests += [("gigabytes", lambda: gigabytes(("mpich", "mpich")))] if "mpich" in have else []  # Open MPI 4.1 has no MPI_Allreduce_c
    run([t for t in tests if not args.only or any(o in t[0] for o in args.only)])


if __name__ == "__main__":
    sys.exit(main())
