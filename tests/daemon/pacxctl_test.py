#!/usr/bin/env python3
"""pacxctl: doctor with each kind of failure, probe, answer, keygen, status and top, all on loopback. This script plays the other
site where pacxctl answer is too honest for it.

usage: tests/daemon/pacxctl_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

BUILD = os.path.abspath(os.environ.get("PACX_BUILD", "build"))
CTL = BUILD + "/bin/pacxctl"
TESTS = []
DIR = tempfile.TemporaryDirectory()
SECONDS = 60  # until a test gives up
for name in [n for n in os.environ if n.startswith("PACX_") or n == "XDG_RUNTIME_DIR"]:
    del os.environ[name]


def test(f):
    TESTS.append(f)
    return f


def equal(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what} got {got!r}, expected {expected!r}")


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in {text!r}")


def ctl(*args, **env):
    p = subprocess.run([CTL, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, cwd=DIR.name,
                       env={**os.environ, **env})
    return p


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def hosts(left="", right="", links="", job="j", name="hosts.yml"):
    """A hostfile of two sites; every port is a free one that nobody listens on."""
    ports = [free_port(), free_port()]
    with open(f"{DIR.name}/{name}", "w") as f:
        f.write(f"job: {job}\nsites:\n")
        for site, port, keys in zip(("left", "right"), ports, (left, right)):
            f.write(f"  - {{name: {site}, ranks: 1{keys.replace('PORT', str(port)) or f', host: 127.0.0.1, port: {port}'}}}\n")
        f.write(f"links: [{links}]\n" if links else "")
    return ports


def doctor(*options, site="left", timeout="20s", name="hosts.yml", **env):
    return ctl("doctor", "-f", name, "--site", site, "--timeout", timeout, *options, **env)


def failed(p, hop, *parts):
    """Exactly one test failed, and this one; what it says and what it advises."""
    equal(p.returncode, 1, p.stdout + p.stderr)
    lines = p.stdout.splitlines()
    bad = [i for i, l in enumerate(lines) if "  FAIL  " in l]
    equal(len(bad), 1, p.stdout)
    equal(lines[bad[0]].split("  ")[1].strip(), hop, p.stdout)
    contains(lines[bad[0]] + "\n" + lines[bad[0] + 1], "\n    -> ", *parts)
    contains(lines[-1], "1 of ")


class Answer:
    """pacxctl answer, from the moment when it listens."""

    def __init__(self, *options, name="hosts.yml", site="right", lines=1, **env):
        self.p = subprocess.Popen([CTL, "answer", "-f", name, "--site", site, "--for", "2m", *options], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=DIR.name,
                                  env={**os.environ, **env})
        self.out = ""
        while lines:
            line = self.p.stdout.readline()
            if not line:
                raise AssertionError("pacxctl answer ended: " + self.out)
            self.out += line
            lines -= "listens on" in line or "waits for" in line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.terminate()
        self.out += self.p.communicate(timeout=SECONDS)[0]
        if not _[0]:
            equal(self.p.returncode, 0, self.out)


class Server:
    """Threads that treat every connection to a port with `f`."""

    def __init__(self, port, f):
        self.s = socket.socket()
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.s.bind(("127.0.0.1", port))
        self.s.listen(50)
        self.f, self.problem, self.over = f, None, threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                c = self.s.accept()[0]
                c.settimeout(SECONDS)
                threading.Thread(target=self.serve, args=(c,), daemon=True).start()
        except OSError:
            pass

    def serve(self, c):
        try:
            with c:
                self.f(c)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.s.shutdown(socket.SHUT_RDWR)
        self.s.close()


def take(c, n):
    data = b""
    while len(data) < n:
        got = c.recv(n - len(data))
        if not got:
            raise OSError("end")
        data += got
    return data


def head(op, n, answer=1):
    return b"PXPB" + struct.pack("<BBHQ", op, answer, 0, n)


def fake(site=1, nsites=2, gateway=0, protocol=None, flags=0, clock=0.0, version="0.1.0", name="right", echo=True, stores=None):
    """An answering side without TLS that says of itself what it is told to; stores: its representation, this machine's if None."""
    if stores is None:
        stores = bytes([sys.byteorder == "big", *HERE, 4, 4, 1, 0, 0, 0])
    if protocol is None:
        with open("libpacx/wire/frame.h") as f:
            protocol = int(re.search(r"PX_PROTOCOL_VERSION (\d+)", f.read())[1])

    def serve(c):
        equal(take(c, 64)[:8], b"PACXLINK")
        while True:
            op, n = struct.unpack("<4xBxxxQ", take(c, 16))
            body = take(c, n)
            if op == 1:
                c.sendall(head(1, 272) + struct.pack("<HHHHIIQ", protocol, site, nsites, gateway, flags, 0,
                                                     int((time.time() + clock) * 1e9))
                          + version.encode().ljust(40, b"\0") + name.encode().ljust(96, b"\0") + b"j".ljust(96, b"\0") + stores)
            elif op == 2 and (echo or n < 1000):
                c.sendall(head(2, n) + body)
            elif op == 3:
                c.sendall(head(4, 4) + b"busy" if flags else head(3, 0))
    return serve


