#!/usr/bin/env python3
"""faultproxy.py: a TCP proxy on loopback that breaks connections, for tests of the links. Import it, or run it.

    p = Proxy(target_port)            # listens on a port of its own, p.port
    p.reset()                         # RST to both sides of all connections
    p.close_all()                     # both sides see an orderly end
    p.truncate(n)                     # ... after n more bytes
    p.stall(2)                        # nothing is moved for 2 s
    p.drop()                          # half-open: both sides stay connected, nothing is moved any more
    p.drop(discard=True)              # the same, but what they send is taken, as by a firewall that lost its state
    p.flip()                          # the next bytes have one bit changed
    p.delay = 0.01; p.rate = 1e6      # seconds before a piece goes on; bytes a second, each connection and direction
    p.refuse(); p.accept()            # nobody listens; listens again, on the same port
    p.chaos(seed, {"reset": 3, "stall": 1}, most=1 << 20)    # each connection gets a random fate at a random byte
    p.calm()                          # connections made from now on are left alone, the others lose their fate
    p.count                           # see Proxy

Each connection has a thread that moves the bytes both ways, and in which all of its faults happen.

usage: faultproxy.py [--port P] [--seed N --faults reset=3,stall,... --most BYTES] HOST:PORT
       then commands on standard input: reset, close, truncate N, stall S, drop, discard, flip, delay S, rate N, refuse,
       accept, chaos SEED, calm, count, quit
"""
import argparse
import collections
import json
import os
import random
import select
import socket
import struct
import sys
import threading
import time

BUFFER = 1 << 20
HANDSHAKE = 8192  # a connection that has moved more than this is in use
FAULTS = ("reset", "close", "stall", "drop", "discard", "flip")
FATAL = ("reset", "close", "drop", "discard")  # the connection has no future


class Way:
    """One direction of a connection."""
    def __init__(self, src, dst):
        self.src, self.dst = src, dst
        self.mem = bytearray(BUFFER)
        self.view = memoryview(self.mem)
        self.start = self.end = 0
        self.ready = 0.0  # not before
        self.eof = self.done = False
        self.first = None  # what is recorded
        self.got = 0
        self.flip = None  # (byte of this way, bit)


