#!/usr/bin/env python3
"""security_test.py: the job's key is seen by nobody it does not belong to; who scans, floods, replays, or dribbles at the ports of a
running job changes nothing in it.

usage: tests/daemon/security_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import glob
import os
import random
import re
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty import Storm  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

SECONDS = 40
HAVE = []
# Ranks that show what a child of theirs sees, and wait for a file.
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char command[1000];
	int r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	snprintf(command, sizeof command, "env > %s/child.%d; cat /proc/$PPID/environ > %s/self.%d; echo $PPID > %s/pid.%d", argv[1], r, argv[1], r,
		argv[1], r);
	if (system(command))
		MPI_Abort(MPI_COMM_WORLD, 9);
	MPI_Barrier(MPI_COMM_WORLD);
	if (r == 0) {
		snprintf(command, sizeof command, "touch %s/up", argv[1]);
		if (system(command))
			MPI_Abort(MPI_COMM_WORLD, 9);
		snprintf(command, sizeof command, "%s/stop", argv[1]);
		while (access(command, F_OK))
			usleep(10000);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
"""


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


class Watched:
    """A job of this machine's sites. Every command line that shows up while it starts and runs is remembered."""

    def __init__(self, sites, *options, env=None, wait=True):
        self.dir = tempfile.TemporaryDirectory(prefix="pacx-secret-")
        self.mark = "PACXTEST_" + uuid.uuid4().hex
        d = self.dir.name
        for m in HAVE:
            subprocess.run(["mpicc." + m, "-w", "-x", "c", "-", "-o", f"{d}/rank.{m}"], input=SOURCE, text=True, check=True)
        self.lines, self.environs, self.over = set(), {}, False
        self.p = subprocess.Popen([BUILD + "/bin/pacxrun", *sites, *options, "--", d + "/rank.{mpi}", d], stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, PACX_LOG="debug", **{self.mark: "1"}, **(env or {})),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        end = time.monotonic() + SECONDS
        while wait and not os.path.exists(d + "/up"):
            assert self.p.poll() is None, self.p.communicate()[0]
            assert time.monotonic() < end, "the job did not start"
            time.sleep(0.02)

    def ours(self):
        return [p for p in filter(str.isdigit, os.listdir("/proc")) if self.mark.encode() in read(f"/proc/{p}/environ")]

    def watch(self):
        while not self.over:
            for p in filter(str.isdigit, os.listdir("/proc")):
                self.lines.add(read(f"/proc/{p}/cmdline"))
            time.sleep(0.002)

    def key(self):
        """The key, from the environment of a launcher, where only this user can read it."""
        keys = set()
        for p in self.ours():
            keys |= {m[1] for m in re.finditer(rb"(?:^|\0)PACX_KEY=([0-9a-f]{64})(?=\0)", read(f"/proc/{p}/environ"))}
        assert len(keys) == 1, f"{len(keys)} keys are found"
        return keys.pop()

    def end(self):
        open(self.dir.name + "/stop", "w").close()
        text, _ = self.p.communicate(timeout=SECONDS)
        self.over = True
        self.watcher.join()
        return self.p.returncode, text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        if self.p.poll() is None:
            self.p.terminate()
            self.p.communicate(timeout=SECONDS)
        self.dir.cleanup()


def seen_where_it_belongs_only(key, job, text):
    d = job.dir.name
    shown = [l for l in job.lines if key in l]
    assert not shown, f"the key is on a command line: {shown[0][:60]}"
    assert key.decode() not in text, "the key is in the output"
    children, selves = glob.glob(d + "/child.*"), glob.glob(d + "/self.*")
    assert len(children) == 4 and len(selves) == 4, (children, selves)
    for f in children:
        assert b"PATH=" in read(f) and key not in read(f), f"a rank's child has the key in {re.findall(b'([^=]*)=.*' + key, read(f))}"
        assert not re.search(rb"^PACX_", read(f), re.M), "something of PACX is in the environment of a child"
    for f in selves:
        assert b"PACX_SITE=" in read(f) and key not in read(f), "a rank's own environment shows the key to its user's other programs"


