#!/usr/bin/env python3
"""flood.py: a stranger at a port on loopback, who knows everything about a job but its key: so many connections a second that say
nothing, garbage, a part of a preamble, a whole one, or one and the beginning of TLS or of a HELLO, and then nothing more.

    with Flood(port, preamble, rate=3000, kinds=ALL) as f: ...        # f.made: connections so far
usage: flood.py PORT RATE SECONDS KIND,... HEX-PREAMBLE               prints the connections made, each second
"""
import errno
import os
import random
import re
import select
import socket
import subprocess
import sys
import threading
import time

HELD = 1500  # sockets that are kept open
MOST = 400000  # connections, whatever happens
ALL = ("silent", "garbage", "part", "preamble", "half")
CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def said(kind, preamble):
    """What a connection of this kind says. The number and proof of the preamble, if it has some, are our own guess."""
    tls = preamble[11] & 1
    guess = preamble[:40] + (random.randbytes(24) if tls else bytes(24))
    return {"silent": b"", "garbage": b"GET / HTTP/1.1\r\n\r\n", "part": guess[:random.randrange(1, 64)], "preamble": guess,
            "half": guess + (CLIENT_HELLO + random.randbytes(200) if tls else b"PX\x01\x01" + bytes(40)),
            "replay": preamble, "other": guess[:20] + random.randbytes(1) + b"\0" + guess[22:]}[kind]


def run(port, rate, seconds, kinds, preamble):
    began = told = time.monotonic()
    held, made, waiting = [], 0, {}  # waiting: for the other side, by descriptor
    poll = select.poll()
    while made < MOST and (now := time.monotonic()) < began + seconds:
        for _ in range(min(300, int((now - began) * rate) - made)):
            s = socket.socket()
            s.setblocking(False)
            e = s.connect_ex(("127.0.0.1", port))
            made += 1
            if e not in (0, errno.EINPROGRESS):
                s.close()
                continue
            if e == 0:
                held.append(s)
                talk(s, kinds[made % len(kinds)], preamble)
            else:
                waiting[s.fileno()] = s
                poll.register(s, select.POLLOUT)
        for fd, _ in poll.poll(0):
            poll.unregister(fd)
            held.append(waiting.pop(fd))
            talk(held[-1], random.choice(kinds), preamble)
        while len(waiting) > 500:
            fd = next(iter(waiting))
            poll.unregister(fd)
            waiting.pop(fd).close()
        for s in held[:max(0, len(held) - HELD)]:
            s.close()
        held = held[-HELD:]
        if now > told + 1:
            print(made, flush=True)
            told = now
        time.sleep(0.003)
    print(made, flush=True)


def talk(s, kind, preamble):
    try:
        s.send(said(kind, preamble))
    except OSError:
        pass


class Flood:
    def __init__(self, port, preamble, rate, kinds=ALL, seconds=60):
        self.p = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(port), str(rate), str(seconds), ",".join(kinds),
                                   preamble.hex()], stdout=subprocess.PIPE, text=True)
        self.made = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.p.stdout:
            if re.fullmatch(r"\d+\n", line):
                self.made = int(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.terminate()
        self.p.wait(10)
        self.reader.join(10)
        self.p.stdout.close()


if __name__ == "__main__":
    run(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4].split(","), bytes.fromhex(sys.argv[5]))
