#!/usr/bin/env python3
"""one_job_test.py: a job is well only if it was one job. Programs that PACX does not reach, that never call MPI_Init, ranks that
leave by ways that no launcher notices, sites that end before the others: named within seconds, with an exit status that is not 0."""
import os
import subprocess
import tempfile
import time

import sites
from sites import BUILD

TMP = tempfile.mkdtemp(prefix="pacx-one-")
FLAVORS = sites.flavors()
LONG = "600s"  # nothing here may wait for a deadline of the job

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int rank, size, who = argc > 2 ? atoi(argv[2]) : -1;
	const char *how = argc > 1 ? argv[1] : "";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	printf("rank %d of %d\n", rank, size);
	fflush(stdout);
	if (!strcmp(how, "children")) { /* none of them is the rank */
		char *const none[] = { NULL };
		if (fork() == 0)
			_exit(0);
		if (vfork() == 0)
			_exit(0);
		if (vfork() == 0)
			execl("/bin/true", "true", (char *)NULL);
		if (execv("/dev/null/program", none) == 0 || system("exit 0") != 0)
			return 1;
		while (wait(NULL) > 0)
			;
	}
	if (rank == who) {
		if (!strcmp(how, "_exit"))
			_exit(0);
		if (!strcmp(how, "_Exit"))
			_Exit(0);
		if (!strcmp(how, "quick_exit"))
			quick_exit(0);
		if (!strcmp(how, "exit7"))
			exit(7);
		if (!strcmp(how, "exit_group"))
			syscall(SYS_exit_group, 0);
		if (!strcmp(how, "execl"))
			execl("/bin/true", "true", "one", (char *)NULL);
		if (!strcmp(how, "execlp"))
			execlp("true", "true", (char *)NULL);
		if (!strcmp(how, "execvp"))
			execvp("true", (char *const[]){ "true", NULL });
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	if (!strcmp(how, "after")) /* the rank has done its part */
		execle("/bin/sh", "sh", "-c", "echo \"after $X\"", (char *)NULL, (char *const[]){ "X=execle", NULL });
	return 0;
}
"""


def run(*args, seconds=45, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PACX_")}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
    start = time.monotonic()
    p = subprocess.run([f"{BUILD}/bin/pacxrun", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, env=env,
                       check=False)
    assert time.monotonic() - start < seconds, f"took {time.monotonic() - start} s\n{p.stderr}"
    return p


def local(*program, options=(), **more):
    """Two sites of two ranks; {mpi} in the program is the site's."""
    return run("-n", "2+2", "--mpi", f"{FLAVORS[0]}+{FLAVORS[-1]}", "--timeout", LONG, *options, "--", *program, **more)


def failed(p, code, *parts):
    assert p.returncode == code or (code is None and p.returncode), f"exit status {p.returncode}\n{p.stdout}{p.stderr}"
    for part in parts:
        assert part in p.stderr, f"{part!r} is not in:\n{p.stderr}"


def said(p):
    """Lines of standard error; a slow machine keeps a site waiting, which is said, and is no fault."""
    return [x for x in p.stderr.splitlines() if x and ": waiting for " not in x]


PROG = f"{TMP}/prog.{{mpi}}"
NO_PART = "has ended with exit status 0, but was no part of the job"


def good_jobs_are_good():
    for options in ((), ("--form", "single"), ("--daemons", "first"), ("--label",)):
        p = local(PROG, options=options)
        assert p.returncode == 0 and len([x for x in p.stdout.splitlines() if x.endswith("of 4")]) == 4, p.stdout + p.stderr
        assert not said(p) and "pacx " not in p.stdout, p.stderr


def programs_past_the_preload_are_named_by_the_daemons():
    for options in ((), ("--daemons", "first"), ("--form", "single")):
        failed(local("env", "-u", "LD_PRELOAD", PROG, options=options), 3,
               "all ranks of this site have called MPI_Init, but 2 of them (0, 1) not through PACX")


