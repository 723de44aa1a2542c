#!/usr/bin/env python3
"""signals_test.py: SIGUSR1, SIGUSR2 and SIGXCPU reach the ranks through pacxrun and --guard and hurt nobody else; Ctrl-Z stops a job, and
fg goes on with it, also when it was stopped for longer than a link may be broken."""
import os
import re
import select
import signal
import subprocess
import tempfile
import time

import sites
from sites import BUILD

TMP = tempfile.mkdtemp(prefix="pacx-signals-")
FLAVORS = sites.flavors()

# Prints "up", then the signals that come; ends at the one whose number is its argument. Ranks talk all the time.
PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t got;
static void came(int sig) { got = sig; }
int main(int argc, char **argv)
{
	int rank, mine = 0, all = 0, last = 0, until = atoi(argv[1]);
	signal(SIGUSR1, came);
	signal(SIGUSR2, came);
	signal(SIGXCPU, came);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	printf("up %d\n", rank);
	fflush(stdout);
	while (all < 4) {
		if (got != last) {
			last = got;
			printf("rank %d got %d\n", rank, last);
			fflush(stdout);
		}
		mine = got == until;
		MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		usleep(5000);
	}
	return MPI_Finalize();
}
"""


class Job:
    """Two sites of two ranks that are up; ended whatever happens."""

    def __init__(self, until, *options):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PACX_")}
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        # A process group of its own within our session, as a shell with job control makes it.
        self.p = subprocess.Popen([f"{BUILD}/bin/pacxrun", "-n", "2+2", "--mpi", f"{FLAVORS[0]}+{FLAVORS[-1]}", *options, "--",
                                   f"{TMP}/prog.{{mpi}}", str(int(until))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=env, preexec_fn=lambda: os.setpgid(0, 0))
        self.text = ""

    def until(self, pattern, count, seconds=60):
        end = time.monotonic() + seconds
        while len(re.findall(pattern, self.text, re.M)) < count:
            ready, _, _ = select.select([self.p.stdout], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self.p.stdout.fileno(), 4096).decode() if ready else ""
            assert more, f"{pattern} did not come {count} times:\n{self.text}"
            self.text += more

    def below(self):
        return sites.descendants(self.p.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        sites.kill_all(self.p)
        self.p.communicate()


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def user_signals_reach_the_ranks_through_pacxrun():
    for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
        with Job(sig) as job:
            job.until(r"^up \d", 4)
            job.p.send_signal(sig)
            job.until(rf"^rank \d got {int(sig)}$", 4)
            out, err = job.p.communicate(timeout=60)
            assert job.p.returncode == 0, f"exit status {job.p.returncode}\n{job.text}{out.decode()}{err.decode()}"


def user_signals_to_everybody_hurt_nobody():
    """As a batch system sends them to all processes of a step, but for the shells, which natively die of them, too."""
    with Job(signal.SIGUSR1) as job:
        job.until(r"^up \d", 4)
        for pid in [job.p.pid, *job.below()]:
            if sites.comm(pid).startswith(("pacx", "prog")):
                os.kill(pid, signal.SIGUSR1)
        job.until(rf"^rank \d got {int(signal.SIGUSR1)}$", 4)
        out, err = job.p.communicate(timeout=60)
        assert job.p.returncode == 0, f"exit status {job.p.returncode}\n{out.decode()}{err.decode()}"


def stopped_and_continued_job_ends_well():
    """Stopped for longer than reconnect: allows a link to be broken."""
    with Job(signal.SIGUSR1, "--link", "reconnect: 2s") as job:
        job.until(r"^up \d", 4)
        job.p.send_signal(signal.SIGTSTP)
        sites.until(lambda: state(job.p.pid) == "T")
        ranks = [p for p in job.below() if sites.comm(p).startswith(("pacxd", "prog", "mpirun", "hydra"))]
        assert len(ranks) >= 8
        sites.until(lambda: all(state(p) == "T" for p in ranks))
        time.sleep(4)  # how long the job stands still is what is tested
        os.killpg(job.p.pid, signal.SIGCONT)
        sites.until(lambda: all(state(p) not in ("T", "") for p in [job.p.pid, *ranks]))
        job.p.send_signal(signal.SIGUSR1)
        job.until(rf"^rank \d got {int(signal.SIGUSR1)}$", 4)
        out, err = job.p.communicate(timeout=60)
        assert job.p.returncode == 0 and b"interrupted" not in err, f"exit status {job.p.returncode}\n{out.decode()}{err.decode()}"


def stopped_job_can_be_ended():
    with Job(signal.SIGUSR1) as job:
        job.until(r"^up \d", 4)
        below = job.below()
        job.p.send_signal(signal.SIGTSTP)
        sites.until(lambda: state(job.p.pid) == "T")
        job.p.kill()
        job.p.wait(20)
        sites.until(lambda: all(state(p) in ("", "Z") for p in below))


TESTS = [user_signals_reach_the_ranks_through_pacxrun, user_signals_to_everybody_hurt_nobody, stopped_and_continued_job_ends_well,
         stopped_job_can_be_ended]

if __name__ == "__main__":
    sites.main(TMP, PROGRAM, TESTS)
