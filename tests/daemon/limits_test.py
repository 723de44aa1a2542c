#!/usr/bin/env python3
"""limits_test.py: what every collective operation costs over a wide area of 10 ms and 1 MByte/s between each pair of 2, 4 and 8 sites with 16 ranks, by
what was counted: at most 1.15 times the limit (tests/bench/wan.py) plus 2 ms.

The cost is latencies in sequence, and what the busiest link carries: bytes, and HEADER for each message. Counted (--stats) with tests/mpi/hops.c, whose
blocks are short; the bytes of longer ones follow. Broadcast and reductions are made to go by the algorithm that the table of costs picks for this length
(tests/unit/costs_test.c). No clock, so no noise. Speaks the protocol of tests/run.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays clean
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import sites as frame  # noqa: E402
import wan  # noqa: E402

BUILD = os.environ.get("PACX_BUILD", "build")
MPIS = [m for m in ("openmpi", "mpich") if os.path.exists(f"{BUILD}/{m}/tests/hops")]
LASTING = "links:\n  - {default: , reconnect: 240s}\n"  # so many processes that poll have starved others for 80 s here ("workqueue lockup" in dmesg)
BLOCK, CALLS, HEADER = 120, 2, 110      # hops.c; a frame's header in a TLS record, with a share of TCP's
FACTOR, MORE = 1.15, 2
FORCED = ("BCAST", "REDUCE", "ALLREDUCE")
# rows of the issue: operation of wan.py, bytes, name in the statistics, block of hops.c
ROWS = [("barrier", 0, "barrier", lambda b, n: 0), ("bcast", 1, "bcast", lambda b, n: b), ("bcast", 65536, "bcast", lambda b, n: b),
        ("allgather", 1, "allgather", lambda b, n: b), ("allgather_tot", 65536, "allgather", lambda b, n: b / n),
        ("allgather", 65536, "allgather", lambda b, n: b), ("reduce", 1, "reduce", lambda b, n: b), ("reduce", 65536, "reduce", lambda b, n: b),
        ("allreduce", 8, "allreduce", lambda b, n: b), ("allreduce", 65536, "allreduce", lambda b, n: b),
        ("alltoall", 1, "alltoall", lambda b, n: b), ("alltoall", 1024, "alltoall", lambda b, n: b),
        ("gather", 65536, "gather", lambda b, n: b / n), ("scatter", 65536, "scatter", lambda b, n: b / n), ("scan", 8, "scan", lambda b, n: b),
        ("exscan", 8, "exscan", lambda b, n: b), ("scan", 65536, "scan", lambda b, n: b),
        ("reduce_scatter", 65536, "reduce_scatter", lambda b, n: b / n)]


def count(sites, ranks, way):
    with tempfile.TemporaryDirectory() as tmp:
        path, hosts = os.path.join(tmp, "stats.json"), os.path.join(tmp, "hosts.yml")
        with open(hosts, "w", encoding="utf-8") as f:
            f.write("sites:\n" + "".join(f"  - {{name: site{i + 1}, ranks: {ranks}, mpi: {MPIS[i % len(MPIS)]}}}\n" for i in range(sites)))
            f.write(LASTING)
        p = subprocess.run([BUILD + "/bin/pacxrun", "-f", hosts, "--stats", path, "--",
                            BUILD + "/{mpi}/tests/hops"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280, text=True,
                           env=dict(os.environ, **{f"PACX_COLL_{op}": way for op in FORCED}))
        assert p.returncode == 0 and ", 0 failed" in p.stdout, f"status {p.returncode}: {p.stdout}"
        with open(path) as f:
            stats = json.load(f)
    return [stats["collectives"][s["name"]] for s in stats["sites"]]


def shares(op, way, n):
    """Of each site, per step in sequence: which part of what it sends the busiest of its links carries. The root is rank 0 of gather and scatter, and the
    last one of broadcast and reduce; who sends nothing in a step has 0 there."""
    even, last = [[1 / (n - 1)] * n], [0] * (n - 1) + [1 / (n - 1)]
    if op in ("bcast", "scatter"):
        pieces = [[1 / (n - 2)] * (n - 1) + [0]] if way == "pieces" and op == "bcast" and n > 2 else []
        return [last if op == "bcast" else last[::-1], *pieces]
    if op in ("gather", "reduce"):
        return [[2 / n] * (n - 1) + [1 / (n - 1)]] if way == "pieces" and op == "reduce" else [[1] * n]
    if op in ("scan", "exscan"):
        return [[1 / max(n - 1 - p, 1) for p in range(n)]]
    return even


def cost(op, block, way, stats):
    """ms"""
    sent = [(s[op]["bytes"] * block / BLOCK + s[op]["messages"] * HEADER) / CALLS for s in stats]
    link = sum(max(x * share for x, share in zip(sent, step)) for step in shares(op, way, len(stats)))
    return max(s[op]["latencies"] for s in stats) * wan.LATENCY + link / wan.RATE


def check(sites, ranks):
    ways = {w: count(sites, ranks, w) for w in (["leader", "pieces"] if sites > 2 else ["leader"])}
    beyond = []
    for op, size, name, block in ROWS:
        way = "pieces" if sites > 2 and size == 65536 and op.upper() in FORCED else "leader"
        ours, limit = cost(name, block(size, sites * ranks), way, ways[way]), wan.limit(op, size, sites, ranks)
        print(f"  # {sites}x{ranks} {op} {size}: {ours:.1f} ms, limit {limit:.1f}", flush=True)
        if ours > FACTOR * limit + MORE:
            beyond.append(f"{op} {size}: {ours:.1f} ms, limit {limit:.1f}")
    assert not beyond, "; ".join(beyond)


def main():
    frame.run([(f"collectives_within_the_limit_{s}x{r}", lambda s=s, r=r: check(s, r)) for s, r in ((2, 8), (4, 4), (8, 2))])


if __name__ == "__main__":
    main()
