"""ctl.py: pacxctl as the tests call it, a hostfile for it, and the other side: its own answer, or one that says what it is told to."""
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from cases import contains, equal, forget
from ports import free_ports

BUILD = os.path.abspath(os.environ.get("PACX_BUILD", "build"))
CTL = BUILD + "/bin/pacxctl"
DIR = tempfile.TemporaryDirectory()
SECONDS = 60  # until a test gives up
forget("XDG_RUNTIME_DIR")


def ctl(*args, **env):
    p = subprocess.run([CTL, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, cwd=DIR.name,
                       env={**os.environ, **env})
    return p


def hosts(left="", right="", links="", job="j", name="hosts.yml"):
    """A hostfile of two sites; every port is a free one that nobody listens on."""
    ports = free_ports(2)
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
