#!/usr/bin/env python3
"""coll_ways_test.py: every algorithm of the long collectives gives right values and costs the messages, bytes and latencies that it is for;
sums have the same bits whatever the split over sites; what names no algorithm is an error.

Counted (--stats) with tests/mpi/hops.c, checked with long_coll.c and sum_order.c; speaks the protocol of tests/run.
"""
import json
import os
import re
import subprocess
import tempfile

import sites as frame
from ports import free_ports

BUILD = os.environ.get("PACX_BUILD", "build")
MPIS = [m for m in ("openmpi", "mpich") if os.path.isdir(f"{BUILD}/{m}/tests")]
OPERATIONS = ("BCAST", "REDUCE", "ALLREDUCE")
BLOCK, CALLS = 120, 2       # hops.c


def forced(way):
    more = ("ALLGATHER",) if way in ("leader", "pieces") else ()
    return {f"PACX_COLL_{op}": way for op in OPERATIONS + more}


def mpis(sites):
    """Both vendors in turn, over the sites."""
    return "+".join(MPIS[i % len(MPIS)] for i in range(sites.count("+") + 1))


def run(sites, program, env, options=()):
    name, *arguments = program
    p = subprocess.run([BUILD + "/bin/pacxrun", "-n", sites, "--mpi", mpis(sites), *options, "--", f"{BUILD}/{{mpi}}/tests/{name}", *arguments],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, text=True,
                       env=dict(os.environ, **env))
    return p.returncode, p.stdout


def passed(sites, program, env, options=()):
    """Its output."""
    status, out = run(sites, program, env, options)
    assert status == 0 and ", 0 failed" in out, f"{sites} {program} {env}: status {status}: {out}"
    return out


def values(way, sites, program=("long_coll",)):
    passed(sites, program, forced(way))


def same_bits(env, tree):
    """Splits of four ranks, and of five."""
    for splits in (("1+3", "1+1+2"), ("4+1", "2+1+2")):
        out = {s: passed(s, ["sum_order", *tree], env) for s in splits}
        digests = {re.search("digest (.*)", o)[1] for o in out.values()}
        assert len(digests) == 1, out


def associative():
    """One term of each site, though the number of its ranks is no power of two: the bytes say it."""
    sent = []
    for on in ("0", "1"):
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "stats.json")
            passed("2+3", ["sum_order"], dict(forced("leader"), PACX_ASSOCIATIVE=on), ["--stats", path])
            with open(path) as f:
                sent.append(sum(s["allreduce"]["bytes"] for s in json.load(f)["collectives"].values()))
    assert 1.25 * sent[1] < sent[0], sent


def terms():
    """Several terms of a site are one message: as many cross as sites, whatever the split; sum_order calls reduce, reduce_scatter, scan and exscan
    5 times on all ranks and 3 times on a communicator of mixed order, and allreduce 15 times."""
    for sites in ("3+1", "1+2+2+1"):
        n = sites.count("+") + 1
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "stats.json")
            passed(sites, ["sum_order", "tree"], forced("leader"), ["--stats", path])
            with open(path) as f:
                stats = json.load(f)["collectives"].values()
        got = {op: sum(s[op]["messages"] for s in stats) for op in ("reduce", "allreduce", "reduce_scatter", "scan", "exscan")}
        assert (got["reduce"], got["allreduce"], got["reduce_scatter"]) == (8 * (n - 1), 15 * n * (n - 1), 8 * n * (n - 1)), (sites, got)
        assert got["scan"] == got["exscan"] and got["scan"] <= 5 * n * (n - 1) // 2 + 3 * n * (n - 1), (sites, got)
        assert all(s[op]["latencies"] <= 1 for s in stats for op in got), (sites, stats)