def daemons_and_ranks_wipe_it(job, key):
    for p in job.ours():
        name = read(f"/proc/{p}/comm")
        if name.startswith((b"pacxd", b"rank.")):
            assert key not in read(f"/proc/{p}/environ"), f"{name} still has the key in its environment"


def key_is_not_shown(mpi, *options):
    with Watched(["-n", "2+2", "--mpi", mpi], *options) as j:
        key = j.key()
        daemons_and_ranks_wipe_it(j, key)
        status, text = j.end()
        assert status == 0, text
        seen_where_it_belongs_only(key, j, text)
        for f in glob.glob("/tmp/*") + glob.glob("/tmp/pacx*/*") + glob.glob("/dev/shm/*"):
            try:
                st = os.stat(f)
            except OSError:
                continue  # somebody else's, gone meanwhile
            if stat.S_ISREG(st.st_mode) and st.st_mtime > time.time() - 60 and st.st_size < 1 << 20:
                assert key not in read(f), f"the key is in {f}"


def keys_of_two_runs_differ():
    keys = []
    for _ in range(2):
        with Watched(["-n", "2+2", "--mpi", HAVE[0]]) as j:
            keys.append(j.key())
            assert j.end()[0] == 0
    assert keys[0] != keys[1]


def given_key_is_not_shown_either():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([BUILD + "/bin/pacxctl", "keygen", d + "/key"], check=True, stdout=subprocess.DEVNULL)
        key = read(d + "/key").strip()
        assert os.stat(d + "/key").st_mode & 0o777 == 0o600
        with Watched(["-n", "2+2", "--mpi", HAVE[0]], "--key", d + "/key") as j:
            assert j.key() == key
            daemons_and_ranks_wipe_it(j, key)
            status, text = j.end()
            assert status == 0, text
            seen_where_it_belongs_only(key, j, text)


