#!/usr/bin/env python3
"""bells_test.py: ranks and daemons of a site share a page with bells (bell.h), daemons that nap are rung, and nothing stays in /dev/shm;
without bells (PACX_BELLS=0) everything else is the same."""
import glob
import json
import os
import subprocess
import tempfile

import sites
from sites import BUILD

TMP = tempfile.mkdtemp(prefix="pacx-bells-")
FLAVORS = sites.flavors()

# Ranks pause, so that daemons nap, and speak, so that they are rung; ends when the file that it is given is there.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int rank, size, mine = 0, ended = 0, n = 0, sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while (!ended) {
		usleep(20000);
		mine = argc > 1 && rank == 0 && access(argv[1], F_OK) == 0;
		MPI_Allreduce(&mine, &ended, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		mine = ++n + rank;
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (sum != n * size + size * (size - 1) / 2)
			MPI_Abort(MPI_COMM_WORLD, 3);
	}
	printf("good %d\n", rank);
	return MPI_Finalize();
}
"""


def pages(pid):
    """The pages with bells that a process has mapped."""
    try:
        with open(f"/proc/{pid}/maps") as f:
            return {line.split(None, 5)[5].strip() for line in f if "/dev/shm/pacx-" in line}
    except OSError:
        return set()


def daemons(job):
    p = subprocess.run([f"{BUILD}/bin/pacxctl", "status", "--json"], capture_output=True, text=True, timeout=60)
    below = set(sites.descendants(job.pid))
    return [d for d in json.loads(p.stdout or "[]") if d["pid"] in below]


def left_behind():
    """Names in /dev/shm of processes that are no more."""
    return [f for f in glob.glob("/dev/shm/pacx-*") if not os.path.exists("/proc/" + f.split("-")[1])]


def start(end, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PACX_")}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
    return subprocess.Popen([f"{BUILD}/bin/pacxrun", "-n", "2+1", "--mpi", f"{FLAVORS[0]}+{FLAVORS[-1]}", "--", f"{TMP}/prog.{{mpi}}", end],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finish(job, end):
    with open(end, "w"):
        pass
    out, err = job.communicate(timeout=60)
    assert (job.returncode, out.count("good")) == (0, 3), f"exit status {job.returncode}\n{out}{err}"


def stop(job):
    if job.poll() is None:
        sites.kill_all(job)
    job.communicate()


def daemons_that_nap_are_rung():
    end = f"{TMP}/end-rung"
    job = start(end)
    try:
        sites.until(lambda: len(d := daemons(job)) == 4 and all(x["naps"] > 0 for x in d) and
                    all(x["rung"] > 0 for x in d if x["role"] == "out"), 60)
        mapped = {pid: pages(pid) for pid in sites.descendants(job.pid) if sites.comm(pid).startswith(("prog", "pacxd-"))}
        assert len(mapped) == 7, mapped
        assert all(len(m) == 1 and next(iter(m)).endswith("(deleted)") for m in mapped.values()), mapped
        assert len(set.union(*mapped.values())) == 2, mapped  # one for each site
        finish(job, end)
    finally:
        stop(job)
    assert left_behind() == [], left_behind()


def without_bells_nobody_is_rung():
    end = f"{TMP}/end-none"
    job = start(end, PACX_BELLS="0")
    try:
        found = sites.until(lambda: (d := daemons(job)) and len(d) == 4 and all(x["naps"] > 5 for x in d) and d, 60)
        assert all(x["rung"] == 0 for x in found), found
        assert not any(pages(pid) for pid in sites.descendants(job.pid))
        finish(job, end)
    finally:
        stop(job)


def a_job_that_is_killed_leaves_no_name():
    job = start(f"{TMP}/end-never")
    try:
        sites.until(lambda: len(daemons(job)) == 4, 60)
    finally:
        stop(job)
    assert left_behind() == [], left_behind()


TESTS = [daemons_that_nap_are_rung, without_bells_nobody_is_rung, a_job_that_is_killed_leaves_no_name]

if __name__ == "__main__":
    sites.main(TMP, PROGRAM, TESTS)
