#!/usr/bin/env python3
"""record_test.py: pacxrun --record writes what crosses the links and nothing else, for nobody else's eyes; pacxctl probe proposes from it.
The recording is read here from its description in daemon/link/recording.h."""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sites import BUILD, flavors, programs, run  # noqa: E402

# Each rank of the one half sends its peer 40 messages of numbers that change a little, in two lengths, and a short text 40 times.
SOURCE = r"""
#include <mpi.h>
#include <string.h>
enum { N = 30000, SHORT = 600 };
int main(int argc, char **argv)
{
	static double x[N];
	char text[20] = "a short text";
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int step = 0; step < 40; step++) {
		for (int i = 0; i < N; i++)
			x[i] = 1 + i * 1e-3 + step * 1e-9 * (i % 7);
		if (rank < size / 2) {
			MPI_Send(x, N, MPI_DOUBLE, rank + size / 2, 5, MPI_COMM_WORLD);
			MPI_Send(x, SHORT, MPI_DOUBLE, rank + size / 2, 6, MPI_COMM_WORLD);
			MPI_Send(text, 20, MPI_CHAR, rank + size / 2, 7, MPI_COMM_WORLD);
		} else {
			MPI_Recv(x, N, MPI_DOUBLE, rank - size / 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(x, SHORT, MPI_DOUBLE, rank - size / 2, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(text, 20, MPI_CHAR, rank - size / 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
	}
	MPI_Finalize();
	return 0;
}
"""


# What the datatype tells: rank 0 sends n numbers each of several types, under tags of their own.
SHAPES = r"""
#include <mpi.h>
#include <stdlib.h>
static int rank;
static void one(MPI_Datatype t, int count, int tag)
{
	static double x[100000];
	MPI_Type_commit(&t);
	if (rank == 0)
		MPI_Send(x, count, t, 1, tag, MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(x, count, t, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int argc, char **argv)
{
	int lengths[2] = { 2, 3 };
	MPI_Aint at[2] = { 0, 32 };
	MPI_Datatype nine, two[2] = { MPI_DOUBLE, MPI_DOUBLE }, five, whole;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_contiguous(9, MPI_DOUBLE, &nine);
	MPI_Type_create_struct(2, lengths, at, two, &five);
	MPI_Type_vector(40, 30, 50, MPI_INT, &whole);
	one(nine, 4000, 1);
	one(nine, 50, 2);
	one(nine, 10, 3);
	one(five, 60, 4);
	one(whole, 3, 5);
	one(MPI_DOUBLE, 500, 6);
	MPI_Finalize();
	return 0;
}
"""


def start(tmp, link, *more, sites="2+2", **env):
    have = flavors()
    return subprocess.run([BUILD + "/bin/pacxrun", "-n", sites, "--mpi", f"{have[0]}+{have[-1]}", "--link", link, *more, "--", tmp + "/prog.{mpi}"],
                          env={**os.environ, **env}, cwd=tmp, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, text=True)