def pacxrun(hosts, *options, env=None):
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/hosts.yml", "w") as f:
            f.write(hosts)
        return subprocess.run([BUILD + "/bin/pacxrun", "-f", d + "/hosts.yml", *options, "--", "true"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
                              env=dict(os.environ, **(env or {})))


HOSTS = "sites:\n  - {{name: a, ranks: 1, mpi: {m}, host: 127.0.0.1, port: 41001}}\n  - {{name: b, ranks: 1, mpi: {m}, start: manual, host: 127.0.0.1, port: 41002{more}}}\n"


def key_file_that_others_can_read_is_refused():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([BUILD + "/bin/pacxctl", "keygen", d + "/key"], check=True, stdout=subprocess.DEVNULL)
        os.chmod(d + "/key", 0o644)
        for r in (pacxrun(HOSTS.format(m=HAVE[0], more=""), "--key", d + "/key"),
                  pacxrun(HOSTS.format(m=HAVE[0], more=f", key: {d}/key")),
                  pacxrun(HOSTS.format(m=HAVE[0], more=""), env={"PACX_KEY_FILE": d + "/key"})):
            assert r.returncode == 2 and f"chmod 600 '{d}/key'" in r.stdout and "mode 644" in r.stdout, r.stdout
            assert read(d + "/key").strip().decode() not in r.stdout


def site_by_hand_without_a_key_is_told_what_to_do():
    r = pacxrun(HOSTS.format(m=HAVE[0], more=""))
    assert r.returncode == 2, r.stdout
    for part in ("site 'b' does not get it from pacxrun", "pacxctl keygen FILE", "mode 600", "security: none"):
        assert part in r.stdout, r.stdout


def daemon_without_a_key_is_told_what_to_do():
    """What a site says that was started by hand and forgotten."""
    from sites import Job
    with Job([HAVE[0]] * 2, deadline=20, link="security: tls") as j:
        p = j.start(0, "idle", 0, PACX_KEY="")
        assert p.wait(SECONDS) != 0
        for part in ("site 'site0' has no key", "pacxctl keygen FILE", "security: none"):
            assert part in j.text(0), j.text(0)


def sites_with_different_keys_do_not_meet():
    from sites import Job
    with Job([HAVE[0]] * 2, deadline=4, link="security: tls") as j:
        j.start(0, "idle", 0)
        j.start(1, "idle", 0, PACX_KEY=os.urandom(32).hex())
        for i in range(2):
            assert j.wait(i) != 0, j.text(i)
        assert "another key" in j.text(0) and "another key" in j.text(1), j.text(0) + j.text(1)


# The scan.

class Attacker:
    """tls: what is sent may be what a site has sent. (Without TLS whoever hears it can be that site.)"""

    def __init__(self, job, seed, tls=True):
        self.tls = tls
        self.ports, self.random = job.ports, random.Random(seed)
        job.until(lambda: any(len(r) > 1000 for p in job.proxies for r in p.recorded), "a handshake to replay")
        self.recorded = [bytes(r) for p in job.proxies for r in p.recorded if len(r) > 1000]
        self.pre = self.recorded[0][:64]
        assert self.pre.startswith(b"PACXLINK")
        self.made, self.held = 0, []

    def dial(self, port):
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.settimeout(10)
        self.made += 1
        return s

    def hello(self):
        """Preamble and first TLS record of a real handshake."""
        r = self.random.choice(self.recorded)
        return r[:100] if not self.tls else r[:64 + 5 + struct.unpack(">H", r[67:69])[0]]

    def preamble(self, **change):
        f = list(struct.unpack("<8sHBBHHHHHH16sQ16s", self.pre))
        for k, v in change.items():
            f[("magic", "version", "kind", "flags", "frm", "to", "g0", "g1", "stream", "zero", "hash", "number", "proof").index(k)] = v
        return struct.pack("<8sHBBHHHHHH16sQ16s", *f)

    def inputs(self):
        r, hello, whole = self.random, self.hello(), self.random.choice(self.recorded)
        if not self.tls:
            whole = whole[:60] + r.randbytes(1000)
        flipped = bytearray(hello)
        flipped[r.randrange(len(hello))] ^= 1 << r.randrange(8)
        return [b"", b"\0", b"\x9b31m\xc2\x9b31m\x1b[31m", b"GET / HTTP/1.0\r\n\r\n", b"SSH-2.0-x\r\n", r.randbytes(r.randrange(1, 5000)), whole[64:64 + 517],
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + r.randbytes(508), self.pre, self.pre[:r.randrange(64)],
                self.pre + r.randbytes(3000), self.pre + b"\x16\x03\x01\x40\x00" + bytes(20000), hello, hello[:r.randrange(64, len(hello))],
                whole, whole[:r.randrange(600, len(whole))], bytes(flipped), self.preamble(flags=3) + whole[64:], self.preamble(flags=3),
                self.preamble(flags=0) + whole[64:], self.preamble(kind=2) + r.randbytes(100), self.preamble(kind=9), self.preamble(version=2),
                self.preamble(stream=63) + whole[64:], self.preamble(stream=999), self.preamble(frm=7), self.preamble(to=r.randrange(65536)),
                self.preamble(frm=struct.unpack("<H", self.pre[14:16])[0], to=struct.unpack("<H", self.pre[12:14])[0]) + whole[64:],
                self.preamble(hash=r.randbytes(16)) + whole[64:], self.preamble(hash=bytes(16), number=7)]

    def round(self):
        for port in self.ports:
            for data in self.inputs():
                s = self.dial(port)
                try:
                    s.sendall(data)
                    ending = self.random.randrange(4)
                    if ending == 0:
                        s.shutdown(socket.SHUT_WR)
                        s.recv(4096)
                    elif ending == 1:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                except OSError:
                    pass
                self.held.append(s)
                if ending != 3:
                    s.close()
            while len(self.held) > 300:
                self.held.pop(0).close()

    def dribble(self, over):
        """Slowloris: a byte now and then, over and over."""
        slow = []
        while not over.is_set():
            try:
                while len(slow) < 20:
                    slow.append([self.dial(self.random.choice(self.ports)), self.hello(), 0])
            except OSError:
                break  # the job has ended
            for x in list(slow):
                try:
                    x[0].sendall(x[1][x[2]:x[2] + 1])
                    x[2] += 1
                except OSError:
                    x[2] = len(x[1])
                if x[2] >= len(x[1]):
                    x[0].close()
                    slow.remove(x)
            over.wait(0.02)
        for x in slow:
            x[0].close()

    def close(self):
        for s in self.held:
            s.close()


def scan_changes_nothing(link, rounds, tls=True, **job):
    with Storm([HAVE[0], HAVE[-1]], link=link, record=20000, **job) as j:
        j.running()
        began = time.monotonic()
        a, over = Attacker(j, 1, tls), threading.Event()
        slow = threading.Thread(target=a.dribble, args=(over,))
        slow.start()
        try:
            for _ in range(rounds):
                a.round()
                before = j.count("bytes")
                j.until(lambda: j.count("bytes") > before + 100000, "traffic under attack")
        finally:
            over.set()
            slow.join()
            a.close()
        seconds = time.monotonic() - began
        text = j.good()
        links = j.links()
        assert all(l["reconnects"] == 0 for l in links), f"an attacker cut a link: {links}\n{text[-3000:]}"
        lines = text.count("\n")
        # Ten at once and one every two seconds from each of four daemons.
        assert lines < 4 * (10 + seconds / 2) + 20, f"{lines} lines for {a.made} connections in {seconds:.0f} s:\n{text[-3000:]}"
        assert "closed a connection from 127.0.0.1" in text, text
        # Nothing of theirs reaches a terminal that a terminal might obey.
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]", text), ascii(text[-3000:])
        j.gone()


