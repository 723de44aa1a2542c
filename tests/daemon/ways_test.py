#!/usr/bin/env python3
"""ways_test.py: ways of a link other than a plain connection to the peer: a site behind NAT that dials for both directions, a relay
before or after the sites, a chain of two, SOCKS5 and HTTP CONNECT proxies, a command as transport, a fixed source port, IPv6, gateways.
Each carries a real job (tests/mpi/storm) on loopback, with TLS."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ports import free_ports  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def job(link, site=("", ""), host="127.0.0.1", ports=None, args=()):
    """A hostfile job of 2+1 ranks; (status, text)."""
    have = flavors()
    a, b = ports or free_ports(2, host)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "hosts.yml")
        with open(path, "w") as f:
            f.write(f"sites:\n  - {{name: a, host: '{host}', port: {a}, ranks: 2, mpi: {have[0]}{site[0]}}}\n"
                    f"  - {{name: b, host: '{host}', port: {b}, ranks: 1, mpi: {have[-1]}{site[1]}}}\n"
                    f"links: [{{default: {', ' + link if link else ''}}}]\ndeadlines: {{start: 30s}}\n")
        p = subprocess.run([f"{BUILD}/bin/pacxrun", "-f", path, *args, "--", f"{BUILD}/{{mpi}}/tests/storm"], env=ENV,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
        return p.returncode, p.stdout + p.stderr


def good(*a, **k):
    status, text = job(*a, **k)
    assert status == 0 and " 0 failed" in text, text


@contextlib.contextmanager
def relay(port, *args):
    p = subprocess.Popen([f"{BUILD}/bin/pacxd", "--relay", f"127.0.0.1:{port}", *args], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    try:
        line = p.stdout.readline()
        assert "listening on" in line, line
        yield p
    finally:
        p.terminate()
        p.wait(10)


def behind_nat():
    """Site b cannot be reached: it has no port to speak of, and dials for both directions."""
    good("", site=("", ", listen: no"))


def one_side_dials_by_name():
    good("dial: b")


def both_meet_at_a_relay():
    port, = free_ports(1)
    with relay(port):
        good(f"relay: '127.0.0.1:{port}'", site=(", listen: no", ", listen: no"))


def relay_comes_after_the_sites():
    port, = free_ports(1)
    got = []
    t = threading.Thread(target=lambda: got.append(job(f"relay: '127.0.0.1:{port}', streams: 2")))
    t.start()
    time.sleep(2)  # the sites are waiting by then, or not yet: both must do
    with relay(port):
        t.join()
    assert got[0][0] == 0 and " 0 failed" in got[0][1], got


def chain_of_two_relays():
    """The hostfile is one for all sites; here both dial the first, which sends everything on to the second."""
    one, two = free_ports(2)
    with relay(two), relay(one, "--next", f"127.0.0.1:{two}"):
        good(f"relay: '127.0.0.1:{one}'")


def relay_dies_and_comes_back():
    port, = free_ports(1)
    got = []
    t = threading.Thread(target=lambda: got.append(job(f"relay: '127.0.0.1:{port}', emulate: {{latency: 2ms, rate: 4MB/s}}")))
    with relay(port) as p:
        t.start()
        time.sleep(4)
        p.kill()
    with relay(port):
        t.join()
    assert got[0][0] == 0 and " 0 failed" in got[0][1], got


def pump(a, b):
    with contextlib.suppress(OSError):
        while data := a.recv(65536):
            b.sendall(data)
    for s in (a, b):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)


class Proxy:
    """SOCKS5 (with user and password) and HTTP CONNECT, enough of both, each by its first byte."""
    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.tunnels = 0
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.safely, args=(self.server.accept()[0],), daemon=True).start()

    def safely(self, s):
        with contextlib.suppress(OSError, IndexError):  # it is refused, and hangs up
            self.serve(s)
        s.close()

    def serve(self, s):
        first = s.recv(1)
        if first == b"\x05":
            n = s.recv(1)[0]
            methods = s.recv(n)
            if 2 not in methods:
                s.sendall(b"\x05\xff")
                return
            s.sendall(b"\x05\x02")
            s.recv(1)
            user = s.recv(s.recv(1)[0])
            password = s.recv(s.recv(1)[0])
            s.sendall(b"\x01\x00" if (user, password) == (b"me", b"secret") else b"\x01\x01")
            head = s.recv(4)
            host = socket.inet_ntoa(s.recv(4)) if head[3] == 1 else s.recv(s.recv(1)[0]).decode()
            port = int.from_bytes(s.recv(2), "big")
            to = socket.create_connection((host, port))
            s.sendall(b"\x05\x00\x00\x01" + bytes(6))
        else:
            text = first
            while b"\r\n\r\n" not in text:
                text += s.recv(1)
            host, port = text.split()[1].decode().rsplit(":", 1)
            to = socket.create_connection((host, int(port)))
            s.sendall(b"HTTP/1.1 200 Go ahead\r\nX: y\r\n\r\n")
        self.tunnels += 1
        threading.Thread(target=pump, args=(to, s), daemon=True).start()
        pump(s, to)


def proxied(scheme):
    p = Proxy()
    good(f"proxy: '{scheme}127.0.0.1:{p.port}'")
    assert p.tunnels >= 2, p.tunnels
    p.server.close()


def wrong_password_is_named():
    p = Proxy()
    status, text = job(f"proxy: 'socks5://me:wrongword@127.0.0.1:{p.port}'", args=("--timeout", "6s"))
    assert status == 3 and "proxy" in text and "wrongword" not in text, text
    p.server.close()


def fixed_source_port():
    base = free_ports(1)[0] & ~15
    ports = free_ports(2)
    seen = set()
    stop = threading.Event()

    def look():
        while not stop.is_set():
            with open("/proc/net/tcp") as f:
                for line in f.readlines()[1:]:
                    cell = line.split()
                    local, remote = (int(x.split(":")[1], 16) for x in cell[1:3])
                    if remote in ports and cell[3] == "01":
                        seen.add(local)
            time.sleep(0.02)
    t = threading.Thread(target=look)
    t.start()
    try:
        good(f"streams: 2, tcp: {{source_port: {base}}}", ports=ports)
    finally:
        stop.set()
        t.join()
    assert seen and seen <= set(range(base, base + 4)), (seen, base)


def more_streams_than_the_soft_limit_of_files():
    """A daemon has 103 files here; the launcher of Open MPI 6 needs 80 itself, in a world of one rank."""
    have = flavors()
    p = subprocess.run(["/bin/sh", "-c", 'ulimit -Sn 90; exec "$@"', "sh", f"{BUILD}/bin/pacxrun", "-n", "1+1", "--mpi", f"{have[0]}+{have[-1]}",
                        "--link", "streams: 64", "--", f"{BUILD}/{{mpi}}/tests/storm"], env=ENV, stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=90)
    assert p.returncode == 0 and " 0 failed" in p.stdout and "Too many open files" not in p.stderr, p.stdout + p.stderr


def streams_are_added_to_a_full_link():
    """Where each connection is limited (here by the emulation) and the link is full, `streams: auto` opens more; no timing, only their number."""
    have = flavors()[0]
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "stats")
        p = subprocess.run([f"{BUILD}/bin/pacxrun", "-n", "1+1", "--mpi", have, "--stats", out, "--link",
                            "compress: none, emulate: {latency: 3ms, rate: 8MB/s}", "--", f"{BUILD}/{have}/tests/huge"],
                           env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90)
        assert p.returncode == 0 and " 0 failed" in p.stdout, p.stdout + p.stderr
        with open(out) as f:
            n = [link["streams"] for link in json.load(f)["links"]]
        assert max(n) >= 4, n


def source_port_with_several_gateways():
    """They dial the same port from the same host, as do both directions of a site that does not listen."""
    base = free_ports(1)[0] & ~63
    c = free_ports(1)[0]
    good(f"streams: 1, tcp: {{source_port: {base}}}", site=(", listen: no, gateways: [{}, {}, {}]", f", gateways: [{{port: {c}}}]"))


def source_port_that_is_taken_is_named():
    with socket.socket() as s:
        s.bind(("", 65535))
        s.listen()
        status, text = job("tcp: {source_port: 65535}", args=("--timeout", "3s"))
    assert status == 3 and "no local port from 65535 to 65535 can be used" in text, text


def ipv6():
    good("", host="::1")


def several_gateways():
    a1, a2, b1, b2, b3 = free_ports(5)
    def gates(*ports):
        return ", gateways: [" + ", ".join(f"{{host: 127.0.0.1, port: {p}}}" for p in ports) + "]"
    good("streams: 2", site=(gates(a1, a2), gates(b1, b2, b3)))


def main():
    if not flavors():
        return 77
    tests = [behind_nat, one_side_dials_by_name, both_meet_at_a_relay, relay_comes_after_the_sites, chain_of_two_relays,
             relay_dies_and_comes_back, wrong_password_is_named, fixed_source_port, source_port_with_several_gateways,
             source_port_that_is_taken_is_named, several_gateways,
             more_streams_than_the_soft_limit_of_files, streams_are_added_to_a_full_link]
    if os.path.exists("/proc/net/if_inet6") and " lo" in open("/proc/net/if_inet6").read():
        tests.append(ipv6)
    named = [(t.__name__, t) for t in tests]
    named.append(("socks5_proxy", lambda: proxied("socks5://me:secret@")))
    named.append(("http_proxy", lambda: proxied("http://")))
    only = sys.argv[1:]
    run([t for t in named if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
