#!/usr/bin/env python3
"""hops_test.py: on 2, 3, 4 and 8 sites every collective operation costs one wide-area latency, and no item goes to a site twice; what goes to
several sites is given to the out-daemon once. "held": outstanding ones do not wait for one another.

Counted (--stats), not timed, with tests/mpi/hops.c; speaks the protocol of tests/run.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get("PACX_BUILD", "build")
BLOCK = 120     # bytes, hops.c
CALLS = 2
HEADER = 80     # of a frame
# Whatever a loaded machine measures of its links.
SHORT = {f"PACX_COLL_{op}": "leader" for op in ("BCAST", "REDUCE", "ALLREDUCE", "ALLGATHER")}


def terms(sites, lo, n):
    """The first ranks of the largest subtrees of ranks lo to lo + n - 1 that are at one site; sites: of each rank."""
    half = (n + 1) // 2
    return [lo] if len(set(sites[lo:lo + n])) == 1 else terms(sites, lo, half) + terms(sites, lo + half, n - half)


def sites_of(members, blocked):
    """The site of each rank of the communicator."""
    ranks = [p for p, m in enumerate(members) for _ in range(m)]
    return ranks if blocked else ranks[::2] + ranks[1::2]


def scan_mixed(members):
    """Each site sends each other one what is before its last rank."""
    sites = sites_of(members, False)
    own = [[t for t in terms(sites, 0, len(sites)) if sites[t] == p] for p in range(len(members))]
    last = [max(r for r, s in enumerate(sites) if s == p) for p in range(len(members))]
    sent = [sum(t < last[q] for t in own[p]) for p in range(len(members)) for q in range(len(members)) if p != q]
    return sum(n > 0 for n in sent), sum(sent)


def expected(members, blocked):
    """Operation -> wide-area messages, and blocks in them, of one call with all sites together; members: ranks of each site."""
    s, n = len(members), sum(members)
    each = (s * (s - 1), s * (s - 1))       # one block from each site to each other site
    pairs = n * n - sum(m * m for m in members)
    # Short blocks of one site for another are one message, where that saves any.
    together = s * (s - 1) if sorted(members)[-1] * sorted(members)[-2] > 3 else pairs
    spread = (s * (s - 1), n * (s - 1))     # everybody's block to each other site
    far = n - members[0]                    # rank 0 is at the first site
    sites = sites_of(members, blocked)
    ring = (2 * sum(sites[r] != sites[r - 1] for r in range(n)),) * 2     # a block over each edge, in both directions
    scan = (s * (s - 1) // 2,) * 2 if blocked else scan_mixed(members)
    return {"barrier": (s * (s - 1), 0), "bcast": (s - 1, s - 1), "gather": (far, far), "gatherv": (far, far), "scatter": (far, far),
            "scatterv": (far, far), "allgather": spread, "allgatherv": spread, "alltoall": (together, pairs), "alltoallv": (pairs, pairs),
            "alltoallw": (pairs, pairs), "reduce": (s - 1, s - 1), "allreduce": each, "reduce_scatter": spread,
            "reduce_scatter_block": spread, "scan": scan, "exscan": scan, "neighbor": tuple(5 * k for k in ring)}


def handed(members):
    """Operation -> native messages to the out-daemons, and bytes in them, of one call: what a leader has for the other sites is one native message,
    with one header for each of them and, if it is the same for all, one body."""
    s, n, head = len(members), sum(members), HEADER * (len(members) - 1)
    return {"barrier": (s, s * head), "bcast": (1, head + BLOCK), "allgather": (s, s * head + n * BLOCK),
            "allgatherv": (s, s * head + n * BLOCK), "allreduce": (s, s * (head + BLOCK))}


def check(sites, mpi, order):
    members = [int(m) for m in sites.split("+")]
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "stats.json")
        p = subprocess.run([BUILD + "/bin/pacxrun", "-n", sites, "--mpi", mpi, "--stats", path, "--", BUILD + "/{mpi}/tests/hops", *order],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, text=True,
                           env=dict(os.environ, **SHORT))
        if p.returncode or ", 0 failed" not in p.stdout:
            return f"status {p.returncode}: {p.stdout}"
        with open(path) as f:
            stats = json.load(f)["collectives"]
    for op, (messages, blocks) in expected(members, order != ["mixed"]).items():
        if order == ["held"] and op == "bcast":
            continue    # there are more of them
        got = [site.get(op) or {} for site in stats.values()]
        if any(g.get("calls") != CALLS * (5 if op == "neighbor" else 1) for g in got):
            return f"{op}: {got}, expected {CALLS} calls at each site"
        sums = [sum(g[k] for g in got) for k in ("messages", "bytes")]
        if sums != [CALLS * messages, CALLS * blocks * BLOCK]:
            return f"{op}: {sums[0]} messages, {sums[1]} bytes, expected {CALLS * messages} and {CALLS * blocks * BLOCK}"
        if max(g["latencies"] for g in got) != 1:
            return f"{op}: {[g['latencies'] for g in got]} latencies in sequence"
        native, want = [sum(g[f"native_{k}"] for g in got) for k in ("messages", "bytes")], handed(members).get(op)
        if want and native != [CALLS * w for w in want]:
            return f"{op}: {native} native messages and bytes to the out-daemons, expected {CALLS} times {want}"
    return None


def main():
    cases = [("3+2", "openmpi+mpich", []), ("2+2", "mpich", ["mixed"]), ("2+1+3", "openmpi+mpich+openmpi", ["mixed"]),
             ("1+2+1+1", "openmpi+openmpi+mpich+mpich", []), ("1+1+1+1+1+1+1+1", "mpich", []),
             ("1+7", "openmpi+mpich", []), ("2+1", "openmpi+mpich", ["held"]), ("2+1+1", "mpich+openmpi+mpich", ["held"])]
    cases = [c for c in cases if all(os.path.exists(f"{BUILD}/{m}/tests/hops") for m in c[1].split("+"))]
    print(f"1..{len(cases)}")
    bad = 0
    for sites, mpi, order in cases:
        why = check(sites, mpi, order)
        if why:
            bad += 1
            print(f"  {why}")
        print(f"{'not ok' if why else 'ok'} collectives_cross_once_{'_'.join([sites, mpi, *order])}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
