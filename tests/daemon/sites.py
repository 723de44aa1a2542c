"""sites.py: start sites by hand for tests of the relay daemon: ports, plans, processes, clean-up.

A Job holds one port per site (bound, not listening, as pacxrun does), starts each site's native job with
tests/daemon/client as application and pacxd beside it, and kills everything it started when it is left.
"""
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("PACX_BUILD", "build"))
DEADLINE = 60
os.environ.setdefault("OMPI_MCA_btl", "^tcp")  # all ranks share memory; Open MPI 5's tcp warns at each start on some machines


def flavors():
    return [f for f in ("openmpi", "mpich")
            if shutil.which("mpirun." + f) and os.path.exists(f"{BUILD}/lib/pacx/pacxd-{f}")]


def version(flavor):
    """Of the MPI that PACX is built for: "5.0.7"."""
    with open(f"{BUILD}/lib/pacx/{flavor}.mpi") as f:
        return next(line for line in f if line.startswith("identity: ")).strip().rsplit("-", 1)[1]


@functools.lru_cache
def mpmd(flavor):
    """Can the launcher start two programs as one job? That of Open MPI 5.0.7 dies of it."""
    more = ["--oversubscribe", "--allow-run-as-root"] if flavor == "openmpi" else []
    with tempfile.TemporaryDirectory(prefix="pacx-mpmd-") as tmp:  # what it leaves when it dies is what a later one of its process id dies of
        p = subprocess.run([f"mpirun.{flavor}", *more, "-np", "1", "true", ":", "-np", "1", "true"], stdin=subprocess.DEVNULL,
                           capture_output=True, env=dict(os.environ, TMPDIR=tmp))
    return p.returncode >= 0 and p.returncode < 128


def both(flavor):
    """Ranks and daemons in a start command of the user's, behind mpirun: in two programs, or in one where the launcher cannot."""
    return "-np {ranks} {app} : -np {daemons} {pacxd}" if mpmd(flavor) else "-np {procs} {app}"


def programs(folder, source):
    """An MPI program of a test's own: folder/prog.FLAVOR for each flavour."""
    with open(f"{folder}/prog.c", "w") as f:
        f.write(source)
    for m in flavors():
        subprocess.run([f"mpicc.{m}", "-w", "-D_GNU_SOURCE", "-o", f"{folder}/prog.{m}", f"{folder}/prog.c"], check=True)


def client(flavor):
    """Build the client program if it is not there or older than its source; its path."""
    src = [f"{ROOT}/tests/daemon/client.c"] + [f"{ROOT}/libpacx/{n}.c" for n in ("native/vendor", "native/attach_roles", "native/yield_hook")]
    for d in ("base", "wire"):
        src += sorted(f"{ROOT}/libpacx/{d}/{n}" for n in os.listdir(f"{ROOT}/libpacx/{d}") if n.endswith(".c"))
    exe = f"{BUILD}/{flavor}/tests-daemon/client"
    if os.path.exists(exe) and all(os.path.getmtime(s) <= os.path.getmtime(exe) for s in src):
        return exe
    os.makedirs(os.path.dirname(exe), exist_ok=True)
    inc = [a for d in ("libpacx", "libpacx/base", "libpacx/wire", "libpacx/native") for a in ("-iquote", f"{ROOT}/{d}")]
    made = f"{exe}.{os.getpid()}"  # renamed when complete: another test may be building it, too
    subprocess.run([f"mpicc.{flavor}", "-std=c11", "-D_GNU_SOURCE", "-g", "-O2", *inc, "-iquote", f"{BUILD}/gen/{flavor}",
                    "-w", "-rdynamic", "-Wl,--no-as-needed", "-o", made, *src, "-ldl"], check=True)
    os.rename(made, exe)
    return exe


