#!/usr/bin/env python3
"""lossy_test.py: numbers move only for whoever has asked for it, and --stats counts them: tests/mpi/accuracy.c over links that compress
(a share of it is lossy) and over one that does not (none is); tests/mpi/steady.c, which never asks; tests/mpi/rows.c, for which the
user asks."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sites import BUILD, flavors, programs, run  # noqa: E402


def lossy(program, link, count="in", **env):
    """Bytes of each direction that were lossy, before they were compressed; the program has succeeded."""
    have = flavors()
    with tempfile.TemporaryDirectory() as tmp:
        p = subprocess.run([BUILD + "/bin/pacxrun", "-n", "2+2", "--mpi", f"{have[0]}+{have[-1]}", "--link", link, "--stats", tmp + "/s",
                            "--", program if "/" in program else BUILD + "/{mpi}/tests/" + program],
                           env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, text=True)
        assert p.returncode == 0 and ", 0 failed" in p.stdout, f"status {p.returncode}: {p.stdout}"
        with open(tmp + "/s") as f:
            stats = json.load(f)
    both = {(l["from"], l["to"]): (l["lossy"], r["lossy"]) for l in stats["links"] for r in stats["links_in"]
            if (l["from"], l["to"]) == (r["from"], r["to"])}
    # Both ends count the same, and each writer that begins says so, once.
    assert len(both) == 2 and all((w["segments"], w["in"], w["out"]) == (r["segments"], r["out"], r["in"]) for w, r in both.values()), both
    assert p.stdout.count("are lossy from now on") == sum(w["segments"] > 0 for w, r in both.values()), p.stdout
    return [l["lossy"][count] for l in stats["links"]]


def what_is_asked_for_is_counted():
    # Each rank sends its peer at the other site 720 kB of doubles 5 times and 360 kB of floats 4 times that may move; a piece with
    # a NaN stays exact, and whatever does not shrink may.
    for link in ("compress: zstd", "compress: lz4, predict: always"):
        got = lossy("accuracy", link)
        assert all(4000000 < n <= 2 * (6 * 720000 + 4 * 360000) for n in got), got


def nothing_is_lossy_without_compression():
    assert lossy("accuracy", "compress: none") == [0, 0]


def nothing_is_lossy_that_nobody_asked_for():
    assert lossy("steady", "compress: zstd, predict: always") == [0, 0]


def a_user_can_ask_by_the_name_of_a_communicator():
    # Each rank sends its peer 1.2 MB of doubles 6 times on the communicator of that name.
    for rule in ("rows=1e-3", "other=1,rows=-3e-6", "rows=7,rows=1e-3"):
        got = lossy("rows", "compress: zstd", PACX_ACCURACY=rule)
        assert all(12000000 < n <= 2 * 6 * 1400000 for n in got), (rule, got)
    for rule in ("row=1e-3", "rows=1e-3,other", "rows=x", "rows=nan", "=1"):
        assert lossy("rows", "compress: zstd", PACX_ACCURACY=rule) == [0, 0], rule


# 300 messages of 4,000 bytes each way, on a communicator that has a name.
SHORT = r"""
#include <math.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	static double x[500], y[500];
	int rank, size, wrong = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_name(MPI_COMM_WORLD, "short");
	for (int s = 0; s < 300; s++) {
		int peer = (rank + size / 2) % size;
		for (int i = 0; i < 500; i++)
			x[i] = 300 + s + (i % 97) / 7.0;
		MPI_Sendrecv(x, 500, MPI_DOUBLE, peer, 1, y, 500, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < 500; i++)
			wrong += !(fabs(x[i] - y[i]) <= 1e-3);
	}
	printf("%d wrong, %d failed\n", wrong, wrong);
	MPI_Finalize();
	return wrong != 0;
}
"""


def short_messages_may_be_lossy_too():
    with tempfile.TemporaryDirectory() as tmp:
        programs(tmp, SHORT)
        got = lossy(tmp + "/prog.{mpi}", "compress: zstd", PACX_ACCURACY="short=1e-3")
        assert all(2 * 250 * 4000 <= n <= 2 * 300 * 4000 for n in got), got
        assert lossy(tmp + "/prog.{mpi}", "compress: zstd", PACX_ACCURACY="other=1e-3") == [0, 0]


def a_thin_wire_is_known_before_anything_fills_it():
    # By the train that ranks send in MPI_Init; what is sent one by one never fills it, and without the rate nothing would be compressed.
    with tempfile.TemporaryDirectory() as tmp:
        programs(tmp, SHORT.replace("s < 300", "s < 5"))
        assert lossy(tmp + "/prog.{mpi}", "emulate: {rate: 0.1MB/s}", PACX_ACCURACY="short=1e-3") == [2 * 5 * 4000] * 2


def rows_and_planes_make_it_smaller():
    # As one long row they would be a third of their length.
    given, left = lossy("rows", "compress: zstd", PACX_ACCURACY="rows=1e-3"), lossy("rows", "compress: zstd", "out", PACX_ACCURACY="rows=1e-3")
    assert all(6 * n < m for n, m in zip(left, given)), (given, left)


if __name__ == "__main__":
    if not flavors():
        sys.exit(77)
    run([(t.__name__, t) for t in (what_is_asked_for_is_counted, nothing_is_lossy_without_compression,
                                   nothing_is_lossy_that_nobody_asked_for, a_user_can_ask_by_the_name_of_a_communicator, short_messages_may_be_lossy_too,
                                   a_thin_wire_is_known_before_anything_fills_it, rows_and_planes_make_it_smaller)])
