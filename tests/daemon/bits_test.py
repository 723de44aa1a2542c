#!/usr/bin/env python3
"""bits_test.py: one damaged bit, wherever it is in the first 4 KiB of a connection and in whatever direction, costs the connection and
never the job: of the first connections of a job, which nothing has proved yet, and of those of a link that has been up. A sample here;
bits_long.py has every byte.

usage: bits_test.py [TEST...]
"""
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty import Storm  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

FIRST = 4096
STREAMS = 4
# Preamble; headers and bodies of HELLO, both ways (TLS: its first records).
BYTES = [0, 9, 10, 11, 12, 14, 16, 20, 24, 40, 63, 64, 66, 67, 68, 71, 80, 110, 130, 144, 148, 150, 154, 158, 180, 204, 220, 240]
PAIR = None


def first_connections(link, flips):
    """Fresh jobs, each with a bit in each of its first connections."""
    while flips:
        some, flips = flips[:2 * STREAMS], flips[2 * STREAMS:]
        plans = [iter(some[i::2]) for i in range(2)]
        with Storm(PAIR, link=f"reconnect: 20s, streams: {STREAMS}, {link}", largest=20000, plans=plans) as j:
            j.running(1 << 15)
            # Some connections are over before that byte.
            j.until(lambda: j.count("flip") >= len(some) // 2, f"{len(some) // 2} of the flips {some}")
            assert j.good(), some
            j.gone()


class Plan:
    """Flip, in turn with connections that are left alone, so that something goes through."""

    def __init__(self, flips):
        self.flips, self.turn, self.lock, self.left = iter(flips), False, threading.Lock(), len(flips)

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            self.turn = not self.turn
            if not self.turn:
                return (0, None, 0)
            self.left -= 1
            return next(self.flips, (0, None, 0))


def later_connections(link, flips, seconds=100):
    """One job whose connections are cut again and again, each second one with a damaged bit."""
    plans = [Plan(flips[i::2]) for i in range(2)]
    with Storm(PAIR, link=f"reconnect: 20s, streams: {STREAMS}, compress: none, {link}", largest=20000, plans=plans) as j:
        # Every connection ends soon, but not before it has been of use: the longest frame is through with its second TLS record of
        # 16 KiB, and a reset would take from a slow reader what has arrived.
        for p in j.proxies:
            p.chaos(1, {"close": 1}, most=1)
            p.next_fate = lambda c: setattr(c, "fate", (12 * FIRST, "close", None))
        j.until(lambda: all(p.left <= 0 for p in plans), f"{len(flips)} flips", seconds)
        for p in j.proxies:
            p.next_fate = lambda c: None
        j.good()
        assert j.count("flip") >= len(flips) // 2, j.seen()
        j.gone()


def both_ways(offsets):
    return [(way, at, (at + way) % 8) for at in offsets for way in (0, 1)]


def first_connections_plain():
    first_connections("security: none", both_ways(BYTES[::2]))


def first_connections_tls():
    first_connections("security: tls", both_ways(BYTES[1::4]))


def later_connections_plain():
    later_connections("security: none", both_ways(BYTES + list(range(300, FIRST, 211))))


def later_connections_tls():
    later_connections("security: tls", both_ways(BYTES[::2] + list(range(300, FIRST, 311))))


def prepare():
    """False: there is nothing to test with."""
    global PAIR
    have = [f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm")]
    PAIR = [have[0], have[-1]] if have else None
    return PAIR is not None


def main():
    if not prepare():
        print("no daemon has been built")
        return 77
    only = sys.argv[1:]
    tests = (first_connections_plain, first_connections_tls, later_connections_plain, later_connections_tls)
    run([(t.__name__, t) for t in tests if not only or any(o in t.__name__ for o in only)])


if __name__ == "__main__":
    sys.exit(main())
