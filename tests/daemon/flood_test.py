#!/usr/bin/env python3
"""flood_test.py: a stranger who knows everything about a job but its key floods a port (flood.py) while links are cut: they are back
as if he were not there. Over proxies that delay, so that a connection says nothing for half a round trip once it is there.

usage: flood_test.py [TEST...]      flood_long.py has more
"""
import os
import resource
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty import Storm  # noqa: E402
from flood import Flood  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

HAVE = []


def back(j, cuts):
    """How long a link takes to come back, the longest of some cuts: from the cut to bytes from both sides."""
    p, worst = j.proxies[1], 0.0
    for _ in range(cuts):
        before = p.count["connections"]
        p.reset()
        began = time.monotonic()
        j.until(lambda: p.count["connections"] > before, "a new connection")
        # A handshake is some 3 kB; more than that is the link's own.
        moved = p.count["bytes"]
        j.until(lambda: p.count["bytes"] > moved + 20000, "traffic")
        worst = max(worst, time.monotonic() - began)
    return worst


def flooded(rate, rtt, link, kinds=None, cuts=2, patience=None, ports=(1,)):
    """The same cuts without the flood and with it, in one job. Judged with patience: the machine has other things to do."""
    with Storm([HAVE[0], HAVE[-1]], link=f"reconnect: 8s, streams: 1, {link}", record=64, largest=20000) as j:
        j.running(1 << 16)
        for p in j.proxies:
            p.delay = rtt / 2
        free = back(j, cuts)
        pre = next(bytes(r) for p in j.proxies[1:] for r in p.recorded if len(r) == 64)
        how = {"kinds": kinds} if kinds else {}
        with Flood(j.ports[1], pre, rate, **how) as f:
            j.until(lambda: f.made > rate / 2, "a flood")
            busy, made = back(j, cuts), f.made
        text = j.good()
        print(f"  # {rate} connections a second, round trip {rtt:g} s, {link}: back after {free:.2f} s, under {made} connections after "
              f"{busy:.2f} s", flush=True)
        assert busy < free + (patience or 6), f"{busy:.1f} s instead of {free:.1f} s\n{text[-3000:]}"
        assert text.count("\n") < 600, f"too much is said:\n{text[-3000:]}"
        j.gone()


def tls_link_at_a_wide_area_comes_back():
    flooded(1000, 0.5, "security: tls")


def plain_link_at_a_wide_area_comes_back():
    flooded(1000, 0.5, "security: none")


def link_dialled_for_both_directions_comes_back():
    flooded(1000, 0.1, "dial: s0")


def replayed_preambles_win_nothing():
    flooded(500, 0.1, "security: tls", kinds=("replay", "half"))


def main(tests):
    HAVE.extend(f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm"))
    if not HAVE:
        print("no daemon has been built")
        return 77
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run([t for t in tests if not sys.argv[1:] or any(a in t[0] for a in sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main([(t.__name__, t) for t in (
        tls_link_at_a_wide_area_comes_back, plain_link_at_a_wide_area_comes_back, link_dialled_for_both_directions_comes_back,
        replayed_preambles_win_nothing)]))