class Job:
    def __init__(self, mpi, ranks=2, deadline=20, extra=None, host="127.0.0.1", first=False, link="security: none"):
        """mpi: flavor of each site; ranks: application ranks of each; link: options of all links."""
        for m in mpi:
            client(m)  # before anything waits: a compiler may need longer than the deadline of the start
        self.link = link
        self.mpi, self.ranks, self.deadline, self.host, self.first = mpi, ranks, deadline, host, first
        self.names = [f"site{i}" for i in range(len(mpi))]
        self.held, self.ports, self.procs = [], [], {}
        for _ in mpi:
            s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind((host if ":" in host else "127.0.0.1", 0))
            self.held.append(s)
            self.ports.append(s.getsockname()[1])
        self.job = "test" + os.urandom(6).hex()
        self.key = os.urandom(32).hex()
        self.extra = extra or {}
        self.tmp = tempfile.mkdtemp(prefix="pacxd-test-")

    def plan(self):
        sites = ", ".join(f"{{name: {n}, host: '{self.host}', port: {p}, ranks: {self.ranks}, mpi: {m}}}"
                          for n, p, m in zip(self.names, self.ports, self.mpi))
        return f"{{sites: [{sites}], links: [{{default: , {self.link}}}], deadlines: {{start: {self.deadline}s}}}}"

    def start(self, i, *args, **env):
        """Start site i with the client in the mode args."""
        m = self.mpi[i]
        e = dict(os.environ, PACX_PLAN=self.plan(), PACX_SITE=self.names[i], PACX_JOB=self.job, PACX_KEY=self.key,
                 PACX_FORM="mpmd" if mpmd(m) else "single", PACX_MPI=m,
                 PACX_DAEMONS="first" if self.first else "last", PACX_GATEWAYS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        e.update(self.extra)
        e.update({k: str(v) for k, v in env.items()})
        opt = ["--oversubscribe", "--bind-to", "none"] if m == "openmpi" else []
        app = [client(m), *map(str, args)]
        if mpmd(m):
            one, two = ["-np", str(self.ranks), *app], ["-np", "2", f"{BUILD}/lib/pacx/pacxd-{m}"]
            if self.first:
                one, two = two, one
            cmd = [f"mpirun.{m}", *opt, *one, ":", *two]
        else:
            cmd = [f"mpirun.{m}", *opt, "-np", str(self.ranks + 2), f"{BUILD}/lib/pacx/pacxrank", *app]
        out = open(f"{self.tmp}/{i}.{len(self.procs)}.log", "w+b")
        p = subprocess.Popen(cmd, env=e, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                             start_new_session=True)
        p.log = out
        self.procs[i] = p
        return p

    def text(self, i):
        with open(self.procs[i].log.name, errors="replace") as f:
            return f.read()

    def wait(self, i, seconds=DEADLINE):
        try:
            return self.procs[i].wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.names[i]} did not end within {seconds} s:\n{self.text(i)}") from None

    def wait_text(self, i, what, seconds=40):
        """Until the output of site i contains `what`."""
        end = time.monotonic() + seconds
        while what not in self.text(i):
            assert time.monotonic() < end, f"{self.names[i]} never said {what!r}:\n{self.text(i)}"
            time.sleep(0.02)

    def wait_port(self, i, seconds=20):
        """Until site i listens."""
        end = time.monotonic() + seconds
        while True:
            try:
                socket.create_connection((self.host, self.ports[i]), seconds).close()
                return
            except OSError:
                assert time.monotonic() < end, f"{self.names[i]} does not listen:\n{self.text(i)}"
                time.sleep(0.05)

    def daemons(self, i):
        """Process ids of the site's daemons, out first."""
        return sorted(p for p in descendants(self.procs[i].pid) if comm(p).startswith("pacxd-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.procs.values():
            pids = descendants(p.pid)
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            p.wait()
            p.log.close()
        for s in self.held:
            s.close()
        shutil.rmtree(self.tmp, ignore_errors=True)


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def descendants(pid):
    children = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/stat") as f:
                text = f.read()
        except OSError:
            continue
        children.setdefault(int(text[text.rindex(")") + 2:].split()[1]), []).append(int(p))
    found, todo = [], [pid]
    while todo:
        for c in children.get(todo.pop(), []):
            found.append(c)
            todo.append(c)
    return found


def kill_all(p):
    """The process p and all below it."""
    for pid in [*descendants(p.pid), p.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def until(what, seconds=20):
    """Wait for what() to be true; its value."""
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)
    return got


def next_descriptor(pid):
    """The lowest that is free: as RLIMIT_NOFILE of the process it lets nothing be opened, whatever gaps there are."""
    used = {int(n) for n in os.listdir(f"/proc/{pid}/fd")}
    return next(n for n in range(len(used) + 1) if n not in used)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        text = f.read()
    fields = text[text.rindex(")") + 2:].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Skipped(Exception):
    """A test that cannot be made here, and why."""


def run(tests):
    """Run the functions `tests` (name, function), in the form that tests/run reads."""
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for name, f in tests:
        try:
            f()
            print(f"ok {name}", flush=True)
        except Skipped as e:
            print(f"skip {name}: {e}", flush=True)
        except Exception as e:  # whatever it is, the other tests shall run
            failed += 1
            print(f"not ok {name}: {str(e).splitlines()[0] if str(e) else 'assertion'}\n{e}", flush=True)
    sys.exit(1 if failed else 0)


def main(folder, source, tests):
    """Run the functions `tests`, which share an MPI program (programs); the folder goes in the end. 77: no MPI is here."""
    try:
        if not flavors():
            sys.exit(77)
        programs(folder, source)
        run([(t.__name__, t) for t in tests])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