def started(m, words, *program):
    """Two sites of two ranks over m, whose start command is mpirun and these words."""
    more = "--oversubscribe --bind-to none" if m == "openmpi" else ""
    with open(f"{TMP}/hosts.yml", "w") as f:
        f.write("sites:\n")
        for name in "left", "right":
            f.write(f"  - {{name: {name}, ranks: 2, mpi: {m}, start: 'mpirun.{m} {more} {words}'}}\n")
        f.write(f"deadlines: {{start: {LONG}}}\n")
    return run("-f", f"{TMP}/hosts.yml", "--", *program)


def sites_without_daemons_are_no_part_of_the_job():
    m = FLAVORS[0]
    failed(started(m, "-np {ranks} {exe}", f"{TMP}/prog.{m}"), 3, NO_PART, "the preload did not reach it")


def one_rank_past_the_preload_is_named():
    script = f"{TMP}/one.sh"
    with open(script, "w") as f:
        f.write(f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 ] && unset LD_PRELOAD\nexec {TMP}/prog.$PACX_MPI\n')
    os.chmod(script, 0o755)
    failed(local(script), 3, "but 1 of them (1) not through PACX")


def without_init(p):
    """Said by a daemon, or by Open MPI's launcher where that sees it first and ends the site, mostly with a word; by pacxrun in any case."""
    failed(p, None, "has ended before all its ranks had called MPI_Init")
    return p.stderr


def with_a_word(said):
    assert "ended without MPI_Init" in said or 'this process did not call "init" before exiting' in said, said


def programs_without_mpi_init_end_the_job_at_once():
    p = local("echo", "usage")
    without_init(p)
    assert p.stdout.splitlines().count("usage") == 4, p.stdout  # hydra writes there, too
    p = local("echo", "usage", options=("--daemons", "first"))
    without_init(p)
    without_init(local("echo", "usage", options=("--form", "single")))


def daemons_that_come_late_leave_nobody_without_a_word():
    """The first daemon has not seen the ranks, the second one knows before it that they are gone."""
    late = f"{TMP}/late.sh"
    with open(late, "w") as f:
        f.write('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 2 ] && sleep 3\nexec "$@"\n')
    os.chmod(late, 0o755)
    words = f"-np {{ranks}} {{app}} : -np {{daemons}} {late} {{pacxd}}"
    with_a_word(without_init(started(FLAVORS[-1], words, "sh", "-c", "sleep 2; echo usage")))


def start_commands_that_lose_the_site_are_found():
    with open(f"{TMP}/hosts.yml", "w") as f:
        f.write("sites:\n  - {name: left, ranks: 1, mpi: %s, start: 'true {app} {pacxd}'}\n"
                "  - {name: right, ranks: 1, mpi: %s}\ndeadlines: {start: %s}\n" % (FLAVORS[0], FLAVORS[0], LONG))
    failed(run("-f", f"{TMP}/hosts.yml", "--", f"{TMP}/prog.{FLAVORS[0]}"), 3, "pacxrun: site 'left' " + NO_PART)


def daemons_that_were_forgotten_are_explained():
    """-np {ranks} {app}: the two processes become the daemons, and no application is left."""
    m = FLAVORS[-1]
    more = "--oversubscribe --bind-to none" if m == "openmpi" else ""
    with open(f"{TMP}/hosts.yml", "w") as f:
        f.write(f"sites:\n  - {{name: left, ranks: 2, mpi: {m}, start: 'mpirun.{m} {more} -np {{ranks}} {{app}}'}}\n"
                f"  - {{name: right, ranks: 1, mpi: {m}}}\ndeadlines: {{start: {LONG}}}\n")
    p = run("-f", f"{TMP}/hosts.yml", "--", f"{TMP}/prog.{m}")
    failed(p, None, "0 application ranks, but the hostfile says 2: the daemons are among", "write -np {procs} {app}, or")
    assert "Floating" not in p.stdout + p.stderr and "signal 8" not in p.stdout + p.stderr, p