PLAIN = "{default: , security: none}"
HERE = [1, 8, 8, 4, 16, 8, 8, 16, 1]  # x86-64: char is signed, bytes of long, pointer, wchar_t, long double, alignments, x87


@test
def keygen_makes_a_secret_file_once():
    path = DIR.name + "/new.key"
    old = os.umask(0)
    p = ctl("keygen", path)
    os.umask(old)
    equal(p.returncode, 0, p.stderr)
    equal(os.stat(path).st_mode & 0o777, 0o600)
    with open(path) as f:
        text = f.read()
    if not re.fullmatch("[0-9a-f]{64}\n", text):
        raise AssertionError(text)
    if text.strip() in p.stdout + p.stderr:
        raise AssertionError("the key was printed")
    p = ctl("keygen", path)
    equal(p.returncode, 1)
    contains(p.stderr, "exists already")
    with open(path) as f:
        equal(f.read(), text)
    os.symlink(DIR.name + "/elsewhere", DIR.name + "/link.key")
    equal(ctl("keygen", DIR.name + "/link.key").returncode, 1)
    equal(os.path.exists(DIR.name + "/elsewhere"), False)
    equal(ctl("keygen", DIR.name + "/no/such/dir").returncode, 1)
    equal(ctl("keygen").returncode, 2)
    ctl("keygen", DIR.name + "/other.key")
    with open(DIR.name + "/other.key") as f:
        equal(f.read() == text, False)


@test
def usage_errors_are_2_and_say_why():
    hosts()
    for args, part in (([], "usage: pacxctl"), (["statsu"], "the nearest is 'status'"), (["doctor"], "doctor needs -f HOSTFILE"),
                       (["doctor", "-f", "missing.yml"], "cannot open the hostfile"),
                       (["doctor", "-f", "hosts.yml", "--site", "up"], "--site: found 'up', expected the name of a site in hosts.yml"),
                       (["doctor", "-f", "hosts.yml", "--timeout", "x"], "--timeout: found 'x', expected a duration"),
                       (["doctor", "-f", "hosts.yml", "x"], "found 'x', expected options only"),
                       (["top", "-d", "0"], "-d: found '0', expected a number from 0.1 to 3600"),
                       (["top", "-n", "x"], "-n: found 'x', expected a number"), (["status", "a", "b"], "found 'b'")):
        p = ctl(*args)
        equal(p.returncode, 2, args)
        contains(p.stderr, part)
    hosts(left=", host: 198.51.100.1, port: 1", right=", host: 198.51.100.2, port: 1")
    p = ctl("doctor", "-f", "hosts.yml")
    equal(p.returncode, 2)
    contains(p.stderr, "no site of hosts.yml has an address of this machine; say with --site which one this is")
    equal(ctl("--help").returncode, 0)
    contains(ctl("--version").stdout, "pacxctl ")


