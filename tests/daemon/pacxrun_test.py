#!/usr/bin/env python3
"""pacxrun with shell scripts in place of MPI jobs: exit status, signals, orphans, streams, labels, statistics.

usage: tests/daemon/pacxrun_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from cases import contains, equal, forget, main, test
from sites import mpmd

BUILD = os.path.abspath(os.environ.get("PACX_BUILD", "build"))
PACXRUN = BUILD + "/bin/pacxrun"
LABEL = BUILD + "/lib/pacx/pacxlabel"
EMPTY = tempfile.TemporaryDirectory()
MISSING = EMPTY.name + "/missing"
forget()
os.environ["PACX_RECORDS"] = "no"  # nobody here is a daemon


class Job:
    """One pacxrun over a hostfile made of start commands; knows every process it leaves behind."""

    def __init__(self, starts, *options, program=(), head="", keys="", **popen):
        self.dir = tempfile.TemporaryDirectory()
        self.mark = "PACXTEST_" + uuid.uuid4().hex
        path = self.dir.name + "/hosts.yml"
        with open(path, "w") as f:
            f.write(head + "sites:\n")
            for i, start in enumerate(starts):
                if not re.search("{(app|exe|env|pacxd)}", start):
                    start += " && : {env}"  # what starts nothing of PACX is refused
                f.write(f"  - {{name: s{i}, ranks: 2, mpi: openmpi, start: {json.dumps(start)}{keys}}}\n")
        env = dict(os.environ, **{self.mark: "1"})
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        self.p = subprocess.Popen([PACXRUN, "-f", path, *options, "--", *program], env=env, text=True, cwd=self.dir.name,
                                  start_new_session=True, **popen)

    def end(self, deadline=20, **communicate):
        self.out, self.err = self.p.communicate(timeout=deadline, **communicate)
        return self

    def alive(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if self.mark.encode() in f.read():
                        with open(f"/proc/{pid}/cmdline", "rb") as g:
                            found.append((int(pid), g.read().replace(b"\0", b" ").decode(errors="replace")))
            except OSError:
                pass
        return found

    def find(self, part):
        """Wait until a process of the job has `part` in its command line; its pid."""
        for _ in range(400):
            for pid, line in self.alive():
                if part in line:
                    return pid
            time.sleep(0.02)
        raise AssertionError(f"no process '{part}' in {self.alive()}")

    def nobody_left(self, deadline):
        until = time.monotonic() + deadline
        while self.alive():
            if time.monotonic() > until:
                left = self.alive()
                for pid, _ in left:
                    os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"left behind: {left}")
            time.sleep(0.05)

    def line(self):
        """The next line of standard output: the site got this far."""
        ready, _, _ = select.select([self.p.stdout], [], [], 10)
        if not ready:
            raise AssertionError("no output in 10 s")
        return self.p.stdout.readline()


@test
def all_sites_end_with_0():
    job = Job(["echo one", "echo two", "true"]).end()
    equal(job.p.returncode, 0)
    equal(sorted(job.out.split()), ["one", "two"])
    equal(job.err, "")


@test
def first_failure_decides_the_exit_status():
    job = Job(["sleep 0.5; exit 4", "exit 3"]).end()
    equal(job.p.returncode, 3)
    contains(job.err, "pacxrun: site 's1' ended with exit status 3\n")
    contains(job.err, "pacxrun: site 's0' ended with exit status 4\n")


@test
def signal_of_a_site_is_128_plus_n():
    job = Job(["kill -SEGV $$", "true"]).end()
    equal(job.p.returncode, 139)
    contains(job.err, "pacxrun: site 's0' was ended by signal 11 (Segmentation fault)\n")


@test
def site_that_ends_early_with_0_disturbs_nobody():
    job = Job(["true", "sleep 1.5; echo late"]).end()
    equal((job.p.returncode, job.out, job.err), (0, "late\n", ""))


@test
def missing_command_is_127():
    job = Job([MISSING + "/mpirun"]).end()
    equal(job.p.returncode, 127)


@test
def others_get_3_s_after_a_failure():
    start = time.monotonic()
    job = Job(["exit 7", "sleep 60"]).end(25)
    equal(job.p.returncode, 7)
    contains(job.err, "site 's1' is still running; ending it")
    if not 2.5 < time.monotonic() - start < 14:
        raise AssertionError(f"took {time.monotonic() - start} s")
    job.nobody_left(0)


@test
def stdin_goes_to_rank_0_only():
    job = Job(["sed s/^/zero:/", "sed s/^/one:/"], stdin=subprocess.PIPE).end(input="a\nb\n")
    equal((job.p.returncode, job.out), (0, "zero:a\nzero:b\n"))


@test
def stdin_from_a_terminal_goes_to_rank_0():
    master, slave = pty.openpty()
    job = Job(["read x; echo got $x"], stdin=slave, preexec_fn=lambda: fcntl.ioctl(0, 0x540E, 0))  # TIOCSCTTY
    os.close(slave)
    os.write(master, b"hello\n")
    job.end()
    os.close(master)
    equal((job.p.returncode, job.out), (0, "got hello\n"))


@test
def stdin_reaches_rank_0_through_a_fifo_where_the_launcher_cannot():
    job = Job(['echo "fifo $PACX_STDIN" >&2; cat "$PACX_STDIN"; cat', "cat"], "--daemons", "first", "--mpi", "mpich",
              stdin=subprocess.PIPE).end(input="x\n" * 50000)
    equal((job.p.returncode, job.out), (0, "x\n" * 50000))
    fifo = re.search(r"^fifo (.+)$", job.err, re.M)[1]
    equal((os.path.exists(fifo), os.path.exists(os.path.dirname(fifo))), (False, False))


@test
def sigterm_ends_all_sites():
    for sig, code in (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129):
        job = Job(["echo up; sleep 60", "sleep 60 & sleep 60"])
        job.line()
        job.find("sleep")
        job.p.send_signal(sig)
        job.end()
        equal(job.p.returncode, code)
        job.nobody_left(0)


@test
def launcher_gets_sigterm_once_and_time_to_clean_up():
    job = Job(["trap 'echo term' TERM; echo up; sleep 1 & wait; wait; sleep 0.5; echo clean"])
    job.line()
    job.p.terminate()
    job.end()
    equal((job.p.returncode, job.out), (143, "term\nclean\n"))


@test
def stubborn_site_is_killed_after_5_s():
    start = time.monotonic()
    job = Job(["trap '' TERM; echo up; while :; do sleep 1; done"])
    job.line()
    job.p.terminate()
    job.end()
    equal(job.p.returncode, 143)
    if not 4 < time.monotonic() - start < 8:
        raise AssertionError(f"took {time.monotonic() - start} s")
    job.nobody_left(0)


@test
def second_signal_kills_at_once():
    job = Job(["trap '' TERM INT; echo up; while :; do sleep 1; done", "trap '' TERM; setsid sleep 60"])
    job.line()
    start = time.monotonic()
    job.p.send_signal(signal.SIGINT)
    job.find("sleep")
    time.sleep(0.2)  # two signals at the same time would be one
    job.p.send_signal(signal.SIGINT)
    job.end()
    equal(job.p.returncode, 130)
    if time.monotonic() - start > 3:
        raise AssertionError(f"took {time.monotonic() - start} s")
    job.nobody_left(0)


STRAYS = "setsid sleep 61 & (setsid sh -c 'sleep 62 & sleep 62' &) ; nohup sleep 63 >/dev/null 2>&1 & "


@test
def nothing_outlives_its_site():
    job = Job([STRAYS + "exit 0", "true"]).end()
    equal(job.p.returncode, 0)
    job.nobody_left(0)


@test
def no_orphans_when_pacxrun_is_killed():
    job = Job([STRAYS + "echo up; sleep 60", "sleep 60"])
    job.line()
    job.find("sleep 62")
    job.p.kill()
    job.end()
    job.nobody_left(8)


@test
def no_orphans_when_a_guard_is_killed():
    job = Job([STRAYS + "echo up; sleep 60", "sleep 3"])
    job.line()
    job.find("sleep 62")
    os.kill(job.find("--guard -p"), signal.SIGKILL)
    job.end(25)
    equal(job.p.returncode, 137)
    job.nobody_left(0)


@test
def no_orphans_when_a_launcher_is_killed():
    job = Job([STRAYS + "echo up; sleep 64; exit 5", "sleep 1"])
    job.line()
    job.find("sleep 62")
    pid = [p for p, line in job.alive() if line.startswith("/bin/sh -c setsid sleep 61")]
    os.kill(min(pid), signal.SIGKILL)
    job.end(25)
    equal(job.p.returncode, 137)
    job.nobody_left(0)


@test
def slow_reader_loses_nothing():
    n = 300000
    job = Job([f"seq {n}", f"seq {n} >&2"])
    time.sleep(0.5)
    job.end(30)
    equal(job.p.returncode, 0)
    equal(job.out, "".join(f"{i}\n" for i in range(1, n + 1)))
    equal(job.err, job.out)


@test
def signals_work_while_nobody_reads():
    job = Job(["echo up; exec cat /dev/zero"])
    job.line()
    time.sleep(0.5)
    job.p.terminate()
    job.nobody_left(10) if job.p.wait(10) else None
    equal(job.p.returncode, 143)
    job.end()


@test
def reader_that_goes_away_ends_the_job():
    job = Job(["exec yes", "sleep 60"])
    job.line()
    job.p.stdout.close()
    job.p.wait(15)
    equal(job.p.returncode, 141)
    job.nobody_left(0)


@test
def sites_inherit_nothing_but_the_standard_streams():
    with open("/dev/null") as f:
        job = Job(["echo /proc/self/fd/*", "echo /proc/self/fd/*"], pass_fds=[f.fileno()]).end()
    for line in job.out.splitlines():
        extra = set(re.findall(r"/fd/(\d+)", line)) - {"0", "1", "2"}
        if len(extra) > 1:  # the shell's own for reading the directory
            raise AssertionError(line)


@test
def odd_arguments_arrive_unchanged():
    words = ["a b", "", "it's", '"q"', "$HOME", "`id`", "back\\slash", "new\nline", "*", "{mpi}-{site}", "{x}", "-n", "caf\u00e9"]
    show = "import sys; print(sys.argv[1:])"
    expected = [w.replace("{mpi}", "openmpi").replace("{site}", "s0") for w in words]
    for start in "{app}", "sh -c 'exec {app}'", 'sh -c "{app}"', "env X=1 {app}", "{exe} {args}":
        job = Job([start], program=[sys.executable, "-c", show, *words], keys=", env: {LD_PRELOAD: ''}")
        job.end()
        equal((job.p.returncode, job.out), (0, f"{expected!r}\n"), start)


@test
def odd_arguments_get_through_real_launchers():
    words = ["a b", "", "it's", '"q"', "$HOME", "`id`", "back\\slash", "new\nline", "*", ":", "-np", "caf\u00e9", "--", "{x}"]
    show = "import sys; print(sys.argv[1:])"
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    for mpirun in "mpirun.openmpi --oversubscribe", "mpirun.mpich":
        if subprocess.run(["sh", "-c", f"command -v {mpirun.split()[0]}"], capture_output=True).returncode:
            continue
        os.environ.update(env)
        if not mpmd(mpirun.split()[0].split(".")[1]):
            continue
        job = Job([f"{mpirun} -np 1 {{app}} : -np 2 true"], program=[sys.executable, "-c", show, *words],
                  keys=", env: {LD_PRELOAD: ''}").end()
        equal((job.p.returncode, job.out), (0, f"{words!r}\n"), mpirun + job.err)


@test
def environment_of_a_site():
    job = Job(["env", "true"], "--stats", "S", keys=", env: {A_B: \"x y\\nz's\", C: '{site}'}").end()
    for line in ("PACX_SITE=s0", "PACX_FORM=mpmd", "PACX_DAEMONS=last", "PACX_GATEWAYS=1", "PACX_BASE=0", "PACX_STATS=1",
                 "A_B=x y", "z's", "C=s0"):
        contains(job.out.splitlines(), line)
    plan = re.search(r"^PACX_PLAN=(.*)$", job.out, re.M)[1]
    ports = [int(p) for p in re.findall(r"port: (\d+)", plan)]
    equal(len(set(ports)), 2)
    if min(ports) < 1024:
        raise AssertionError(plan)
    job = Job(["{app}"], program=["env"]).end()
    contains(job.out, f"LD_PRELOAD={BUILD}/lib/libpacx-openmpi.so\n")
    contains(job.out, "PACX_FORM=single\n")


@test
def every_gateway_gets_two_daemons_and_a_port():
    job = Job(["echo {daemons} {procs}; env"], keys=", host: 127.0.0.1, gateways: [{}, {host: localhost}, {}]").end()
    contains(job.out, "6 8\n")
    contains(job.out, "PACX_GATEWAYS=3\n")
    plan = re.search(r"^PACX_PLAN=(.*)$", job.out, re.M)[1]
    ports = [int(p) for p in re.findall(r"port: (\d+)", plan)]
    equal((len(ports), len(set(ports)), min(ports) >= 1024), (3, 3, True), plan)


@test
def link_and_buffer_are_options_of_local_runs():
    run = [PACXRUN, "--check", "-n", "1+1", "--mpi", "openmpi"]
    p = subprocess.run([*run, "--link", "streams: 4, compress: zstd:3", "--link", "streams: 8, dial: right", "--buffer", "64MiB",
                        "--", "true"], capture_output=True, text=True, timeout=20)
    equal(p.returncode, 0, p.stderr)
    contains(p.stdout, '"buffer: 67108864B}], files: shared, links: [{default: , streams: 8, compress: "zstd:3", dial: "right"}]'[1:])
    contains(p.stdout, "links: default\n  streams: 8, compress: zstd:3, security: tls, reconnect: 60s, dial: right\n")
    for options, error in (
            (["--link", "streams: x"], "--link: found 'x', expected auto, or a number of streams from 1 to 64"),
            (["--link", "steams: 1"], "--link: found the unknown key 'steams', expected a key of a link (the nearest is 'streams')"),
            (["--link", "between: [a, b]"],
             "--link: found the unknown key 'between', expected a key of a link (the nearest is 'streams')"),
            (["--buffer", "1"], "--buffer: found '1', expected a size from 16MiB to 1024GiB (kB, MB, GB, KiB, MiB, GiB)")):
        p = subprocess.run([*run, *options, "--", "true"], capture_output=True, text=True, timeout=20)
        equal((p.returncode, p.stderr), (2, f"pacxrun: {error}\n"))
    p = subprocess.run([PACXRUN, "-f", "x", "--link", "streams: 1", "true"], capture_output=True, text=True, timeout=20)
    equal((p.returncode, p.stderr), (2, "pacxrun: --link, --buffer and --files are for -n; a hostfile has links:, buffer: and files:\n"))


@test
def reserved_port_can_be_listened_on():
    listen = ("import os, re, socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1);"
              "p = int(re.search(r'port: (\\d+)', os.environ['PACX_PLAN'])[1]); s.bind(('127.0.0.1', p)); s.listen();"
              "c = socket.create_connection(('127.0.0.1', p), 5); a = s.accept()[0]; a.send(b'x'); print(c.recv(1))")
    job = Job([f"{sys.executable} -c {json.dumps(listen)}".replace("\\\\", "\\")]).end()
    equal((job.p.returncode, job.out), (0, "b'x'\n"), job.err)


@test
def label_names_site_and_rank():
    rank = "export OMPI_COMM_WORLD_SIZE=4; for OMPI_COMM_WORLD_RANK in 0 1; do export OMPI_COMM_WORLD_RANK; {app} || exit; done"
    job = Job([rank, rank], "--label", program=["/bin/sh", "-c", "echo out; echo; echo err >&2; printf tail"])
    job.end()
    equal(job.p.returncode, 0, job.err)
    equal(sorted(job.out.splitlines()), sorted(f"[s{r // 2} {r}] {t}" for r in range(4) for t in ("out", "", "tail")))
    equal(sorted(l for l in job.err.splitlines() if "ld.so" not in l), [f"[s{r // 2} {r}] err" for r in range(4)])


def label(*program, stdin="", **env):
    env = dict(os.environ, PACX_SITE="x", PACX_BASE="4", PMI_RANK="1", PMI_SIZE="9", **env)
    return subprocess.run([LABEL, *program], input=stdin, capture_output=True, text=True, env=env, timeout=20)


@test
def label_keeps_status_input_and_long_lines():
    equal(label("/bin/sh", "-c", "exit 9").returncode, 9)
    equal(label("/bin/sh", "-c", "kill -USR1 $$").returncode, -signal.SIGUSR1)
    equal(label(MISSING).returncode, 127)
    equal(label("cat", stdin="a\nb").stdout, "[x 5] a\n[x 5] b\n")
    long = "y" * 300000
    equal(label("cat", stdin=long + "\nz\n").stdout, f"[x 5] {long}\n[x 5] z\n")



@test
def rank_becomes_a_daemon_or_the_program_without_the_key():
    """In the place of the installed one, so that what stands for pacxd lies beside it."""
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(f"{BUILD}/lib/pacx/pacxrank", d)
        with open(d + "/pacxd-mpich", "w") as f:
            f.write('#!/bin/sh\necho "daemon $PACX_KEY/$LD_PRELOAD"\n')
        os.chmod(d + "/pacxd-mpich", 0o755)

        def rank(number, form, where):
            env = dict(os.environ, PACX_SITE="x", PACX_FORM=form, PACX_MPI="mpich", PACX_DAEMONS=where, PMI_SIZE="4", PMI_RANK=str(number),
                       PACX_KEY="k", LD_PRELOAD="")
            return subprocess.run([d + "/pacxrank", "sh", "-c", 'echo "program $PACX_KEY/"'], env=env, capture_output=True, text=True,
                                  timeout=20).stdout
        equal([rank(n, "single", "last") for n in range(4)], ["program /\n"] * 2 + ["daemon k/\n"] * 2)
        equal([rank(n, "single", "first") for n in range(4)], ["daemon k/\n"] * 2 + ["program /\n"] * 2)
        equal([rank(n, "mpmd", "last") for n in range(4)], ["program /\n"] * 4)


@test
def label_and_program_die_together():
    for victim in 0, 1:
        p = subprocess.Popen([LABEL, "/bin/sh", "-c", "echo $$; exec sleep 60"], stdout=subprocess.PIPE, text=True)
        child = int(p.stdout.readline().split("] ")[1])
        os.kill([p.pid, child][victim], [signal.SIGKILL, signal.SIGTERM][victim])
        equal(p.wait(10), [-signal.SIGKILL, -signal.SIGTERM][victim])
        for _ in range(100):
            if not os.path.exists(f"/proc/{child}"):
                break
            time.sleep(0.05)
        else:
            raise AssertionError("the program lives")
        p.stdout.close()
    p = subprocess.Popen([LABEL, "/bin/sh", "-c", "trap 'echo usr; exit 3' USR1; echo up; while :; do sleep 0.1; done"],
                         stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    p.send_signal(signal.SIGUSR1)
    contains(p.communicate(timeout=10)[0], "usr\n")
    equal(p.returncode, 3)


@test
def stats_records_become_a_file():
    emit = ("import os, sys; s = os.environ['PACX_SITE']; w = lambda r, n, t: os.write(1, "
            "(b'\\001pacx ' + f'{s}:{r} stats {n} {t}'.encode()).ljust(255) + b'\\n');"
            "w('out', '2/2', ':5}],\"collectives\":{\"barrier\":2}}'); os.write(1, b'text without end');"
            "w('in', '1/1', '{\"links_in\":[]}'); w('out', '1/2', '{\"links\":[{\"messages\"');"
            "os.write(1, b'more\\n')")
    job = Job(["{app}", "{app}"], "--stats", "S", program=[sys.executable, "-c", emit], head="job: melt\n",
              keys=", env: {LD_PRELOAD: ''}").end()
    equal((job.p.returncode, job.out), (0, "text without endmore\n" * 2), job.err)
    with open(job.dir.name + "/S") as f:
        stats = json.load(f)
    equal(stats["job"], "melt")
    equal(stats["sites"], [{"name": f"s{i}", "ranks": 2, "mpi": "openmpi", "exit": 0} for i in (0, 1)])
    equal(stats["links"], [{"messages": 5}] * 2)
    equal(stats["collectives"], {"s0": {"barrier": 2}, "s1": {"barrier": 2}})
    equal("missing" in stats, False)
    equal(sorted(os.listdir(job.dir.name)), ["S", "hosts.yml"])


@test
def without_stats_nothing_is_filtered():
    record = "\001pacx a:out stats 1/1 {}".ljust(255) + "\n"
    job = Job(["cat"], stdin=subprocess.PIPE).end(input=record)
    equal(job.out, record)

if __name__ == "__main__":
    main()