class Connection:
    def __init__(self, proxy, a, b):
        self.proxy, self.a, self.b = proxy, a, b
        for s in (a, b):
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ways = [Way(a, b), Way(b, a)]
        if proxy.plan is not None:
            way, at, bit = next(proxy.plan, (0, None, 0))
            self.ways[way].flip = (at, bit) if at is not None else None
        self.moved = 0
        self.fate = None  # (at byte, fault, argument)
        self.stalled = 0.0
        self.over = False
        self.todo = collections.deque()
        self.bell = os.pipe()
        os.set_blocking(self.bell[0], False)
        self.lock = threading.Lock()
        if proxy.record:
            self.ways[0].first = bytearray()
            proxy.recorded.append(self.ways[0].first)
        self.thread = threading.Thread(target=self.run, daemon=True)

    def call(self, f, *args):
        """Do it in the connection's thread."""
        with self.lock:
            if self.over:
                return False
            self.todo.append((f, args))
            os.write(self.bell[1], b"x")
            return True

    # What happens in the thread.

    def run(self):
        try:
            while not self.over:
                self.turn()
        except OSError:
            self.end(reset=True)
        finally:
            with self.lock:
                self.over = True
                for fd in self.bell:
                    os.close(fd)
            for s in (self.a, self.b):
                s.close()
            self.proxy.gone(self)

    def turn(self):
        now = time.monotonic()
        poll, wait = select.poll(), None
        poll.register(self.bell[0], select.POLLIN)
        want = {}
        for w in self.ways:
            until = max(self.stalled, w.ready)
            if w.done:
                continue
            if until > now:
                wait = min(until - now, wait if wait is not None else 1e9)
            elif w.end > w.start:
                want[w.dst] = want.get(w.dst, 0) | select.POLLOUT
            elif not w.eof:
                want[w.src] = want.get(w.src, 0) | select.POLLIN
        for s, events in want.items():
            poll.register(s, events)
        happened = {fd for fd, _ in poll.poll(None if wait is None else wait * 1000 + 1)}
        if self.bell[0] in happened:
            os.read(self.bell[0], 4096)
            while self.todo and not self.over:
                f, args = self.todo.popleft()
                f(*args)
        now = time.monotonic()
        for w in self.ways:
            if self.over:
                return
            if w.done or max(self.stalled, w.ready) > now:
                continue
            if w.end == w.start and not w.eof and w.src.fileno() in happened:
                self.receive(w, now)
            if w.end > w.start and w.ready <= now:
                self.send(w, now)
            if w.eof and w.end == w.start and not w.done:
                w.done = True
                w.dst.shutdown(socket.SHUT_WR)
        if all(w.done for w in self.ways):
            self.end()

    def receive(self, w, now):
        try:
            n = w.src.recv_into(w.view)
        except BlockingIOError:
            return
        w.start, w.end, w.eof = 0, n, n == 0
        if w.first is not None and len(w.first) < self.proxy.record:
            w.first += w.view[:min(n, self.proxy.record - len(w.first))]
        if w.flip and w.got <= w.flip[0] < w.got + n:
            w.mem[w.flip[0] - w.got] ^= 1 << w.flip[1]
            w.flip = None
            self.proxy.happened("flip")
        w.got += n
        if n and self.proxy.delay:
            w.ready = now + self.proxy.delay

    def send(self, w, now):
        n = w.end - w.start
        if self.proxy.rate:
            n = min(n, max(1, int(self.proxy.rate / 100)))
        fate = self.fate
        if fate and fate[1] == "flip":
            if self.moved + n > fate[0]:
                self.fate = None
                w.mem[w.start + max(0, fate[0] - self.moved)] ^= 1 << self.moved % 8
                self.proxy.happened("flip")
                self.proxy.next_fate(self)
        elif fate:
            n = min(n, max(0, fate[0] - self.moved))
        if n:
            try:
                n = w.dst.send(w.view[w.start:w.start + n])
            except BlockingIOError:
                return
            w.start += n
            self.moved += n
            self.proxy.count["bytes"] += n
            if self.proxy.rate:
                w.ready = now + n / self.proxy.rate
        if fate and fate is self.fate and self.moved >= fate[0]:
            self.fate = None
            self.suffer(*fate[1:])

    def suffer(self, fault, argument=None):
        if fault == "stall":
            self.proxy.happened("stall")
            self.stalled = time.monotonic() + argument
            self.proxy.next_fate(self)
        elif fault == "flip":
            self.fate = (self.moved, "flip", None)
        elif fault in ("drop", "discard"):
            self.proxy.happened("drop")
            if self.moved > HANDSHAKE:
                self.proxy.happened("late")
            self.hold(fault == "discard")
        else:
            self.proxy.happened("cut")
            if self.moved > HANDSHAKE:
                self.proxy.happened("late")
            if fault == "close":  # closing with bytes unread would be a reset
                for s in (self.a, self.b):
                    s.shutdown(socket.SHUT_WR)
                self.hold(discard=True)
            else:
                self.end(reset=True)

    def hold(self, discard):
        """Until both sides have gone away, each for itself."""
        left = {self.a, self.b}
        while left and not self.over:
            poll = select.poll()
            for s in left:
                poll.register(s, select.POLLRDHUP | (select.POLLIN if discard else 0))
            poll.register(self.bell[0], select.POLLIN)
            for fd, events in poll.poll():
                if fd == self.bell[0]:
                    os.read(fd, 4096)
                    while self.todo:
                        f, args = self.todo.popleft()
                        if f == self.end:
                            f(*args)
                    continue
                s = self.a if fd == self.a.fileno() else self.b
                try:
                    while discard and s.recv_into(self.ways[0].view):
                        pass
                except BlockingIOError:
                    pass
                except OSError:
                    left.discard(s)
                if events & (select.POLLRDHUP | select.POLLHUP | select.POLLERR):
                    left.discard(s)
        self.over = True

    def end(self, reset=False):
        if reset:
            for s in (self.a, self.b):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.over = True