@test
def doctor_is_content_with_answer():
    hosts()
    ctl("keygen", "job.key")
    with Answer(PACX_KEY_FILE="job.key") as a, Answer(site="left", PACX_KEY_FILE="job.key"):
        p = ctl("doctor", "-f", "hosts.yml", PACX_KEY_FILE="job.key")
    equal(p.returncode, 0, p.stdout + a.out)
    hops = [l.split("  ")[1].strip() for l in p.stdout.splitlines() if l.startswith("left -> right")]
    equal(hops, ["name", "connect", "tls", "identity", "version", "data", "clock", "mtu"])
    contains(p.stdout, "and site right has proved that it has the job's key", "right -> left", "all 18 tests are ok",
             "site right, gateway 0, job ")
    contains(a.out, "site left tests gateway 0 of right")


@test
def doctor_needs_no_key_before_the_job():
    hosts()
    with Answer() as a:
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "there is no key here, so who is there was not proved")
    contains(a.out, "site right has no key here")


@test
def doctor_tests_every_gateway_from_the_side_that_dials():
    ports = [free_port(), free_port()]
    hosts(left=f", host: 127.0.0.1, gateways: [{{port: {ports[0]}}}, {{port: {ports[1]}}}]", right=", listen: no", links=PLAIN)
    with Answer(site="left", lines=2):
        p = doctor(site="right")
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "right -> left/0  identity  ok    site left, gateway 0", "right -> left/1  identity  ok    site left, gateway 1")
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "left -> right  right dials for both directions; run pacxctl doctor there")
    p = ctl("answer", "-f", "hosts.yml", "--site", "right")
    equal(p.returncode, 1)
    contains(p.stderr, "nobody can test this site from outside")


@test
def doctor_names_a_name_that_is_unknown():
    hosts(right=", host: no-such-host.invalid, port: PORT")
    failed(doctor(timeout="5s"), "name", "the address of no-such-host.invalid cannot be found", "correct the name in the hostfile")


@test
def doctor_explains_a_refused_connection():
    port = hosts()[1]
    failed(doctor(), "connect", f"127.0.0.1 port {port} refuses the connection: nothing listens there",
           "pacxctl answer -f hosts.yml --site right")


@test
def doctor_explains_a_connection_without_answer():
    port = hosts()[1]
    with socket.socket() as s:  # a full queue takes no connection and says nothing, like a firewall that drops
        s.bind(("127.0.0.1", port))
        s.listen(0)
        clients = [socket.socket() for _ in range(4)]
        for c in clients:
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", port))
        failed(doctor(timeout="1s"), "connect", f"no answer from 127.0.0.1 port {port} within 1 s", "firewall", f"TCP port {port}")
        for c in clients:
            c.close()


@test
def doctor_explains_a_missing_route():
    hosts(right=", host: '2001:db8::1', port: PORT")
    p = doctor(timeout="1s")
    if "no answer from" in p.stdout:
        return  # this machine has a route for anything
    failed(p, "connect", "2001:db8::1", "")