def standard_error_may_go_elsewhere():
    """The other site's daemons tell, or the user says that nobody does."""
    m = FLAVORS[0]
    more = "--oversubscribe --bind-to none" if m == "openmpi" else ""
    text = "sites:\n"
    for name, to in ("left", f"2>{TMP}/err"), ("right", "WHERE"):
        text += f"  - {{name: {name}, ranks: 1, mpi: {m}, start: 'mpirun.{m} {more} {sites.both(m)} {to}'}}\n"
    path = f"{TMP}/hosts.yml"
    with open(path, "w") as f:
        f.write(text.replace("WHERE", ""))
    p = run("-f", path, "--", f"{TMP}/prog.{m}")
    assert (p.returncode, said(p)) == (0, []), p.stderr
    with open(path, "w") as f:
        f.write(text.replace("WHERE", f"2>{TMP}/err2"))
    failed(run("-f", path, "--", f"{TMP}/prog.{m}"), 3, "PACX_RECORDS=no")
    p = run("-f", path, "--", f"{TMP}/prog.{m}", PACX_RECORDS="no")
    assert (p.returncode, said(p)) == (0, []), p.stderr


def ranks_that_leave_are_named():
    for how, word in (("_exit", "ended by _exit"), ("_Exit", "ended by _exit"), ("quick_exit", "ended by quick_exit"),
                      ("execl", "became 'true' by exec"), ("execlp", "became 'true' by exec"), ("execvp", "became 'true' by exec")):
        for who in (0, 3) if how == "_exit" else (3,):
            failed(local(PROG, how, str(who)), None, f"rank {who} {word} without MPI_Finalize")


def ranks_whose_death_the_launcher_is_told_to_ignore_are_named():
    ignore = {"openmpi": "--oversubscribe --bind-to none --enable-recovery --mca orte_abort_on_non_zero_status 0",
              "mpich": "-disable-auto-cleanup"}
    for m in FLAVORS:
        with open(f"{TMP}/hosts.yml", "w") as f:
            f.write(f"sites:\n  - {{name: left, ranks: 1, mpi: {FLAVORS[0]}}}\n  - {{name: right, ranks: 2, mpi: {m}, start: "
                    f"'mpirun.{m} {ignore[m]} {sites.both(m)}'}}\ndeadlines: {{start: {LONG}}}\n")
        for how in "exit7", "exit_group":
            failed(run("-f", f"{TMP}/hosts.yml", "--", PROG, how, "2"), None, "rank 2 (process ", ") has ended without MPI_Finalize")


def children_and_the_time_after_mpi_finalize_are_free():
    p = local(PROG, "children")
    assert (p.returncode, said(p)) == (0, []), p.stderr
    if "mpich" in FLAVORS and not sites.version("mpich").startswith(("4.0.", "4.1.")):
        return  # 4.2 and 5.0, whose launcher returns 9 when a rank becomes another program after MPI_Finalize, without PACX, too
    p = local(PROG, "after")
    assert p.returncode == 0 and p.stdout.count("after execle\n") == 4, p.stdout + p.stderr


TESTS = [good_jobs_are_good, programs_past_the_preload_are_named_by_the_daemons,
         sites_without_daemons_are_no_part_of_the_job, one_rank_past_the_preload_is_named, programs_without_mpi_init_end_the_job_at_once,
         *([daemons_that_come_late_leave_nobody_without_a_word] if all(map(sites.mpmd, FLAVORS)) else []),
         start_commands_that_lose_the_site_are_found, daemons_that_were_forgotten_are_explained,
         standard_error_may_go_elsewhere, ranks_that_leave_are_named,
         ranks_whose_death_the_launcher_is_told_to_ignore_are_named, children_and_the_time_after_mpi_finalize_are_free]

if __name__ == "__main__":
    sites.main(TMP, PROGRAM, TESTS)
