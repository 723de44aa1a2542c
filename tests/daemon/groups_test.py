#!/usr/bin/env python3
"""groups_test.py: sites in groups (`group:` of the hostfile) and with a shared `uplink:`: data of broadcast, reduce, allreduce, barrier and allgather cross from group to group once,
whatever the groups; results and their bits are those of sites without groups; long operations are right by every algorithm.

Counted (--stats) with tests/mpi/hops.c, checked with long_coll.c and sum_order.c; speaks the protocol of tests/run.
"""
import json
import os
import re
import subprocess
import tempfile

import sites as frame

BUILD = os.environ.get("PACX_BUILD", "build")
MPIS = [m for m in ("openmpi", "mpich") if os.path.isdir(f"{BUILD}/{m}/tests")]
BLOCK, CALLS = 120, 2       # hops.c


def forced(way):
    return {f"PACX_COLL_{op}": way for op in ("BCAST", "REDUCE", "ALLREDUCE")}


def run(sites, program, env=None, more=""):
    """(output, statistics); sites: (ranks, group or None) of each; more: further keys of each."""
    with tempfile.TemporaryDirectory() as tmp:
        hosts, stats = os.path.join(tmp, "hosts.yml"), os.path.join(tmp, "stats.json")
        with open(hosts, "w") as f:
            f.write("sites:\n")
            for i, (ranks, group) in enumerate(sites):
                f.write(f"  - {{name: s{i}, ranks: {ranks}, mpi: {MPIS[i % len(MPIS)]}{f', group: {group}' if group else ''}{more}}}\n")
        name, *arguments = program
        p = subprocess.run([BUILD + "/bin/pacxrun", "-f", hosts, "--stats", stats, "--", f"{BUILD}/{{mpi}}/tests/{name}", *arguments],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, text=True,
                           env=dict(os.environ, **(env or {})))
        assert p.returncode == 0 and ", 0 failed" in p.stdout, f"{sites} {program}: status {p.returncode}: {p.stdout}"
        with open(stats) as f:
            return p.stdout, json.load(f)["collectives"]


class Groups:
    """Who sends how many blocks to whom in one call; rank n - 1, at the last site, is the root."""

    def __init__(self, sites):
        self.ranks = [r for r, _ in sites]
        self.names = [g or i for i, (_, g) in enumerate(sites)]
        self.head = [self.names.index(g) for g in self.names]

    def members(self, p):
        return [q for q, h in enumerate(self.head) if h == self.head[p]]

    def others(self, p):
        return [q for q in self.members(p) if q != p]

    def terms(self, p):
        """What is left of a group's sums: neighbours are combined."""
        return sum(1 for q in self.members(p) if q == 0 or self.head[q - 1] != self.head[q])

    def down(self):
        root = len(self.ranks) - 1
        for p in range(root):
            near = self.head[p] == self.head[root] or self.head[p] == p
            yield (root if near else self.head[p]), p

    def edges(self, op):
        heads = sorted(set(self.head))
        root = len(self.ranks) - 1
        if op == "bcast":
            return [(a, b, 1) for a, b in self.down()]
        if op == "reduce":
            return [(p, up, self.terms(p) if up == root and self.head[p] != self.head[root] else 1) for up, p in self.down()]
        away = sum(self.ranks)
        group = {h: sum(self.ranks[q] for q in self.members(h)) for h in heads}
        near = {"barrier": 0, "allreduce": 1}
        if op == "allgather":
            inside = [(p, q, self.ranks[p]) for p in range(root + 1) for q in self.others(p)]
            across = [(a, b, group[a]) for a in heads for b in heads if a != b]
            back = [(self.head[p], p, away - group[self.head[p]]) for p in range(root + 1) if self.head[p] != p]
        else:
            inside = [(p, self.head[p], near[op]) for p in range(root + 1) if self.head[p] != p]
            across = [(a, b, near[op] * self.terms(a)) for a in heads for b in heads if a != b]
            back = [(b, a, n) for a, b, n in inside]
        return inside + across + back


def counts(sites):
    _, stats = run(sites, ["hops"], forced("leader"))
    groups = Groups(sites)
    for op, latencies in (("bcast", 2), ("reduce", 2), ("barrier", 3), ("allreduce", 3), ("allgather", 3)):
        edges = groups.edges(op)
        across = [(groups.names[a], groups.names[b]) for a, b, _ in edges if groups.names[a] != groups.names[b]]
        assert len(across) == len(set(across)), f"{op}: the expectation itself crosses twice: {across}"
        for i in range(len(sites)):
            want = [CALLS * sum(1 for a, _, _ in edges if a == i), CALLS * BLOCK * sum(n for a, _, n in edges if a == i)]
            got = stats[f"s{i}"][op]
            assert [got["messages"], got["bytes"]] == want, f"{op} at s{i}: {got}, expected messages, bytes {want}"
        most = max(s[op]["latencies"] for s in stats.values())
        assert most == latencies, f"{op}: {most} latencies in sequence, expected {latencies}"


def one_group_is_as_none():
    """All sites are near each other: one latency."""
    _, stats = run([(1, "x"), (2, "x"), (1, "x")], ["hops"], forced("leader"))
    for op in ("bcast", "barrier", "allreduce", "allgather"):
        assert max(s[op]["latencies"] for s in stats.values()) == 1, (op, stats)


def uplink():
    """One so slow that a copy of a block takes a second, whatever else this machine does: the root sends a piece to each of three sites, which they pass on,
    and not all to each."""
    _, stats = run([(1, None)] * 4, ["hops"], more=", uplink: 100B/s")
    assert sum(s["bcast"]["messages"] for s in stats.values()) == CALLS * 9, stats


def same_bits():
    """Floating-point sums of five ranks, by the tree of ranks, over groups and over two sites."""
    digests = {re.search("digest (.*)", run(sites, ["sum_order", "tree"])[0])[1] for sites in
               ([(3, None), (2, None)], [(1, "x"), (1, "x"), (1, "y"), (1, "y"), (1, None)], [(1, "x"), (1, "y"), (2, "x"), (1, "y")])}
    assert len(digests) == 1, digests


def values(way):
    run([(1, "x"), (2, "x"), (1, "y"), (2, "y")], ["long_coll"], forced(way))


def main():
    tests = [("data_cross_between_groups_once", lambda: counts([(2, "x"), (1, "x"), (1, "y"), (2, "y"), (1, None)])),
             ("and_where_groups_interleave", lambda: counts([(1, "x"), (1, None), (2, "x"), (1, "y"), (1, "x"), (1, "y")])),
             ("one_group_is_as_none", one_group_is_as_none), ("pieces_where_the_links_of_a_site_share_a_slow_uplink", uplink), ("sums_have_the_same_bits_with_groups", same_bits)]
    tests += [(f"long_collectives_of_groups_{way}", lambda way=way: values(way)) for way in ("segments", "lanes")]
    frame.run(tests)


if __name__ == "__main__":
    main()
