"""relay_ends.py: a relay, and the two ends that meet at it, as the tests of relays play them."""
import os
import re
import socket
import subprocess
import threading
import time

import wire
from sites import BUILD

SECONDS = 60  # until a test gives up


def preamble(reversed_=0, frm=0, to=1, job=b"j", tls=1, **more):
    return wire.preamble(job, frm, to, reversed_, tls, **more)


class Relay:
    def __init__(self, *args, port=0, log="debug"):
        self.p = subprocess.Popen([f"{BUILD}/bin/pacxd", "--relay", f"127.0.0.1:{port}", *args], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, env={**os.environ, "PACX_LOG": log})
        self.lines, self.changed = [], threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.port = int(self.wait_for(r"listening on 127\.0\.0\.1:(\d+)")[1])

    def read(self):
        for line in self.p.stderr:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def text(self):
        return "".join(self.lines)

    def wait_for(self, pattern, times=1):
        end = time.monotonic() + SECONDS
        with self.changed:
            while True:
                found = list(re.finditer(pattern, self.text()))
                if len(found) >= times:
                    return found[times - 1]
                left = end - time.monotonic()
                assert left > 0 and self.p.poll() is None, f"no '{pattern}' in:\n{self.text()}"
                self.changed.wait(min(left, 0.5))

    def dial(self, first=b"", source=""):
        s = socket.create_connection(("127.0.0.1", self.port), SECONDS, (source, 0) if source else None)
        s.settimeout(SECONDS)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(first)
        return s

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.p.poll() is None:
            self.p.terminate()
        code = self.p.wait(SECONDS)
        self.reader.join(SECONDS)
        self.p.stderr.close()
        # 0 says, too, that its event loop was empty at the end
        assert kind or code == 0, f"exit {code}:\n{self.text()}"


def get(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            break
        data += part
    return data


def gone(s):
    """Ended by the relay, one way or another."""
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
    s.close()


def talk(a, b, text=b"hello"):
    a.sendall(text)
    assert get(b, len(text)) == text
    b.sendall(text[::-1])
    assert get(a, len(text)) == text[::-1]