class Proxy:
    """count: connections, failed (nobody at the target), bytes; cut, drop, stall, flip: how often it was done to one; late: cuts and
    drops of connections that were in use for certain."""
    def __init__(self, target, port=0, host="127.0.0.1", record=0, plan=None):
        """record: so many of the first bytes of each dialler are kept in `recorded`. plan: an iterator that gives each new connection
        (way, byte, bit) to flip: way 0 is the dialler's, byte None: nothing."""
        self.target = target if isinstance(target, tuple) else (host, target)
        self.host, self.port = host, port
        self.delay, self.rate = 0.0, 0.0
        self.record, self.recorded, self.plan = record, [], plan
        self.count = collections.Counter()
        self.lock = threading.Lock()
        self.connections = set()
        self.random = None
        self.faults, self.weights, self.most, self.seconds, self.left = (), (), 0, 1.0, 0
        self.listener = None
        self.accept()

    # Listening.

    def accept(self):
        s = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((self.host, self.port))
        self.port = s.getsockname()[1]
        s.listen(64)
        self.listener = s
        threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def refuse(self, cut=True):
        """Whoever dials from now on is refused; cut: and whoever is here is thrown out."""
        s, self.listener = self.listener, None
        if s:
            s.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
            s.close()
        if cut:
            self.reset()

    def serve(self, s):
        while True:
            try:
                a, _ = s.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(s, a), daemon=True).start()

    def connect(self, listener, a):
        try:
            b = socket.create_connection(self.target, 10)
        except OSError:
            self.happened("failed")
            a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            a.close()
            return
        c = Connection(self, a, b)
        self.next_fate(c)
        with self.lock:
            self.count["connections"] += 1
            late = self.listener is not listener  # refuse came in between
            self.connections.add(c)
        c.thread.start()
        if late:
            c.call(c.suffer, "reset")

    def gone(self, c):
        with self.lock:
            self.connections.discard(c)

    def happened(self, what):
        with self.lock:
            self.count[what] += 1

    # Faults of all present connections; each returns how many there were.

    def all(self, fault, argument=None):
        with self.lock:
            now = list(self.connections)
        return sum(c.call(c.suffer, fault, argument) for c in now)

    def reset(self):
        return self.all("reset")

    def close_all(self):
        return self.all("close")

    def stall(self, seconds):
        return self.all("stall", seconds)

    def drop(self, discard=False):
        return self.all("discard" if discard else "drop")

    def flip(self):
        return self.all("flip")

    def truncate(self, n):
        with self.lock:
            now = list(self.connections)
        return sum(c.call(lambda c=c: setattr(c, "fate", (c.moved + n, "close", None))) for c in now)

    # Random faults.

    def chaos(self, seed, faults, most=4 << 20, seconds=1.0, times=1 << 60):
        """Fate of connections from now on: a fault of `faults` (name: weight) at a byte up to `most`, of which a part falls
        into the first kilobyte, where the handshake is; stalls last up to `seconds`; not more than `times` faults."""
        assert all(f in FAULTS for f in faults), faults
        self.random = random.Random(seed)
        self.faults, self.weights = list(faults), list(faults.values())
        self.most, self.seconds, self.left = most, seconds, times
        with self.lock:
            now = list(self.connections)
        for c in now:
            c.call(self.next_fate, c)

    def calm(self):
        self.random = None
        with self.lock:
            now = list(self.connections)
        for c in now:
            c.call(setattr, c, "fate", None)

    def next_fate(self, c):
        with self.lock:
            r = self.random
            if not r or self.left <= 0:
                return
            self.left -= 1
            fault = r.choices(self.faults, self.weights)[0]
            at = r.randrange(1, 1024) if r.random() < 0.2 else r.randrange(self.most)
            c.fate = (c.moved + at, fault, r.uniform(0, self.seconds))

    def close(self):
        self.calm()
        self.refuse(cut=False)
        with self.lock:
            now = list(self.connections)
        for c in now:
            c.call(c.end, True)
        for c in now:
            c.thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--faults", default="reset")
    parser.add_argument("--most", type=int, default=4 << 20)
    parser.add_argument("target")
    args = parser.parse_args()
    host, _, port = args.target.rpartition(":")
    faults = {}
    for f in args.faults.split(","):
        name, _, weight = f.partition("=")
        faults[name] = float(weight or 1)
    with Proxy((host.strip("[]") or "127.0.0.1", int(port)), args.port) as p:
        print(f"listening on {p.host}:{p.port}", flush=True)
        if args.seed is not None:
            p.chaos(args.seed, faults, args.most)
        for line in sys.stdin:
            what, *arg = line.split() or [""]
            try:
                if what in ("delay", "rate"):
                    setattr(p, what, float(arg[0]))
                elif what == "chaos":
                    p.chaos(int(arg[0]), faults, args.most)
                elif what == "quit":
                    break
                elif what and what != "count":
                    name = {"close": "close_all", "discard": "drop"}.get(what, what)
                    given = [True] if what == "discard" else [float(a) if what == "stall" else int(a) for a in arg]
                    assert name in ("reset", "close_all", "truncate", "stall", "drop", "flip", "refuse", "accept", "calm")
                    getattr(p, name)(*given)
            except (AssertionError, ValueError, IndexError, TypeError):
                print(f"not understood: {line.strip()}", file=sys.stderr)
            print(json.dumps(p.count), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
