#!/usr/bin/env python3
"""Kill each kind of process of a real job in turn: pacxrun ends with an error and nothing of the job is left. The same when a rank
ends as if all were well, but without MPI_Finalize; with MPI_Finalize in an exit handler all is well.

usage: tests/daemon/kill_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import sites

BUILD = os.path.abspath(os.environ.get("PACX_BUILD", "build"))
MARK = "PACXTEST_" + uuid.uuid4().hex
# Ranks that wait for a message that never comes; with "leaves N" rank N ends instead, with "late" all do, and finalize when they exit.
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pid_t rank;
static void finalize(void) { if (getpid() == rank) MPI_Finalize(); }
int main(int argc, char **argv)
{
	int x, late = argc > 1 && !strcmp(argv[1], "late");
	rank = getpid();
	if (late)
		atexit(finalize);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &x);
	MPI_Barrier(MPI_COMM_WORLD);
	puts("up");
	fflush(stdout);
	if (late && x == 0) {
		if (fork() == 0)
			exit(0); /* this is not the rank */
		wait(NULL);
	}
	if (late || (argc > 2 && x == atoi(argv[2])))
		return 0;
	MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return MPI_Finalize();
}
"""
# What is killed: a name, and how its command line begins (the launcher of Open MPI 5 calls itself prterun).
VICTIMS = [("guard", BUILD + "/bin/pacxrun --guard"), ("shell", "/bin/sh -c mpirun"), ("launcher", ("mpirun.", "prterun")),
           ("proxy", "hydra_pmi_proxy"), ("daemon", BUILD + "/lib/pacx/pacxd-"), ("rank", "RANK")]


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if MARK.encode() not in f.read():
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read().replace(b"\0", b" ").decode(errors="replace")
            if line:
                found.append((int(pid), line))
        except OSError:
            pass
    return found


def is_gone(deadline):
    until = time.monotonic() + deadline
    while processes():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def kill_one(program, mpi, begins):
    """None = fine, else what is wrong; "skip" when this MPI has no such process."""
    env = dict(os.environ, **{MARK: "1"})
    job = subprocess.Popen([BUILD + "/bin/pacxrun", "-n", "1+1", "--mpi", mpi, "--", program], env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        seen = b""
        while seen.count(b"up") < 2 or seen.count(b"\n") < 2:
            more = select.select([job.stdout], [], [], 30)[0] and os.read(job.stdout.fileno(), 100)
            if not more:
                return f"the job did not start: {seen}"
            seen += more
        if begins is None:
            job.kill()
        else:
            hits = [p for p, line in processes() if line.startswith(begins) or
                    os.path.basename(line.split()[0]).startswith(begins)]
            if not hits:
                return "skip"
            os.kill(hits[0], signal.SIGKILL)
        _, err = job.communicate(timeout=40)
        if not is_gone(10):
            return f"left behind: {processes()}"
        if begins is not None and (job.returncode == 0 or "pacxrun: site '" not in err):
            return f"exit status {job.returncode}, errors: {err}"
        if "interrupted" in err.split("pacxrun: site '")[0]:
            return f"links that break because of it are named before the site that failed: {err}"
        return None
    except subprocess.TimeoutExpired:
        return f"pacxrun has not ended: {processes()}"
    finally:
        for pid, _ in processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        job.communicate()


def end_by_itself(program, mpi, good, *args):
    """None = fine, else what is wrong."""
    try:
        job = subprocess.run([BUILD + "/bin/pacxrun", "-n", "1+1", "--mpi", mpi, "--", program, *args], env=dict(os.environ, **{MARK: "1"}),
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=40)
        if not is_gone(10):
            return f"left behind: {processes()}"
        if good and mpi == "mpich" and sites.version(mpi).startswith("4.2.") and job.returncode == 9:
            return None  # natively, too (VENDORS.md)
        if good != (job.returncode == 0) or good == ("ended without MPI_Finalize" in job.stderr):
            return f"exit status {job.returncode}, errors: {job.stderr}"
        return None
    except subprocess.TimeoutExpired:
        return f"pacxrun has not ended: {processes()}"
    finally:
        for pid, _ in processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


def main():
    failed = 0
    flavors = [m for m in ("openmpi", "mpich") if shutil.which("mpicc." + m)]
    if not flavors:
        print("no MPI")
        return 77
    tests = [(f"nothing_left_when_{name}_is_killed_{mpi}", mpi, begins) for mpi in flavors
             for name, begins in [("pacxrun", None), *VICTIMS]]
    tests += [(f"{name}_{mpi}", mpi, how) for mpi in flavors for name, how in
              [("first_rank_leaves_without_finalize", (False, "leaves", "0")), ("last_rank_leaves_without_finalize", (False, "leaves", "1")),
               ("finalize_in_an_exit_handler_is_fine", (True, "late"))]]
    tests = [t for t in tests if not sys.argv[1:] or t[0] in sys.argv[1:]]
    print(f"1..{len(tests)}", flush=True)
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/rank.c", "w") as f:
            f.write(SOURCE)
        for mpi in flavors:
            subprocess.run(["mpicc." + mpi, "-o", f"{d}/rank.{mpi}", d + "/rank.c"], check=True)
        for name, mpi, begins in tests:
            program = f"{d}/rank.{mpi}"
            if isinstance(begins, tuple) and isinstance(begins[0], bool):
                wrong = end_by_itself(program, mpi, *begins)
            else:
                wrong = kill_one(program, mpi, program if begins == "RANK" else begins)
            if wrong == "skip":
                print(f"skip {name}: this MPI has no such process", flush=True)
            elif wrong:
                failed += 1
                print(f"  {wrong}\nnot ok {name}", flush=True)
            else:
                print(f"ok {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