def counts():
    """On n sites a broadcast's pieces are sent by the root and passed on; reductions exchange n-ths of the vector, and then of the result;
    an allgather's blocks go as if each site were the root of a broadcast."""
    for n in (2, 3, 4):
        sites = "+".join(["1"] * n)
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "stats.json")
            passed(sites, ["hops"], forced("pieces"), ["--stats", path])
            with open(path) as f:
                stats = json.load(f)["collectives"].values()
        expected = {"bcast": ((n - 1) ** 2, n - 1), "reduce": (n * (n - 1) + n - 1, n - 1 + (n - 1) / n), "allreduce": (2 * n * (n - 1), 2 * (n - 1)),
                    "allgatherv": (n * (n - 1) ** 2, n * (n - 1))}
        for op, (messages, blocks) in expected.items():
            got = [sum(s[op][k] for s in stats) for k in ("messages", "bytes")]
            # Pieces of whole elements: those of 30 over 4 sites differ by one.
            assert got[0] == CALLS * messages and abs(got[1] - CALLS * blocks * BLOCK) <= CALLS * 4 * n, (n, op, got, messages, blocks * BLOCK)
            latencies = max(s[op]["latencies"] for s in stats)
            assert latencies == (1 if op in ("bcast", "allgatherv") and n == 2 else 2), (n, op, latencies)


BCAST = """
#include <mpi.h>
#include <stdio.h>
static unsigned char x[16 << 20];
int main(int argc, char **argv)
{
	int r, bad = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	for (int i = 0; i < (int)sizeof x; i++)
		x[i] = r ? 0 : (unsigned char)(i * 31 >> 3);
	MPI_Bcast(x, sizeof x, MPI_BYTE, 0, MPI_COMM_WORLD);
	for (int i = 0; i < (int)sizeof x; i++)
		bad += x[i] != (unsigned char)(i * 31 >> 3);
	MPI_Finalize();
	return bad > 0;
}
"""


def gateways():
    """What one leader sends goes through one gateway of its site; lanes use all alike (Matsuda's several senders)."""
    ports = free_ports(4)
    with tempfile.TemporaryDirectory() as tmp:
        path, hosts = os.path.join(tmp, "stats.json"), os.path.join(tmp, "hosts.yml")
        frame.programs(tmp, BCAST)
        with open(hosts, "w") as f:
            f.write("job: lanes\nsites:\n" + "".join(f"  - {{name: s{i}, host: 127.0.0.1, ranks: 2, mpi: {mpis('1+1').split('+')[i]}, "
                    f"gateways: [{{port: {ports[2 * i]}}}, {{port: {ports[2 * i + 1]}}}]}}\n" for i in range(2)) +
                    "links:\n  - {default: , compress: none}\n")
        for way, least, most in (("leader", 0.9, 1), ("lanes", 0.5, 0.55)):
            p = subprocess.run([BUILD + "/bin/pacxrun", "-f", hosts, "--stats", path, "--", f"{tmp}/prog.{{mpi}}"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=150, text=True, env=dict(os.environ, **forced(way)))
            assert p.returncode == 0, f"{way}: status {p.returncode}: {p.stdout}"
            with open(path) as f:
                sent = [link["wire_bytes"] for link in json.load(f)["links"] if link["from"] == "s0"]
            assert len(sent) == 2 and least <= max(sent) / sum(sent) <= most, (way, sent)


def unknown():
    status, out = run("1+1", ["hops"], {"PACX_COLL_BCAST": "fast"})
    assert status != 0 and re.search('PACX_COLL_BCAST is "fast": .*leader, segments, pieces, lanes', out), (status, out)


def main():
    tests = [(f"long_collectives_{way}_{s}", lambda way=way, s=s: values(way, s)) for way, s in
             (("leader", "2+1+2"), ("segments", "3+2"), ("pieces", "2+1+2"), ("pieces", "1+1+1+1"), ("lanes", "3+2"))]
    tests += [("sums_have_the_bits_of_the_tree_on_every_split", lambda: same_bits({}, ["tree"])),
              ("sums_have_the_bits_of_the_tree_in_lanes", lambda: values("lanes", "3+2", ["sum_order", "tree"])),
              ("sums_have_the_bits_of_the_tree_in_pieces", lambda: values("pieces", "2+1+2", ["sum_order", "tree"])),
              ("terms_of_a_site_cross_in_one_message", terms), ("associative_sends_one_term_of_a_site", associative), ("pieces_cross_as_counted", counts),
              ("lanes_use_all_gateways_alike", gateways), ("unknown_algorithm_is_an_error_that_lists_them", unknown)]
    frame.run(tests)


if __name__ == "__main__":
    main()
