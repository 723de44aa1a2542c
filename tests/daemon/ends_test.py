#!/usr/bin/env python3
"""ends_test.py: connections break from a job's first byte on, and while it ends: the job ends well at all sites, and no site waits for
another one that could be reached. Some of each here; ends_long.py has thousands.

usage: ends_test.py [TEST...]
"""
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty import Storm  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

HAVE = []
# name, options of the links, number of sites
LINKS = [
    ("both_dial", "streams: 1", 2),
    ("plain", "streams: 2, security: none", 2),
    ("one_dials", "dial: s0, streams: 1", 2),
    ("three_sites", "streams: 1", 3),
]
FAULTS = ("reset", "close_all", "stall", "drop", "discard")


def strike(r, p, fault):
    if fault == "stall":
        p.stall(r.uniform(0.05, 0.5))
    elif fault in ("drop", "discard"):
        p.drop(fault == "discard")
    else:
        getattr(p, fault)()


def ends(link, sites, faults, seed, jobs):
    """Jobs that last no longer than it takes to say so, each with as many faults as there is time for, up to its end."""
    r, done = random.Random(seed), 0
    for n in range(jobs):
        mpi = [HAVE[(n + i) % len(HAVE)] for i in range(sites)]
        # With reconnect: 6s what is dropped in silence is noticed after 2 s. 0.1 s there and back: BYE takes its time.
        with Storm(mpi, link=f"reconnect: {6 if 'drop' in faults else 20}s, {link}, emulate: {{latency: 50ms}}",
                   largest=1000, seed=seed + n) as j:
            if n % 2 == 0:
                j.running(1 << 12)
            j.finish()
            struck = 0
            while j.p.poll() is None and struck < 12:
                struck += 1
                strike(r, r.choice(j.proxies), r.choice(faults))
                time.sleep(r.uniform(0.01, 0.6))  # how often the network breaks
            before = time.monotonic()
            status, text = j.end()
            assert status == 0 and ", 0 failed" in text, f"job {n}: exit status {status}; {j.seen()}\n{text[-6000:]}"
            # Whoever waited for one that had left would do so for reconnect: and more. Generous: others work here, too.
            assert time.monotonic() - before < 35, f"job {n} ended after {time.monotonic() - before:.0f} s\n{text[-3000:]}"
            j.gone()
            done += struck
    print(f"  # {jobs} jobs, {done} faults", flush=True)


def prepare():
    """False: there is nothing to test with."""
    HAVE.extend(f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm"))
    return bool(HAVE)


def tests_make(jobs):
    tests = []
    for i, (name, link, sites) in enumerate(LINKS):
        tests.append((f"cuts_{name}", lambda a=(link, sites), s=i: ends(*a, FAULTS[:3], 100 * s, jobs)))
        tests.append((f"silence_{name}", lambda a=(link, sites), s=i: ends(*a, FAULTS, 100 * s + 50, max(1, jobs // 2))))
    return tests


def main():
    if not prepare():
        print("no daemon has been built")
        return 77
    only = sys.argv[1:]
    run([t for t in tests_make(2) if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