def read(path):
    """Head and records (tag, elem, total, offset, src, dst, msg, payload) of a recording."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"PACXREC1" and data[25:32] == bytes(7), data[:40]
    names = [data[at:at + 64].rstrip(b"\0").decode() for at in (32, 96)]
    at, records, before = 160, [], 0
    while at < len(data):
        ns, ctx, total, offset, src, dst, tag, msg, seg, n, elem, coll, row, plane, zero = struct.unpack_from("<QQQQIIiIIIBBHHH", data, at)
        assert ns >= before and zero == 0 and coll < 2 and (offset == 0 or offset % seg == 0), (at, ns, offset, seg)
        before = ns
        records.append((tag, elem, total, offset, src, dst, msg, data[at + 64:at + 64 + n], coll, row, plane))
        at += 64 + n
    return names, records


def value_of(step, i):
    return 1 + i * 1e-3 + step * 1e-9 * (i % 7)


def what_crosses_is_recorded():
    for link in ("compress: none", "compress: zstd, predict: always"):
        with tempfile.TemporaryDirectory() as tmp:
            programs(tmp, SOURCE)
            p = start(tmp, link, "--record", "deep", "--stats", tmp + "/s")
            assert p.returncode == 0, p.stdout
            with open(tmp + "/s") as f:
                stats = {(l["from"], l["to"]): l for l in json.load(f)["links"]}
            for a, b in (("left", "right"), ("right", "left")):
                path = f"{tmp}/deep/{a}-{b}.pacxrec"
                assert os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode)
                names, records = read(path)
                assert names == [a, b], names
                assert sum(len(r[7]) for r in records) == stats[a, b]["payload_bytes"], (a, link)
            _, records = read(f"{tmp}/deep/left-right.pacxrec")
            for rank in (0, 1):
                mine = [r for r in records if r[4] == rank and not r[8]]
                assert all(r[5] == rank + 2 for r in mine), rank
                assert [r[7] for r in mine if r[0] == 7] == [b"a short text".ljust(20, b"\0")] * 40
                for tag, n in ((5, 30000), (6, 600)):
                    got = [r for r in mine if r[0] == tag]
                    assert len(got) == 40 and all(r[1:4] == (8, 8 * n, 0) for r in got), (tag, len(got), got[0][:7])
                    for step in (0, 17, 39):
                        assert got[step][7] == struct.pack(f"={n}d", *(value_of(step, i) for i in range(n))), (tag, step)


def a_recording_is_bounded_and_not_overwritten():
    with tempfile.TemporaryDirectory() as tmp:
        programs(tmp, SOURCE)
        p = start(tmp, "compress: none", "--record", tmp, PACX_RECORD_SIZE="16MiB")
        assert p.returncode == 0 and "is full" in p.stdout, p.stdout   # 19 MB cross
        path = f"{tmp}/left-right.pacxrec"
        assert 15 << 20 < os.stat(path).st_size <= 16 << 20, os.stat(path).st_size
        p = start(tmp, "compress: none", "--record", tmp)
        assert p.returncode == 2 and "not overwritten" in p.stdout, p.stdout
        p = start(tmp, "compress: none", "--record", tmp + "/a", PACX_RECORD_SIZE="much")
        assert p.returncode == 2 and "PACX_RECORD_SIZE" in p.stdout, p.stdout


def what_the_datatype_tells_is_recorded():
    with tempfile.TemporaryDirectory() as tmp:
        programs(tmp, SHAPES)
        p = start(tmp, "compress: none", "--record", tmp + "/r", sites="1+1")
        assert p.returncode == 0, p.stdout
        _, records = read(f"{tmp}/r/left-right.pacxrec")
        got = {r[0]: (r[1], r[2], r[9], r[10]) for r in records if not r[8] and r[0] < 7}
        # Two segments, inline, too short for a hint, the members of a structure, 3 planes of 40 rows of 30, nothing to be told.
        assert got == {1: (8, 288000, 9, 0), 2: (8, 3600, 9, 0), 3: (8, 720, 0, 0), 4: (8, 2400, 5, 0), 5: (4, 14400, 30, 40), 6: (8, 4000, 0, 0)}, got


def probe_proposes_from_a_recording():
    with tempfile.TemporaryDirectory() as tmp:
        programs(tmp, SOURCE)
        assert start(tmp, "compress: none", "--record", tmp + "/r").returncode == 0

        def probe(*words):
            return subprocess.run([BUILD + "/bin/pacxctl", "probe", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True)

        file = ("--recording", tmp + "/r/left-right.pacxrec")
        p = probe(*file, "--rate", "1.25MB/s", "--rtt", "35ms")
        ratio = {l.split(" ratio ")[0].strip(): float(l.split(" ratio ")[1].split()[0]) for l in p.stdout.splitlines() if " ratio " in l}
        assert p.returncode == 0 and ratio["compress: none"] == 1, p.stdout
        assert ratio["compress: auto"] > 3 * ratio["compress: zstd:1"] > 3, p.stdout
        assert "proposed: {between: [left, right], compress: auto}" in p.stdout and "predicted by" in p.stdout, p.stdout
        p = probe(*file, "--rate", "100GB/s", "--rtt", "10us")   # nothing pays there
        assert p.returncode == 0 and "compress: auto                   ratio  1.00" in p.stdout, p.stdout
        with open(tmp + "/other", "w") as f:
            f.write("something else, which is longer than the head of a recording" * 9)
        for words, status, why in ((("--recording", tmp + "/other"), 2, "expected a recording"), (("--recording", tmp + "/none"), 2, "No such file"),
                                   ((*file, "--rate", "fast"), 2, "--rate"), ((*file, "-f", "x"), 2, "without a hostfile"), ((), 2, "needs -f")):
            p = probe(*words)
            assert p.returncode == status and why in p.stdout, (words, p.stdout)


if __name__ == "__main__":
    if not flavors():
        sys.exit(77)
    run([(t.__name__, t) for t in (what_crosses_is_recorded, a_recording_is_bounded_and_not_overwritten, what_the_datatype_tells_is_recorded,
                                   probe_proposes_from_a_recording)])
