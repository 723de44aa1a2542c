#!/usr/bin/env python3
"""output_test.py: output that cannot be written, --stats where it must not be written, and arguments that are too long: said, and the
exit status is not 0. With shell scripts in place of MPI jobs."""
import json
import os
import shutil
import stat
import subprocess
import tempfile

import sites
from sites import BUILD

PACXRUN = f"{BUILD}/bin/pacxrun"
TMP = tempfile.mkdtemp(prefix="pacx-output-")


def run(start, *options, program=("true",), **more):
    """One site with this start command."""
    with open(f"{TMP}/hosts.yml", "w") as f:
        f.write(f"sites: [{{name: here, ranks: 1, mpi: openmpi, port: 5, start: {json.dumps(start + ' && : {env}')}}}]\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PACX_")}
    env.update(PACX_RECORDS="no")
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PACXRUN, "-f", f"{TMP}/hosts.yml", *options, "--", *program], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, timeout=60, env=env, cwd=TMP, check=False, **more)


def full_disk_is_said():
    with open("/dev/full", "w") as full:
        p = run("echo one", stdout=full)
        assert p.returncode == 1 and "pacxrun: the output cannot be written: No space left on device\n" in p.stderr, p
        p = run("exit 7", stdout=full)
        assert p.returncode == 7, p
        for options in ("--check",), ("--site", "here", "--env"), ("--version",), ("--help",):
            p = run("echo", *options, stdout=full)
            assert p.returncode == 1 and "the output cannot be written: No space left" in p.stderr, (options, p)
        p = subprocess.run([PACXRUN, "-f", f"{TMP}/hosts.yml", "--", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=full,
                           timeout=60, env=dict(os.environ, PACX_RECORDS="no"), check=False)
        assert p.returncode == 0, p  # nothing was written
        p = run("echo two >&2; echo three", preexec_fn=lambda: os.dup2(full.fileno(), 2))
        assert (p.returncode, p.stdout) == (1, "three\n"), p


def closed_pipe_is_said():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        p = run("exec yes", stdout=out)
    assert p.returncode == 141 and "pacxrun: nobody reads the output any more" in p.stderr, p


def statistics_replace_files_only():
    victim = f"{TMP}/victim"
    os.mkfifo(f"{TMP}/fifo")
    os.mkdir(f"{TMP}/dir")
    os.symlink("/nowhere/at/all", f"{TMP}/dangling")
    for path, part in (("/dev/null", "is no regular file"), ("/dev/stdout", "is no regular file"), (f"{TMP}/fifo", "is no regular file"),
                       (f"{TMP}/dir", "is no regular file"), (f"{TMP}/dangling", "No such file"), (f"{TMP}/no/file", "cannot make a file")):
        p = run("echo started", "--stats", path)
        assert (p.returncode, p.stdout) == (2, "") and part in p.stderr, (path, p)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with open(victim, "w") as out:
        p = run("echo started", "--stats", "/dev/stdout", stdout=out)
    assert p.returncode == 2 and "is also the standard output" in p.stderr and os.path.getsize(victim) == 0, p


def statistics_keep_links_and_modes():
    with open(f"{TMP}/real", "w") as f:
        f.write("old")
    os.symlink("real", f"{TMP}/link")
    p = run("true", "--stats", f"{TMP}/link", preexec_fn=lambda: os.umask(0o027))
    assert p.returncode == 0, p
    with open(f"{TMP}/real") as f:
        assert json.load(f)["sites"][0]["name"] == "here"
    assert os.path.islink(f"{TMP}/link") and stat.S_IMODE(os.stat(f"{TMP}/real").st_mode) == 0o640
    assert not [n for n in os.listdir(TMP) if n.startswith(("real.", "link."))], os.listdir(TMP)


def statistics_that_fail_at_the_end_are_said():
    os.mkdir(f"{TMP}/gone")
    p = run(f"rmdir {TMP}/gone", "--stats", f"{TMP}/gone/stats")
    assert p.returncode == 1 and f"cannot write the statistics to {TMP}/gone/stats: No such file" in p.stderr, p


def arguments_that_are_too_long_are_said():
    p = run("{app}", program=("true", "x" * 100000, "y" * 100000))
    assert p.returncode == 127 and "put the arguments of the program into a file" in p.stderr and "131071 bytes" in p.stderr, p


TESTS = [full_disk_is_said, closed_pipe_is_said, statistics_replace_files_only, statistics_keep_links_and_modes,
         statistics_that_fail_at_the_end_are_said, arguments_that_are_too_long_are_said]

if __name__ == "__main__":
    try:
        sites.run([(t.__name__, t) for t in TESTS])
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