@test
def doctor_knows_a_port_that_is_not_pacx():
    port = hosts()[1]
    with Server(port, lambda c: (c.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" * 10), c.recv(1000), c.recv(1000))):
        failed(doctor(), "tls", "another program")
    with Server(port, lambda c: None):
        failed(doctor(), "tls", "another program may have the port, or the hostfile or PACX_JOB is not the same at both sites")
    with Server(port, lambda c: (c.recv(1000), c.recv(1000), c.recv(1000))):
        failed(doctor(timeout="1s"), "tls", "no answer in time", "it is not PACX, or a firewall lets a connection through but no bytes")
    port = hosts(links=PLAIN)[1]
    with Server(port, lambda c: (c.sendall(b"220 mail.example.org ESMTP\r\n" * 10), c.recv(1000), c.recv(1000))):
        failed(doctor(), "pacx", "not of PACX")


@test
def doctor_finds_another_key():
    hosts()
    for n in "a.key", "b.key":
        if not os.path.exists(f"{DIR.name}/{n}"):
            ctl("keygen", n)
    with Answer(PACX_KEY_FILE="a.key") as a:
        failed(doctor(PACX_KEY_FILE="b.key"), "tls", "the other side has another key", "copy the same key file (pacxctl keygen) to both sites")
        failed(doctor(), "tls", "there is no key here")
    contains(a.out, "another key")
    os.chmod(DIR.name + "/b.key", 0o644)
    failed(doctor(PACX_KEY_FILE="b.key"), "key", "chmod 600")
    with open(DIR.name + "/a.key") as f:  # the variable that pacxrun sets
        key = f.read().strip()
    with Answer(PACX_KEY_FILE="a.key"):
        equal(doctor(PACX_KEY=key).returncode, 0)


@test
def doctor_finds_another_job_or_hostfile():
    ports = hosts()
    with Answer(PACX_JOB="other") as a:
        failed(doctor(), "tls", "PACX_JOB is not the same at both sites")
    contains(a.out, "it is of another job; use the same hostfile (and PACX_JOB) at all sites")
    with open(DIR.name + "/hosts.yml") as f:
        text = f.read()
    with open(DIR.name + "/plain.yml", "w") as f:
        f.write(text + f"links: [{PLAIN}]\n")
    with Answer() as a:
        failed(doctor(name="plain.yml"), "pacx", "")
    contains(a.out, "it wants no TLS, but here the link has it")
    with Answer(name="plain.yml") as a:
        failed(doctor(), "tls", "")
    contains(a.out, "it wants TLS, but here the link has security: none")
    del ports


@test
def doctor_finds_another_site_or_version_or_clock():
    port = hosts(links=PLAIN)[1]
    with Server(port, fake(site=0, name="left")):
        failed(doctor(), "identity", "it is site left (1 of 2), gateway 0; gateway 0 of right (2 of 2) was dialled", "same hostfile")
    with Server(port, fake(gateway=1)):
        failed(doctor(), "identity", "gateway 1")
    with Server(port, fake(protocol=77, version="9.9")):
        failed(doctor(), "version", "it speaks version 77 of the protocol (PACX 9.9)", "install the same version of PACX")
    with Server(port, fake(clock=-7200)):
        failed(doctor(), "clock", "its clock is 7200 s behind", "NTP")
    with Server(port, fake(clock=30, version="0.1.1\x1b[2J")):
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "+30.0", "times in the logs of the sites differ as much", "PACX 0.1.1?[2J; here is ")


@test
def doctor_names_what_is_stored_otherwise_and_what_it_costs():
    port = hosts(links=PLAIN)[1]
    if os.uname().machine != "x86_64":
        return
    for stores, said in (
            ([1, 0, 8, 8, 4, 16, 8, 8, 8, 2, 4, 4, 0, 0, 0, 1], ["bytes are in", "endian order", "long double is IEEE's 128 bits"]),
            ([0, 1, 4, 4, 4, 12, 4, 4, 4, 1, 4, 4, 1, 0, 0, 0], ["long has 32 bits, not 64: values beyond 2^31 are errors there",
                                                             "MPI_Aint has 32 bits, not 64: values beyond 2^31 are errors there"])):
        with Server(port, fake(stores=bytes(stores))):
            p = doctor()
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "data      ok    stored unlike here: at site right ", *said)
    with Server(port, fake(stores=bytes(16))):
        failed(doctor(), "pacx", "not of PACX")


@test
def doctor_finds_packets_that_do_not_pass():
    port = hosts(links=PLAIN)[1]
    with Server(port, fake(echo=False)):
        failed(doctor(timeout="1s"), "mtu", "short packets pass, 32 KiB do not", "MTU")


@test
def doctor_checks_the_own_port():
    port = hosts(left=", host: 127.0.0.1, port: PORT, bind: 198.51.100.7")[0]
    with Answer():
        failed(doctor(), "listen", f"198.51.100.7 port {port}", "name an address of this machine with bind:")
    hosts()
    with Answer(), Answer(site="left"):
        contains(doctor().stdout, "left  listen    ok", "is in use: by the job, pacxctl answer or another program")


