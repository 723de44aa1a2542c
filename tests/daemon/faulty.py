"""faulty.py: a real job whose links go through proxies that break them; used by resume_test.py and resume_long.py.

Storm starts pacxrun on tests/mpi/storm.c, or another program, with one Proxy before the port of each site. The program runs until `finish` says so;
then `end` waits for the job and gives its exit status and output, and `links` what --stats says.
"""
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid

from faultproxy import Proxy
from sites import BUILD

SECONDS = 40  # until a test gives up


class Storm:
    def __init__(self, mpi=("openmpi", "openmpi"), ranks=1, link="", links=(), seed=1, largest=2000000, env=None, record=0,
                 plans=None, program="storm", arguments=None, sites="", gateways=1):
        """mpi: of each site; link: options of all links; links: more lines of the hostfile's links; record: see Proxy;
        plans: a plan for the Proxy of each site; program: of tests/mpi, with the arguments of storm or others; sites: more keys of each site;
        gateways: of each site, each with a Proxy."""
        self.dir = tempfile.TemporaryDirectory(prefix="pacx-storm-")
        self.mark = "PACXTEST_" + uuid.uuid4().hex
        self.stop = self.dir.name + "/stop"
        self.held, self.ports, self.proxies, lines = [], [], [], []  # ports: where the sites listen
        self.links_wanted = len(mpi) * (len(mpi) - 1) * gateways
        for i, m in enumerate(mpi):
            ways = [self.way(record, plans[i] if plans else None) for _ in range(gateways)]
            where = ways[0] if gateways == 1 else "host: 127.0.0.1, gateways: [" + ", ".join(f"{{{w}}}" for w in ways) + "]"
            lines.append(f"  - {{name: s{i}, {where}, ranks: {ranks}, mpi: {m}{sites}}}")
        hosts = self.dir.name + "/hosts.yml"
        with open(hosts, "w") as f:
            f.write("\n".join(["sites:", *lines, "links:", f"  - {{default: , {link}}}", *links]) + "\n")
        self.p = subprocess.Popen([BUILD + "/bin/pacxrun", "-f", hosts, "--stats", self.dir.name + "/stats", "--",
                                   BUILD + "/{mpi}/tests/" + program, *(arguments or [self.stop, str(seed), str(largest)])],
                                  env=dict(os.environ, **{self.mark: "1"}, **(env or {})), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    def way(self, record, plan):
        """A port, and the proxy before it; its keys in the hostfile."""
        s = socket.socket()  # bound, not listening, so that nobody else gets the port
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        self.held.append(s)
        port = s.getsockname()[1]
        self.ports.append(port)
        p = Proxy(port, record=record, plan=plan)
        self.proxies.append(p)
        return f"host: 127.0.0.1, port: {p.port}, bind: '127.0.0.1:{port}'"

    def count(self, what):
        return sum(p.count[what] for p in self.proxies)

    def until(self, condition, what, seconds=SECONDS):
        """Wait, but not for a job that has ended."""
        end = time.monotonic() + seconds
        while not condition():
            if self.p.poll() is not None:
                raise AssertionError(f"the job ended before {what}; {self.seen()}\n{self.p.communicate()[0][-8000:]}")
            assert time.monotonic() < end, f"{what} did not come about within {seconds} s; {self.seen()}"
            time.sleep(0.02)

    def running(self, moved=1 << 20):
        """Until there is a connection for every link, and all proxies that are dialled have moved something."""
        self.until(lambda: self.count("connections") >= self.links_wanted and
                   all(p.count["bytes"] > moved for p in self.proxies if p.count["connections"]), "traffic on all links")

    def seen(self):
        return ", ".join(f"s{i}: {dict(p.count)}" for i, p in enumerate(self.proxies))

    def finish(self):
        open(self.stop, "w").close()

    def end(self, seconds=SECONDS):
        """(exit status, output)"""
        try:
            text, _ = self.p.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job has not ended after {seconds} s; {self.seen()}\n{self.kill()}") from None
        return self.p.returncode, text

    def good(self):
        """Calm the proxies, finish, check that the job ended well; its output."""
        for p in self.proxies:
            p.calm()
        self.finish()
        status, text = self.end()
        assert status == 0 and ", 0 failed" in text, f"exit status {status}; {self.seen()}\n{text[-8000:]}"
        return text

    def links(self):
        with open(self.dir.name + "/stats") as f:
            return json.load(f)["links"]

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = self.mark.encode() in f.read()
                with open(f"/proc/{pid}/stat") as f:
                    zombie = f.read().rpartition(")")[2].split()[0] in "ZX"
                if ours and not zombie:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def gone(self, seconds=10):
        """Nothing of the job is left."""
        end = time.monotonic() + seconds
        while self.processes():
            assert time.monotonic() < end, f"left behind: {self.processes()}"
            time.sleep(0.05)

    def kill(self):
        """What the job has said so far."""
        self.p.send_signal(signal.SIGTERM)
        try:
            return self.p.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            return self.p.communicate()[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.kill()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for p in self.proxies:
            p.close()
        for s in self.held:
            s.close()
        self.dir.cleanup()
