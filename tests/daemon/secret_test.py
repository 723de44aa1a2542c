#!/usr/bin/env python3
"""secret_test.py: the job's key is where it has to be and nowhere else: not in any command line, not in what applications
see, not in files, not in what is printed; another one in each run. What pacxrun says when it has none."""
import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time

import sites
from ports import free_ports
from sites import BUILD

PACXRUN = f"{BUILD}/bin/pacxrun"
PACXCTL = f"{BUILD}/bin/pacxctl"
TMP = tempfile.mkdtemp(prefix="pacx-secret-")
FLAVORS = sites.flavors()

# Says what it sees of the key, waits for the file "go", echoes standard input on rank 0.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static char env[1 << 20], line[1 << 16];
	int rank, size, sum = 0, at = 0;
	size_t n;
	FILE *f;
	int before = getenv("PACX_KEY") != NULL;
	(void)argc;
	f = fopen("/proc/self/environ", "r");
	n = fread(env, 1, sizeof env - 1, f);
	fclose(f);
	before |= memmem(env, n, "PACX_KEY=", 9) != NULL;
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	f = fopen("/proc/self/environ", "r");
	n = fread(env, 1, sizeof env - 1, f);
	fclose(f);
	for (size_t i = 0; i < n; i++)
		if (strncmp(env + i, "PACX_KEY=", 9) == 0)
			at = 1;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	while (rank == 0 && fgets(line, sizeof line, stdin))
		printf("input: %s", line);
	printf("rank %d of %d sum %d key %s\n", rank, size, sum, before || at || getenv("PACX_KEY") ? "seen" : "unseen");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		usleep(20000);
	return MPI_Finalize();
}
"""


def write(name, text, mode=0o644):
    path = f"{TMP}/{name}"
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def setup():
    src = write("show.c", PROGRAM)
    for m in FLAVORS:
        subprocess.run([f"mpicc.{m}", "-w", "-D_GNU_SOURCE", "-o", f"{TMP}/show.{m}", src], check=True)
    os.mkdir(f"{TMP}/bin")
    # What ssh does with the words behind the host.
    write("bin/ssh", "#!/bin/sh\nshift\nexec env -u PACX_KEY sh -c \"$*\"\n", 0o755)


def hostfile(starts, mpi, more="", site_more=("", "")):
    """Two sites of 2 and 1 ranks with these start commands ("" = default)."""
    p = free_ports(2)
    text = "sites:\n"
    for i, (start, name, ranks) in enumerate(zip(starts, ("left", "right"), (2, 1))):
        text += f"  - {{name: {name}, host: 127.0.0.1, port: {p[i]}, ranks: {ranks}, mpi: {mpi[i]}"
        text += f", start: \"{start}\"" if start else ""
        text += f", {site_more[i]}" if site_more[i] else ""
        text += "}\n"
    return write("hosts.yml", text + "deadlines: {start: 40s}\n" + more)


def environment(**more):
    e = {k: v for k, v in os.environ.items() if not k.startswith("PACX_KEY")}
    return dict(e, PATH=f"{TMP}/bin:{e['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)


def remote(m):
    opt = "--oversubscribe --bind-to none " if m == "openmpi" else ""
    return f"ssh host mpirun.{m} {opt}{sites.both(m)}"


@contextlib.contextmanager
def running(*options, lines, stdin=subprocess.DEVNULL, **env):
    """A job whose ranks wait for the file go; the output so far, which has `lines` lines from the program."""
    go, out = f"{TMP}/go", open(f"{TMP}/out", "w+b")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(go)
    p = subprocess.Popen([PACXRUN, *options, "--", f"{TMP}/show.{{mpi}}", go], stdin=stdin, stdout=out, stderr=subprocess.STDOUT,
                         env=environment(**env), start_new_session=True)

    def text():
        with open(out.name, errors="replace") as f:
            return f.read()
    try:
        end = time.monotonic() + 60
        while len(re.findall(r"^rank ", text(), re.M)) < lines:
            assert time.monotonic() < end and p.poll() is None, f"the job does not get up:\n{text()}"
            time.sleep(0.02)
        yield p, text
        write("go", "")
        assert p.wait(60) == 0, f"exit status {p.returncode}\n{text()}"
    finally:
        sites.kill_all(p)
        p.wait()
        out.close()


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def keys_of(pid):
    """Keys in the environments of everything below pid."""
    found = {}
    for p in sites.descendants(pid):
        for key in re.findall(rb"PACX_KEY=([0-9a-f]{64})", read(f"/proc/{p}/environ")):
            found.setdefault(key, []).append(sites.comm(p))
    return found


def check_hidden(pid, text):
    """The one key of the job; it stands in no command line, not with daemons and ranks, in no file that others can read."""
    found = keys_of(pid)
    assert len(found) == 1, f"{len(found)} keys: {list(found.values())}"
    key, holders = next(iter(found.items()))
    for p in filter(str.isdigit, os.listdir("/proc")):
        assert key not in read(f"/proc/{p}/cmdline"), f"the command line of {p} has the key"
    assert not [h for h in holders if h.startswith(("pacxd-", "show.", "pacxrun", "pacxrank"))], f"the key is left with {holders}"
    assert key.decode() not in text, "the key was printed"
    for base in ("/tmp", "/dev/shm", "/run", TMP):
        for name in os.listdir(base):
            path = f"{base}/{name}"
            with contextlib.suppress(OSError):
                st = os.lstat(path)
                if stat.S_ISREG(st.st_mode) and st.st_mode & 0o44 and st.st_size < 1 << 24:
                    assert key not in read(path), f"{path} has the key"
    return key


def check_all_in(text):
    assert sorted(re.findall(r"^rank .*", text, re.M)) == [f"rank {i} of 3 sum 3 key unseen" for i in range(3)], text


def job_of(starts, mpi, *options, **more):
    with running("-f", hostfile(starts, mpi), "-v", *options, lines=3, **more) as (p, text):
        check_all_in(text())
        return check_hidden(p.pid, text())


def local_job_hides_its_key_and_has_another_each_time():
    mpi = [FLAVORS[0], FLAVORS[-1]]
    first, second = job_of(["", ""], mpi), job_of(["", ""], mpi)
    assert first != second, "two runs have the same key"


def remote_job_hides_its_key():
    mpi = [FLAVORS[-1], FLAVORS[0]]
    first, second = job_of([remote(m) for m in mpi], mpi), job_of(["", remote(mpi[1])], mpi)
    assert first != second, "two runs have the same key"


def single_form_and_own_place_of_the_key():
    m = FLAVORS[0]
    run = write("run.sh", f"#!/bin/sh\nn=$1\nshift\nexec mpirun.{m} "
                f"{'--oversubscribe --bind-to none ' if m == 'openmpi' else ''}-np $n \"$@\"\n", 0o755)
    job_of(["", f"ssh host {{key}} {run} {{procs}} {{app}}"], [m, m])
    job_of(["", ""], [FLAVORS[0], FLAVORS[-1]], "--form", "single")
    job_of(["", f"ssh host 'cd / && {{guard}} {{key}} {run} {{procs}} {{app}}'"], [m, m])


def standard_input_comes_behind_the_key():
    m = FLAVORS[0]
    path = write("input", "one\n  two\\\nthree\n")
    with open(path, "rb") as stdin, \
            running("-f", hostfile([remote(m), remote(m)], [m, m]), lines=3, stdin=stdin) as (_, text):
        assert re.findall(r"^input: (.*)", text(), re.M) == ["one", "  two\\", "three"], text()


def key_of_a_file_is_used():
    m = FLAVORS[0]
    key = f"{TMP}/key"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(key)
    subprocess.run([PACXCTL, "keygen", key], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    want = read(key).strip()
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600 and len(want) == 64
    assert job_of(["", remote(m)], [m, m], "--key", key) == want
    assert job_of(["", remote(m)], [m, m], PACX_KEY_FILE=key) == want
    with running("-f", hostfile(["", ""], [m, m], site_more=(f"key: {key}", f"key: {key}")), lines=3) as (p, text):
        check_all_in(text())
        assert list(keys_of(p.pid)) == [want]
    # Under the home directory.
    with running("-f", hostfile(["", ""], [m, m], site_more=("key: ~/key", "key: ~/key")), lines=3, HOME=TMP) as (_, text):
        check_all_in(text())


def without_tls_there_is_no_key():
    m = FLAVORS[0]
    path = hostfile(["", remote(m)], [m, m], more="links: [{default: , security: none}]\n")
    with running("-f", path, lines=3) as (p, text):
        check_all_in(text())
        assert not keys_of(p.pid)


def refusal(*options, **env):
    p = subprocess.run([PACXRUN, *options, "--", f"{TMP}/show.{{mpi}}", "x"], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60, env=environment(**env), check=False)
    assert p.returncode == 2, f"exit status {p.returncode}\n{p.stderr}"
    return p.stderr


def site_by_hand_needs_a_file():
    m = FLAVORS[0]
    path = hostfile(["manual", ""], [m, m])
    said = refusal("-f", path)
    for part in ("site 'left'", "make one with: pacxctl keygen FILE, copy it to each site with mode 600", "security: none"):
        assert part in said, said
    said = refusal("-f", path, "--site", "right")
    assert "pacxctl keygen" in said, said
    env = subprocess.run([PACXRUN, "-f", path, "--site", "left", "--env"], capture_output=True, text=True, check=True,
                         env=environment(PACX_KEY="0f" * 32)).stdout
    assert "PACX_KEY_FILE" in env and "PACX_KEY=" not in env and "0f0f" not in env, env
    checked = subprocess.run([PACXRUN, "-f", path, "--check", "--", "/bin/true"], capture_output=True, text=True, check=True,
                             env=environment()).stdout
    assert "the key is missing" in checked, checked


def key_file_must_be_private():
    m = FLAVORS[0]
    path = hostfile(["", ""], [m, m])
    key = write("open-key", "ab" * 32 + "\n", 0o644)
    assert f"chmod 600 '{key}'" in refusal("-f", path, "--key", key)
    os.chmod(key, 0o620)
    assert f"chmod 600 '{key}'" in refusal("-f", path, PACX_KEY_FILE=key)
    assert f"chmod 600 '{key}'" in refusal("-f", hostfile(["", ""], [m, m], site_more=(f"key: {key}", "")))
    said = refusal("-f", path, "--key", write("bad-key", "ab" * 31, 0o600))
    assert "64 hexadecimal digits" in said and "abab" not in said, said
    assert "No such file" in refusal("-f", path, "--key", "/nowhere/key")


def start_commands_that_lose_the_key_are_refused():
    m = FLAVORS[0]
    for start, part in ((remote(m).replace("ssh host", "ssh -p 22 -n host"), "ssh -n"),
                        (remote(m).replace("ssh host", "ssh -tt host"), "ssh -tt"),
                        (f"ssh gate {remote(m).replace('ssh host', 'ssh -xtt -p22 host')}", "ssh -tt"),
                        ("ssh host ./run.sh {procs} {app}", "put {key}"),
                        ("ssh host my-mpirun {procs} {app}", "put {key}")):
        said = refusal("-f", hostfile(["", start], [m, m]))
        assert part in said, said
    # These are fine: -n of somebody else, one -t, an argument of an option.
    for start in (remote(m).replace("ssh host", "ssh -t host nice -n 5"),
                  remote(m).replace("ssh host", "ssh -o tt -i nn -l n host"),
                  "ssh host 'cd /x/mpirunner; /opt/bin/mpiexec.hydra -n {procs} {app}'"):
        checked = subprocess.run([PACXRUN, "-f", hostfile(["", start], [m, m]), "--check", "--", "/bin/true"], text=True,
                                 capture_output=True, env=environment(), check=False)
        assert checked.returncode == 0, checked.stderr
        assert re.search(r"PACX_KEY.*(mpirun\.|hydra)", checked.stdout), checked.stdout


TESTS = [local_job_hides_its_key_and_has_another_each_time, remote_job_hides_its_key, single_form_and_own_place_of_the_key,
         standard_input_comes_behind_the_key, key_of_a_file_is_used, without_tls_there_is_no_key, site_by_hand_needs_a_file,
         key_file_must_be_private, start_commands_that_lose_the_key_are_refused]

if __name__ == "__main__":
    try:
        setup()
        sites.run([(t.__name__, t) for t in TESTS])
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
