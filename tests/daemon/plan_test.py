#!/usr/bin/env python3
"""pacxrun before anything is started: its usage, the plan that it makes of a hostfile, keys, environments.

usage: tests/daemon/plan_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import os
import re
import subprocess
import tempfile

import sites
from cases import contains, equal, forget, main, test

BUILD = os.path.abspath(os.environ.get("PACX_BUILD", "build"))
PACXRUN = BUILD + "/bin/pacxrun"
EMPTY = tempfile.TemporaryDirectory()
MISSING = EMPTY.name + "/missing"
forget()
os.environ["PACX_RECORDS"] = "no"  # nobody here is a daemon


def pacxrun(*args, **env):
    return subprocess.run([PACXRUN, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
                          env=dict(os.environ, **env))


@test
def usage_errors_are_2_and_say_why():
    for args, part in (((), "give either -f HOSTFILE or -n A+B"),
                       (("-n", "2+0", "true"), "-n: found '0', expected a number of ranks from 1 to 16777216"),
                       (("-n", "2+x", "true"), "-n: found 'x', expected"),
                       (("-n", "2+", "true"), "-n: found '', expected"),
                       (("-n", "1+1", "--mpi", "lam", "true"), "--mpi: found 'lam', expected openmpi, mpich, auto, a vendor with a version"),
                       (("-n", "1+1", "--mpi", "mpich+mpich+mpich", "true"), "expected one name for all or one for each"),
                       (("-n", "1+1", "--daemons", "mid", "true"), "--daemons: found 'mid', expected first or last"),
                       (("-n", "1+1", "--form", "x", "true"), "--form: found 'x', expected mpmd or single"),
                       (("-n", "1+1", "--timeout", "5", "true"), "--timeout: found '5', expected a duration"),
                       (("-n", "1+1"), "no program"),
                       (("-n", "1+1", "--mpi", "openmpi", MISSING + "/prog"), f"cannot run the program '{MISSING}/prog': No such file"),
                       (("-n", "1+1", "--mpi", "openmpi", "/usr"), "cannot run the program '/usr': it is a directory"),
                       (("-n", "1+1", "--mpi", "openmpi", "/etc/passwd"), "'/etc/passwd': it is not executable (chmod +x"),
                       (("-n", "1+1", "--mpi", "openmpi", "nosuchprog"), "there is no such program in PATH"),
                       (("-n", "1+1", "--site", "up", "true"), "--site: found 'up', expected the name of a site"),
                       (("-f", MISSING + ".yml", "true"), MISSING + ".yml: cannot open the hostfile"),
                       (("-f", "/", "true"), "/: found a directory, expected a hostfile"),
                       (("--nosuch",), "see pacxrun --help")):
        r = pacxrun(*args)
        equal(r.returncode, 2, args)
        contains(r.stderr, part)
        equal(r.stdout, "")


def hostfile(text, *args):
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
        f.write(text)
        f.flush()
        return pacxrun("-f", f.name, *args)


@test
def remote_sites_need_a_start_command_and_a_port():
    r = hostfile("sites:\n  - {name: far, host: 192.0.2.1, ranks: 1}\n", "true")
    contains(r.stderr, ":2:12: site 'far' is not on this machine and has no start command; expected start:")
    r = hostfile("sites:\n  - {name: far, host: 192.0.2.1, ranks: 1}\n" + PLAIN, "--site", "far", "true")
    contains(r.stderr, ":2:12: site 'far' is to be started here, but this machine has no address of its host:; if the others")
    contains(r.stderr, "expected bind:")
    r = hostfile("sites:\n  - {name: far, ranks: 1, start: 'ssh x {app}'}\n", "true")
    contains(r.stderr, "site 'far' has port 0 (any free one), which works only for sites started on this machine")
    r = hostfile("sites:\n  - {name: a, ranks: 1, start: 'x {apps} {env}'}\n", "true")
    contains(r.stderr, "site 'a': the start command has the unknown placeholder {apps}; did you mean {app}?")


PLAIN = "links: [{default: , security: none}]\n"


@test
def keys_go_where_they_are_read():
    """{key} stands before the launcher of another machine, put there by us or by the user; without a place for it nothing starts."""
    def command(start):
        r = hostfile("sites:\n  - {name: a, host: h1, port: 5, ranks: 2, mpi: mpich, start: " + repr(start) + "}\n"
                     "  - {name: b, host: h2, port: 6, ranks: 3, mpi: mpich, start: 'echo b && : {env}'}\n", "--check", "--", "prog")
        found = re.search("start: (.*)", r.stdout)
        return (found[1] if found else r.stderr)
    contains(command("ssh h1 mpirun -np {ranks} {app} : -np {daemons} {pacxd}"), "ssh h1 'sh -c ")
    contains(command("ssh h1 /opt/x/bin/mpirun {app}"), "read -r PACX_KEY")
    equal("PACX_KEY" in command("mpirun {app}"), False)
    contains(command("ssh h1 ./start {key} {app}"), "read -r PACX_KEY")
    contains(command("ssh h1 ./start {app}"), "put {key} before the launcher")
    contains(command("ssh -tt h1 mpirun {app}"), "has ssh -tt")


@test
def key_of_one_start_by_hand_has_to_be_given():
    text = ("sites:\n  - {name: a, ranks: 2, mpi: mpich, start: 'echo ${#PACX_KEY} $PACX_KEY && : {env}'}\n"
            "  - {name: b, ranks: 3, mpi: openmpi, start: manual}\n")
    r = hostfile(text, "true")
    equal(r.returncode, 2)
    contains(r.stderr, "pacxctl keygen FILE")
    with tempfile.TemporaryDirectory() as d:
        key = os.path.join(d, "key")
        equal(subprocess.run([os.path.dirname(PACXRUN) + "/pacxctl", "keygen", key]).returncode, 0)
        r = hostfile(text, "--key", key, "true")
        equal((r.returncode, r.stdout), (0, "64 " + open(key).read()), r.stderr)
        os.chmod(key, 0o644)
        r = hostfile(text, "--key", key, "true")
        equal(r.returncode, 2)
        contains(r.stderr, "chmod 600")


@test
def check_prints_the_plan_and_starts_nothing():
    r = hostfile("job: melt\nsites:\n  - {name: a, host: h1, port: 5, ranks: 2, mpi: mpich, start: 'touch " + MISSING + "; ssh h1 {app}'}\n"
                 "  - {name: b, host: h2, port: 6, ranks: 3, mpi: openmpi, start: manual}\n" + PLAIN, "--check", "--", "prog", "a b")
    equal((r.returncode, r.stderr), (0, ""))
    for part in ("job: melt\n", "ranks: 5 on 2 sites\n", "site a: ranks 0-1, MPICH, daemons last, single executable\n",
                 "others dial h1 port 5\n", "site b: ranks 2-4, Open MPI", "start: by hand\n"):
        contains(r.stdout, part)
    equal(os.path.exists(MISSING), False)


@test
def two_programs_go_in_one_line_where_the_launcher_can():
    for m in sites.flavors():
        env = {k: v for k, v in os.environ.items() if not k.startswith("OMPI_")}  # such as its leave to run as root
        r = subprocess.run([PACXRUN, "--check", "-n", "1", "--mpi", m, "true"], capture_output=True, text=True, env=env)
        contains(r.stdout, "MPMD\n" if sites.mpmd(m) else "single executable\n")


@test
def examples_are_good():
    top = os.path.dirname(os.path.abspath(__file__)) + "/../../hostfiles/"
    names = [n for n in os.listdir(top) if n.endswith((".yml", ".pacx"))]
    for name in names:
        r = pacxrun("--check", "-f", top + name, "/bin/true")
        equal((name, r.returncode, r.stderr), (name, 0, ""))
    equal(len(names) >= 4, True)


@test
def by_hand_environment_agrees_at_all_sites():
    text = ("sites:\n  - {name: a, host: h1, port: 5, ranks: 2, mpi: mpich, start: manual}\n"
            "  - {name: b, host: h2, port: 6, ranks: 3, mpi: openmpi, start: manual}\n")
    a, b = hostfile(text, "--site", "a", "--env"), hostfile(text, "--site", "b", "--env")
    equal((a.returncode, b.returncode), (0, 0))
    for name in "PACX_JOB", "PACX_PLAN":
        found = [re.search(f"^export {name}=.*$", r.stdout, re.M)[0] for r in (a, b)]
        equal(found[0], found[1])
    shell = subprocess.run(["/bin/sh", "-c", a.stdout + 'echo "$PACX_SITE $PACX_BASE $PACX_PLAN"'], capture_output=True, text=True)
    contains(shell.stdout, "a 0 {sites: [")
    contains(b.stdout, "export PACX_BASE=2\n")


@test
def manual_site_is_explained_while_the_others_run():
    text = ("sites:\n  - {name: a, ranks: 2, mpi: mpich, start: 'echo $PACX_JOB && : {env}'}\n"
            "  - {name: b, ranks: 3, mpi: openmpi, start: manual}\n" + PLAIN)
    r = hostfile(text, "true")
    equal(r.returncode, 0)
    contains(r.stderr, "site 'b' is started by hand. Type there:")
    contains(r.stderr, "export PACX_SITE=b\n")
    contains(r.stderr, f"export PACX_JOB={r.stdout.strip()}\n")


@test
def only_one_site_is_started_with_site():
    text = "sites:\n  - {name: a, ranks: 2, port: 5, start: 'echo a && : {env}'}\n  - {name: b, ranks: 3, port: 6, start: 'echo b && : {env}'}\n" + PLAIN
    r = hostfile(text, "--site", "b", "true")
    equal((r.returncode, r.stdout), (0, "b\n"), r.stderr)


@test
def auto_flavor_comes_from_the_program():
    def flavor(program):
        out = pacxrun("-n", "1", "--check", "--", program)
        return re.search("^site left: ranks 0-0, ([^,]*),", out.stdout, re.M)[1] if out.stdout else out.stderr
    for program, expected in (("lmp", "Open MPI"), ("NPopenmpi", "Open MPI"), ("NPmpich2", "MPICH"), ("sh", None)):
        if subprocess.run(["sh", "-c", f"command -v {program} mpirun.openmpi mpirun.mpich"], capture_output=True).returncode == 0 \
                and expected:
            equal(flavor(program), expected, program)


if __name__ == "__main__":
    main()
