#!/usr/bin/env python3
"""coll_ways_test.py: every algorithm of the long collectives gives right values and costs the messages, bytes and latencies that it is for;
sums have the same bits whatever the split over sites; what names no algorithm is an error.

Counted (--stats) with tests/mpi/hops.c, checked with long_coll.c and sum_order.c; speaks the protocol of tests/run.
"""
import contextlib
import json
import os
import re
import socket
import subprocess
import tempfile
import time

import sites as frame
from faultproxy import Proxy
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


def unique(pairs):
    """For json.load: a key that stands twice, whose first value would be lost."""
    assert len(dict(pairs)) == len(pairs), [k for k, _ in pairs]
    return dict(pairs)


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
                stats = json.load(f, object_pairs_hook=unique)
            assert sorted(stats["collectives"]) == ["s0", "s1"] and all(s["bcast"]["calls"] for s in stats["collectives"].values()), stats
            sent = [link["wire_bytes"] for link in stats["links"] if link["from"] == "s0"]
            assert len(sent) == 2 and least <= max(sent) / sum(sent) <= most, (way, sent)


SLOWER = """
#include <mpi.h>
#include <stdio.h>
#include <fcntl.h>
#include <unistd.h>
static double x[65536], sum[65536], large[1 << 17], other[1 << 17];
int main(int argc, char **argv)
{
	MPI_Comm copy;
	double begin;
	int r, bad = 0, on = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	for (int i = 0; i < 65536; i++)
		x[i] = r + i;
	MPI_Allreduce(x, sum, 65536, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 65536; i++)
		bad += sum[i] != 3 + 3.0 * i;
	if (r == 0)
		close(open(argv[1], O_CREAT | O_WRONLY, 0600)); /* that the wires become slow */
	while (r == 0 && access(argv[2], F_OK))
		usleep(10000);
	for (begin = MPI_Wtime(); on;) { /* long enough for the daemons to see it */
		MPI_Sendrecv(large, 1 << 17, MPI_DOUBLE, (r + 1) % 3, 0, other, 1 << 17, MPI_DOUBLE, (r + 2) % 3, 0, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		MPI_Sendrecv(large, 1 << 17, MPI_DOUBLE, (r + 2) % 3, 0, other, 1 << 17, MPI_DOUBLE, (r + 1) % 3, 0, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		on = MPI_Wtime() - begin < 3;
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (argv[3][0] == 'd')
		MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	else if (argv[3][0] == 's')
		MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &copy);
	else
		copy = MPI_COMM_WORLD;
	MPI_Reduce(x, sum, 65536, MPI_DOUBLE, MPI_SUM, 0, copy);
	for (int i = 0; i < 65536 && r == 0; i++)
		bad += sum[i] != 3 + 3.0 * i;
	MPI_Finalize();
	return bad > 0;
}
"""


def slower():
    """Three sites whose wires become slow: on a communicator that is made then, a reduction goes in pieces; before, and without a new agreement,
    not. Also with several gateways, each of which sees its own."""
    for made, gateways in (("dup", 1), ("split", 1), ("no", 1), ("dup", 2)):
        with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
            path, hosts, asked, done = (os.path.join(tmp, n) for n in ("stats.json", "hosts.yml", "asked", "done"))
            frame.programs(tmp, SLOWER)
            ports = free_ports(3 * gateways)
            proxies = [stack.enter_context(Proxy(p)) for p in ports]
            for proxy in proxies:
                proxy.delay = 0.003 # pieces are nothing for short ways and fast wires
                # What has left a daemon is soon on the slow wire.
                proxy.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            with open(hosts, "w") as f:
                ways = [f"port: {p.port}, bind: '127.0.0.1:{port}'" for p, port in zip(proxies, ports)]
                at = [f"gateways: [{{{ways[2 * i]}}}, {{{ways[2 * i + 1]}}}]" if gateways == 2 else ways[i] for i in range(3)]
                f.write("job: slower\nsites:\n" + "".join(f"  - {{name: s{i}, host: 127.0.0.1, {at[i]}, "
                        f"ranks: 1, mpi: {mpis('1+1+1').split('+')[i]}}}\n" for i in range(3)) + "links:\n  - {default: , compress: none, streams: 1}\n")
            p = subprocess.Popen([BUILD + "/bin/pacxrun", "-f", hosts, "--stats", path, "--", f"{tmp}/prog.{{mpi}}", asked, done, made],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            while not os.path.exists(asked) and p.poll() is None:
                time.sleep(0.02)
            for proxy in proxies:
                proxy.rate = 5e5
            open(done, "w").close()
            out, _ = p.communicate(timeout=150)
            assert p.returncode == 0, f"status {p.returncode}: {out}"
            with open(path) as f:
                stats = json.load(f)["collectives"].values()
            got = [max(s[op]["latencies"] for s in stats) for op in ("allreduce", "reduce")]
            assert got[1] == 2 if made != "no" else got[1] == 1 or got[0] == 2, (made, gateways, got)  # a busy machine has slow wires from the start


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
              ("lanes_use_all_gateways_alike", gateways), ("what_links_are_seen_to_carry_is_agreed_on_with_a_new_communicator", slower),
              ("unknown_algorithm_is_an_error_that_lists_them", unknown)]
    frame.run(tests)


if __name__ == "__main__":
    main()