def http_proxy(verdict):
    def serve(c):
        request = b""
        while b"\r\n\r\n" not in request:
            request += c.recv(1000)
        host, port = re.match(rb"CONNECT ([^ :]+):(\d+) ", request).groups()
        if verdict != 200:
            c.sendall(b"HTTP/1.1 %d Forbidden\r\n\r\n" % verdict)
            return
        with socket.create_connection((host.decode(), int(port)), SECONDS) as up:
            c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            pump(c, up)
    return serve


def pump(a, b):
    both = {a: b, b: a}
    while True:
        for s in select.select([a, b], [], [], SECONDS)[0] or [None]:
            data = s.recv(65536) if s else b""
            if not data:
                return
            both[s].sendall(data)


@test
def doctor_goes_through_a_proxy():
    proxy = free_port()
    hosts(links=f"{{default: , proxy: 'http://127.0.0.1:{proxy}'}}")
    failed(doctor(), "connect", f"127.0.0.1 port {proxy} refuses", "proxy")
    with Server(proxy, http_proxy(403)):
        failed(doctor(), "proxy", "403", "have the proxy allow 127.0.0.1 port ")
    with Server(proxy, http_proxy(200)), Answer():
        p = doctor()
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "of the proxy", "it has connected to 127.0.0.1 port ")


@test
def doctor_goes_through_a_command():
    with open(DIR.name + "/nc.py", "w") as f:
        f.write("import os, select, socket, sys\n"
                "s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)\n"
                "while True:\n"
                "    for x in select.select([0, s], [], [], 60)[0] or sys.exit():\n"
                "        data = os.read(0, 65536) if x == 0 else s.recv(65536)\n"
                "        if not data:\n"
                "            sys.exit()\n"
                "        if x == 0:\n"
                "            s.sendall(data)\n"
                "        else:\n"
                "            os.write(1, data)\n")
    hosts(links=f"{{default: , dial: '{sys.executable} nc.py %h %p'}}")
    with Answer():
        p = doctor()
    equal(p.returncode, 0, p.stdout + p.stderr)
    contains(p.stdout, "left -> right  command   ok    started: ", "32 KiB came back")
    failed(doctor(), "tls", "the command of dial: has ended, or leads elsewhere")


def relay():
    """Two connections whose preambles differ only in who is the writer, number and proof belong together."""
    waiting, lock = {}, threading.Lock()

    def serve(c):
        pre = bytearray(take(c, 64))
        mine = pre[11] & 2
        pre[11] &= 1
        del pre[40:]
        with lock:
            other = waiting.pop((bytes(pre), mine ^ 2), None)
            if other is None:
                met = threading.Event()
                waiting[bytes(pre), mine] = (c, met)
        if other is None:
            met.wait(SECONDS)  # the other thread moves the bytes
            return
        with other[0]:
            pump(c, other[0])
        other[1].set()
    return serve


@test
def doctor_meets_answer_at_a_relay():
    port = free_port()
    hosts(left=", listen: no", right=", listen: no", links=f"{{default: , relay: '127.0.0.1:{port}'}}")
    failed(doctor(), "connect", f"pacxd --relay 127.0.0.1:{port}")
    with Server(port, relay()):
        failed(doctor(timeout="1s"), "tls", "nobody has come to the other side of the relay", "pacxctl answer -f hosts.yml --site right")
    port = free_port()
    hosts(left=", listen: no", right=", listen: no", links=f"{{default: , relay: '127.0.0.1:{port}'}}")
    with Server(port, relay()), Answer():
        p = doctor()
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "of the relay", "site right, gateway 0")
        p = doctor()  # and again
        equal(p.returncode, 0, p.stdout)


