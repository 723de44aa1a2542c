#!/usr/bin/env python3
"""pacxctl: keygen, answer, probe, status and top, all on loopback.

usage: tests/daemon/pacxctl_test.py [TEST...]        PACX_BUILD: the build directory (build)
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

import wire
from cases import contains, equal, main, test
from ctl import Answer, ctl, CTL, DIR, doctor, fake, hosts, PLAIN, SECONDS, Server


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
            s.sendall(wire.preamble(job, 0, 1))
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
                        r"  proposed: \{between: \[left, right\], streams: [1248], compress: auto\}\n"
                        r"collectives over all 2 sites, all links as the slowest of these: algorithm \(segments; [^)]*\), ms\n"
                        r"(  (bcast|reduce|allreduce) +1 B: leader \(1\) [0-9.]+, .*, 32 MiB: \w+ \(\d+\) [0-9.]+\n){3}"
                        r"  alltoall +1 B: (leader|direct) \(\d+\) [0-9.]+, .*, 32 MiB: direct \(\d+\) [0-9.]+\n", p.stdout):
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

    def __init__(self, sites=(("melt", "left", "out"), ("melt", "right", "in")), step=0, lossy=0):
        self.dir = tempfile.mkdtemp(dir=DIR.name)
        os.chmod(self.dir, 0o700)
        self.servers, self.asked, self.step, self.lossy = [], {}, step, lossy
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
                "codec": {"zstd+shuffle": {"segments": 9, "in": 300, "out": 100, "ns": 5}, "lz4": {"in": 100, "out": 60}},
                "lossy": {"segments": 2 * self.lossy, "in": 720000 * self.lossy, "out": 90000 * self.lossy, "ns": 7}}
        for c in [*link["codec"].values(), link["lossy"]] if role == "in" else []:
            c["in"], c["out"] = c["out"], c["in"]
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
        equal(lines[7].split(), "right:in/0 left->right up 1m15s 4 10.12 ms 1000 5.0 MB 2.50 64.0 KiB 2.0 MiB 2".split())
        equal("lossy" in p.stdout, False)
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
def status_says_what_was_lossy_at_both_ends():
    with Daemons(lossy=1) as d:
        said = [l.split() for l in ctl("status", PACX_RUN_DIR=d.dir).stdout.splitlines() if "lossy" in l]
        equal(said, ["left->right 720 kB of numbers are lossy, within the bound that was asked for".split()] * 2)


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


if __name__ == "__main__":
    main()