def scan_of_tls_ports_changes_nothing():
    scan_changes_nothing("streams: 2", 12)


def scan_of_plain_ports_changes_nothing():
    scan_changes_nothing("security: none", 12, tls=False)


def scan_of_a_port_for_both_directions_changes_nothing():
    """One site dials for both directions, so the other's in-daemon hands connections to its out-daemon."""
    with Storm([HAVE[0], HAVE[-1]], link="dial: s0", record=20000) as j:
        j.running()
        a = Attacker(j, 2)
        a.ports = j.ports[1:]
        for _ in range(8):
            a.round()
        before = j.count("bytes")
        j.until(lambda: j.count("bytes") > before + 100000, "traffic under attack")
        a.close()
        text = j.good()
        assert all(l["reconnects"] == 0 for l in j.links()), f"{j.links()}\n{text[-3000:]}"
        j.gone()


def hand_over_needs_no_name_that_others_may_take():
    """Somebody has what would be our directory for sockets; more connections at once than a socket's queue takes are handed over."""
    others = set(glob.glob(f"/tmp/pacx-{os.geteuid()}-*/*.hand"))
    with tempfile.TemporaryDirectory() as d:
        open(f"{d}/pacx-{os.geteuid()}", "w").close()
        with Storm([HAVE[0], HAVE[-1]], link="dial: s0, streams: 24", env={"XDG_RUNTIME_DIR": d, "PACX_RUN_DIR": ""}) as j:
            j.until(lambda: j.count("connections") >= 48, "all streams")
            before = j.count("bytes")
            j.until(lambda: j.count("bytes") > before + 1000000, "traffic")
            made = set(glob.glob(f"/tmp/pacx-{os.geteuid()}-*/*.hand")) - others
            assert made and all(os.stat(os.path.dirname(m)).st_mode & 0o777 == 0o700 for m in made), made
            j.good()
            j.gone()
        assert not [m for m in made if os.path.exists(os.path.dirname(m))], made


def main():
    HAVE.extend(f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm"))
    if not HAVE:
        print("no daemon has been built")
        return 77
    tests = [(f"key_is_not_shown_{m}", lambda m=m: key_is_not_shown(m)) for m in HAVE]
    tests.append(("key_is_not_shown_by_single_executables", lambda: key_is_not_shown("+".join([HAVE[0], HAVE[-1]]), "--form", "single")))
    tests += [(t.__name__, t) for t in (
        keys_of_two_runs_differ, given_key_is_not_shown_either, key_file_that_others_can_read_is_refused,
        site_by_hand_without_a_key_is_told_what_to_do, daemon_without_a_key_is_told_what_to_do, sites_with_different_keys_do_not_meet,
        scan_of_tls_ports_changes_nothing, scan_of_plain_ports_changes_nothing, scan_of_a_port_for_both_directions_changes_nothing,
        hand_over_needs_no_name_that_others_may_take)]
    only = sys.argv[1:]
    run([t for t in tests if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