@test
def daemons_of_a_running_job_answer_too():
    program = BUILD + "/openmpi/tests/stdin_rank0"
    if not os.path.exists(program):
        return  # not built
    hosts(left=", host: 127.0.0.1, port: PORT, mpi: openmpi", right=", host: 127.0.0.1, port: PORT, mpi: openmpi")
    if not os.path.exists(DIR.name + "/job.key"):
        ctl("keygen", "job.key")
    env = {**os.environ, "PACX_JOB": "running", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    job = subprocess.Popen([BUILD + "/bin/pacxrun", "-f", "hosts.yml", "--key", "job.key", "--", program], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=DIR.name)
    try:
        end = time.monotonic() + SECONDS
        while True:
            p = doctor(PACX_JOB="running", PACX_KEY_FILE="job.key")
            if p.returncode == 0 or time.monotonic() > end:
                break
            time.sleep(0.2)  # it is starting
        equal(p.returncode, 0, p.stdout)
        contains(p.stdout, "site right, gateway 0, job running, which runs", "32 KiB came back")
        p = ctl("probe", "-f", "hosts.yml", "--site", "left", PACX_JOB="running", PACX_KEY_FILE="job.key")
        contains(p.stdout, "a job runs there; its bandwidth is not disturbed by a test")
        failed(doctor(PACX_KEY_FILE="job.key"), "tls", "PACX_JOB is not the same at both sites")
    finally:
        out, err = job.communicate("hello\n", timeout=SECONDS)
    equal(job.returncode, 0, out + err)
    contains(err, "it is of another job")


@test
def answer_gives_strangers_nothing():
    port = hosts()[1]
    with Answer() as a:
        for what in (b"GET / HTTP/1.0\r\n\r\n" * 5, b"PACXLINK" + bytes(56), b"\0" * 5):
            with socket.create_connection(("127.0.0.1", port), SECONDS) as s:
                s.settimeout(SECONDS)
                try:
                    s.sendall(what)
                    s.shutdown(socket.SHUT_WR)  # it may have closed by now
                    equal(s.recv(100), b"")
                except OSError as e:
                    equal(isinstance(e, TimeoutError), False, e)
        equal(doctor().returncode, 0)
    equal(a.out.count("what it sent is no PACX preamble"), 2, a.out)
    contains(a.out, "before the end of its preamble")
    with Answer(), socket.socket():
        p = ctl("answer", "-f", "hosts.yml", "--site", "right")
        equal(p.returncode, 1)
        contains(p.stderr, f"cannot listen on 127.0.0.1 port {port}: Address already in use; if the job runs")


@test
def answer_takes_a_daemon_for_what_it_is():
    port = hosts(links=PLAIN)[1]
    with Answer() as a:
        job = re.search("job (\\w+)", doctor().stdout)[1]
        with socket.create_connection(("127.0.0.1", port), SECONDS) as s:
            s.settimeout(SECONDS)
            s.sendall(b"PACXLINK" + struct.pack("<HBBHHHHHH", 1, 1, 0, 0, 1, 0, 0, 0, 0) + hashlib.sha256(job.encode()).digest()[:16]
                      + bytes(24))
            equal(s.recv(10), b"")
    contains(a.out, "it is the daemon of a job, whose own daemons are not here yet")


@test
def probe_measures_and_proposes():
    hosts()
    with Answer():
        p = ctl("probe", "-f", "hosts.yml", "--site", "left", "--for", "100ms")
    equal(p.returncode, 0, p.stdout + p.stderr)
    if not re.fullmatch("left -> right\n  latency: [0-9.]+ us there and back at best, [0-9.]+ us the median\n"
                        "  1 stream: [0-9.]+ [MG]B/s\n(  [248] streams: [0-9.]+ [MG]B/s\n){3}"
                        r"  proposed: \{between: \[left, right\], streams: [1248], compress: auto\}" "\n", p.stdout):
        raise AssertionError(p.stdout)
    hosts()
    p = ctl("probe", "-f", "hosts.yml", "--site", "left", "--for", "100ms")
    equal(p.returncode, 1)
    contains(p.stdout, "no way: 127.0.0.1 port ", "see pacxctl doctor")


@test
def probe_does_not_disturb_a_job():
    port = hosts(links=PLAIN)[1]
    with Server(port, fake(flags=1)):
        p = ctl("probe", "-f", "hosts.yml", "--site", "left")
        contains(doctor().stdout, "job j, which runs")
    equal(p.returncode, 0, p.stdout)
    contains(p.stdout, "latency", "a job runs there; its bandwidth is not disturbed by a test")


class Daemons:
    """Status sockets as those of pacxd; payload and messages grow with every question."""

    def __init__(self, sites=(("melt", "left", "out"), ("melt", "right", "in")), step=0):
        self.dir = tempfile.mkdtemp(dir=DIR.name)
        os.chmod(self.dir, 0o700)
        self.servers, self.asked, self.step = [], {}, step
        for job, site, role in sites:
            s = socket.socket(socket.AF_UNIX)
            s.bind(f"{self.dir}/{job}-{site}-{role}0.sock")
            s.listen(5)
            self.servers.append(s)
            threading.Thread(target=self.serve, args=(s, job, site, role), daemon=True).start()

    def serve(self, s, job, site, role):
        try:
            while True:
                c = s.accept()[0]
                n = self.asked[site, role] = self.asked.get((site, role), 0) + 1
                with c:
                    c.sendall(self.text(job, site, role, n).encode())
        except OSError:
            pass

    def text(self, job, site, role, n):
        link = {"from": "left", "to": "right", "state": "up", "since_s": 75, "last_byte_s": 0.5, "streams": 4, "rtt_us": 10123.4,
                "messages": 1000 * n, "payload_bytes": 5000000 * n * self.step, "wire_bytes": 2000000, "queued_bytes": 65536,
                "retained_bytes": 2 << 20, "reconnects": 2, "rate_Bps": 1e6,
                "codec": {"zstd+shuffle": {"segments": 9, "in": 300, "out": 100, "ns": 5}, "lz4": {"in": 100, "out": 60}}}
        return json.dumps({"pid": 4711, "job": job, "site": site, "role": role, "gateway": 0, "version": "0.1.0", "uptime_s": 3700,
                           "anon_bytes": 45 << 20, "buffer_bytes": 256 << 20, "buffer_used": 3 << 20, "links": [link]}) + "\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in self.servers:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


@test
def status_shows_daemons_and_links():
    with Daemons(step=1) as d:
        p = ctl("status", PACX_RUN_DIR=d.dir)
        equal((p.returncode, p.stderr), (0, ""))
        lines = p.stdout.splitlines()
        equal(lines[0], "job melt")
        equal(lines[2].split(), "left:out/0 4711 1h01m 45.0 MiB 3.0 MiB of 256 MiB 0.1.0".split())
        equal(lines[6].split(), "left:out/0 left->right up 1m15s 4 10.12 ms 1000 5.0 MB 2.50 64.0 KiB 2.0 MiB 2".split())
        p = ctl("status", "--json", PACX_RUN_DIR=d.dir)
        equal([x["site"] for x in json.loads(p.stdout)], ["left", "right"])
        p = ctl("status", "other", PACX_RUN_DIR=d.dir)
        equal(p.returncode, 1)
        contains(p.stderr, "no daemon of yours runs on this machine for job other")
        os.chmod(d.dir, 0o755)
        p = ctl("status", PACX_RUN_DIR=d.dir)
        equal(p.returncode, 1)
        contains(p.stderr, "has mode 755, others could reach into it")


@test
def status_removes_the_sockets_of_dead_daemons():
    with Daemons() as d:
        pass
    names = os.listdir(d.dir)
    equal(len(names), 2)
    with open(d.dir + "/note.txt", "w"):
        pass
    p = ctl("status", PACX_RUN_DIR=d.dir)
    equal(p.returncode, 1)
    equal(os.listdir(d.dir), ["note.txt"])
    equal(ctl("status", "--json", PACX_RUN_DIR=d.dir).stdout, "[]\n")


@test
def status_waits_for_nobody():
    class Mute(Daemons):
        def serve(self, s, job, site, role):
            if site == "left":
                super().serve(s, job, site, role)
            elif site == "right":
                self.held = s.accept()  # and not a word
            else:
                s.accept()[0].sendall(b'{"pid": 1, "links": [')  # and the end
    with Mute(sites=(("m", "left", "out"), ("m", "right", "out"), ("m", "far", "out"))) as d:
        p = ctl("status", PACX_RUN_DIR=d.dir)
    equal(p.returncode, 1)
    contains(p.stdout, "left:out/0")
    contains(p.stderr, "2 daemons do not answer")


@test
def status_is_found_wherever_the_daemon_put_it():
    with Daemons() as d:
        os.mkdir(DIR.name + "/xdg")
        os.rename(d.dir, f"{DIR.name}/xdg/pacx-{os.geteuid()}")
        equal(ctl("status", XDG_RUNTIME_DIR=DIR.name + "/xdg").returncode, 0)


@test
def top_prints_blocks_without_a_terminal():
    with Daemons(step=1) as d:
        p = ctl("top", "-n", "2", "-d", "0.2", PACX_RUN_DIR=d.dir)
    equal((p.returncode, p.stderr), (0, ""))
    if "\033" in p.stdout:
        raise AssertionError(p.stdout)
    rows = re.findall(r"^left->right +up +([#.]{12}) +([0-9.]+) +(\d+) +10.12 ms +2.50 +64.0 KiB +([0-9.]+ MB) +(\d+)$", p.stdout, re.M)
    equal([(r[0], r[3], r[4]) for r in rows], [("#" * 12, "10.0 MB", "2000"), ("#" * 12, "15.0 MB", "3000")], p.stdout)
    for r in rows:  # 5 MB and 1000 messages in the same time, whatever it was
        if not 0.9 < float(r[1]) / (float(r[2]) * 5e-3) < 1.1 or float(r[1]) <= 0:
            raise AssertionError(p.stdout)
    contains(p.stdout, "job melt", "right:in/0")
    equal(p.stdout.count("left->right"), 2)  # not again from its receiver


@test
def top_draws_a_screen_until_q():
    with Daemons(step=1) as d:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        before = termios.tcgetattr(slave)
        p = subprocess.Popen([CTL, "top", "-d", "0.1"], stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "PACX_RUN_DIR": d.dir})
        out, end = b"", time.monotonic() + SECONDS
        while out.count(b"\033[H\033[J") < 3:
            if time.monotonic() > end or p.poll() is not None:
                raise AssertionError(out)
            if select.select([master], [], [], 1)[0]:
                out += os.read(master, 65536)
        os.write(master, b"q")
        equal(p.wait(SECONDS), 0)
        while select.select([master], [], [], 0.2)[0]:
            out += os.read(master, 65536)
        equal(termios.tcgetattr(slave), before)
        os.close(slave)
        os.close(master)
    contains(out, b"\033[?1049h", b"left->right")
    equal(out.rstrip().endswith(b"\033[?25h\033[?1049l"), True, out[-80:])
    for l in re.sub(rb"\033\[[?0-9]*[A-Za-z]", b"", out).replace(b"\r", b"").split(b"\n"):
        if len(l) > 60:
            raise AssertionError(l)


@test
def top_ends_in_order_by_a_signal():
    with Daemons() as d:
        p = subprocess.Popen([CTL, "top", "-n", "1000", "-d", "100"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PACX_RUN_DIR": d.dir})
        while not d.asked:
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=SECONDS)
    if p.returncode not in (0, -signal.SIGTERM):
        raise AssertionError(p.returncode)


def main():
    wanted = [t for t in TESTS if not sys.argv[1:] or t.__name__ in sys.argv[1:]]
    bad = 0
    print(f"1..{len(wanted)}", flush=True)
    for t in wanted:
        try:
            t()
            print(f"ok {t.__name__}", flush=True)
        except Exception as e:  # whatever it is, the test has failed
            bad += 1
            print(f"  {type(e).__name__}: {e}\nnot ok {t.__name__}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
