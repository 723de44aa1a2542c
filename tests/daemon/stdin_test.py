#!/usr/bin/env python3
"""stdin_test.py: rank 0 reads megabytes of standard input late, on every MPI and layout, and the others nothing; jobs leave no sockets in the run directory,
and what a killed one left goes when the next one starts."""
import os
import signal
import socket
import subprocess
import tempfile
import time

import sites
from sites import BUILD

TMP = tempfile.mkdtemp(prefix="pacx-stdin-")
RUN = f"{TMP}/run"
FLAVORS = sites.flavors()
# Open MPI 5.0's launcher gives parts of a long standard input twice to a rank that reads late, without PACX, too.
WHOLE = [f for f in FLAVORS if not (f == "openmpi" and sites.version(f).startswith("5.0."))]

# Reads all of standard input at rank 0 after a pause in which the launcher has tried to deliver it; with "wait" it waits for ever.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static char buf[65536];
	unsigned long long n = 0, sum = 0;
	int rank;
	ssize_t k;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (argc > 1) {
		if (rank == 0)
			puts("up"), fflush(stdout);
		MPI_Recv(buf, 1, MPI_CHAR, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank == 0) {
		sleep(2); /* late: that is the case */
		while ((k = read(0, buf, sizeof buf)) > 0)
			for (ssize_t i = 0; i < k; i++)
				sum += (unsigned char)buf[i] * (++n % 251 + 1);
		printf("%llu %llu\n", n, sum);
	}
	if (rank != 0 && read(0, buf, 1) != 0) /* the others have none */
		return 1;
	return MPI_Finalize();
}
"""


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("PACX_")}
    return dict(env, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PACX_RUN_DIR=RUN)


def command(mpi, *options):
    return [f"{BUILD}/bin/pacxrun", "-n", "1+1", "--mpi", mpi, *options, "--", f"{TMP}/prog.{mpi}"]


def own_command(mpi, *options):
    """The same job, whose first site is started by a command of the user's: no FIFO leads to its rank 0."""
    more = "--oversubscribe" if mpi == "openmpi" else ""
    with open(f"{TMP}/own.yml", "w", encoding="utf-8") as f:
        f.write(f"sites:\n  - {{name: left, ranks: 1, mpi: {mpi}, start: 'exec mpirun.{mpi} {more} {sites.both(mpi)}'}}\n"
                f"  - {{name: right, ranks: 1, mpi: {mpi}}}\n")
    return [f"{BUILD}/bin/pacxrun", "-f", f"{TMP}/own.yml", *options, "--", f"{TMP}/prog.{mpi}"]


def much():
    data = bytes(range(256)) * (3 << 12)  # 3 MiB
    return data, f"{len(data)} {sum(b * (i % 251 + 1) for i, b in enumerate(data, 1))}\n"


def fed(run, data):
    """A job with these data; once more if Open MPI's own launcher has crashed of them (VENDORS.md)."""
    for again in (True, False):
        p = subprocess.run(run, input=data, capture_output=True, timeout=100, env=environment(), check=False)
        if not (again and p.returncode == 128 + signal.SIGSEGV and b"orte_iof_hnp_read_local_handler" in p.stderr):
            return p
        print("  # the launcher has crashed by itself; once more")
    return p


def megabytes_arrive_late_behind_a_command_of_the_users():
    data, want = much()
    for mpi in WHOLE:
        for options in ((), ("--label",)):
            p = fed(own_command(mpi, *options), data)
            label = "[left 0] " if options else ""
            assert (p.returncode, p.stdout.decode()) == (0, label + want) and b"\1" not in p.stderr, (mpi, options, p)


def what_rank_0_does_not_read_holds_nobody_up():
    data, _ = much()
    for mpi in set(FLAVORS) & {"mpich"}:  # Open MPI's launcher crashes of it, without PACX, too
        run = [*own_command(mpi)[:-1], "/bin/sh", "-c", f"exec <&-; exec {TMP}/prog.{mpi} </dev/null"]
        p = subprocess.run(run, input=data, capture_output=True, timeout=100, env=environment(), check=False)
        assert (p.returncode, p.stdout) == (0, b"0 0\n"), p


def megabytes_arrive_late():
    data, want = much()
    for mpi in WHOLE:
        for options in ((), ("--daemons", "first"), ("--form", "single")):
            p = fed(command(mpi, *options), data)
            assert (p.returncode, p.stdout.decode()) == (0, want), (mpi, options, p)


def no_standard_input_is_fine():
    for mpi in FLAVORS:
        p = subprocess.run(command(mpi), stdin=subprocess.DEVNULL, capture_output=True, timeout=100, env=environment(), check=False)
        assert (p.returncode, p.stdout) == (0, b"0 0\n"), p


def sockets():
    return [n for n in os.listdir(RUN) if n.endswith(".sock")]


def waiting(mpi):
    """A job that is up, with its sockets."""
    p = subprocess.Popen([*command(mpi), "wait"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env=environment())
    assert p.stdout.readline() == b"up\n"
    assert len(sockets()) == 4, sockets()
    return p


def sockets_go_with_the_job():
    mpi = FLAVORS[0]
    assert not sockets(), sockets()  # jobs that ended well
    p = waiting(mpi)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    assert not sockets(), sockets()
    p = waiting(mpi)
    for pid in [d for d in sites.descendants(p.pid) if sites.comm(d).startswith("pacxd")]:
        os.kill(pid, signal.SIGKILL)
    p.communicate(timeout=60)
    assert not sockets(), sockets()
    left = socket.socket(socket.AF_UNIX)
    left.bind(f"{RUN}/0123456789abcdef-left-out0.sock")
    left.close()  # as of a job whose pacxrun was killed, too
    assert sockets()
    time.sleep(4)  # sockets younger than that may be of a daemon that starts
    p = subprocess.run(command(mpi), stdin=subprocess.DEVNULL, capture_output=True, timeout=100, env=environment(), check=False)
    assert p.returncode == 0 and not sockets(), (p, sockets())


TESTS = [megabytes_arrive_late, megabytes_arrive_late_behind_a_command_of_the_users, what_rank_0_does_not_read_holds_nobody_up,
         no_standard_input_is_fine, sockets_go_with_the_job]

if __name__ == "__main__":
    sites.main(TMP, PROGRAM, TESTS)
