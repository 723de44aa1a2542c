#!/usr/bin/env python3
"""relay_role_test.py: pacxd --relay, where two sites that dial meet: pairs, streams, half-close, strangers, replaced
connections, chains. This script plays both sites; what they say to each other is ciphertext to the relay anyway."""
import hashlib
import hmac
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from ports import free_ports
from relay_ends import get, gone, preamble, Relay, SECONDS, talk
from sites import BUILD, cpu_seconds, next_descriptor, run


def they_meet_in_either_order():
    with Relay() as r:
        for first in (0, 1):
            a = r.dial(preamble(first, stream=first) + b"early")
            r.wait_for("waits for the other site", first + 1)
            b = r.dial(preamble(1 - first, stream=first))
            assert get(b, 5) == b"early"
            talk(a, b)
            talk(b, a)
            a.close()
            b.close()


def preamble_in_pieces():
    with Relay() as r:
        a, b = r.dial(), r.dial(preamble(1))
        for c in preamble():
            a.sendall(bytes([c]))
            select.select([a], [], [], 0.001)
        talk(a, b)


def only_what_belongs_together_meets():
    """One connection that differs in each field; the right twin is found among them."""
    with Relay() as r:
        want = dict(frm=3, to=4, stream=5, job=b"mine", gateways=(1, 2))
        others = [dict(want, **d) for d in (dict(frm=2), dict(to=2), dict(stream=6), dict(job=b"yours"), dict(kind=2),
                                            dict(gateways=(1, 1)), dict(gateways=(0, 2)), dict(frm=4, to=3))]
        held = [r.dial(preamble(1, **o)) for o in others]
        b = r.dial(preamble(1, **want))
        r.wait_for("waits for the other site", len(others) + 1)
        a = r.dial(preamble(0, **want))
        talk(a, b)
        for s in held:
            s.setblocking(False)
            try:
                data = s.recv(1)
            except BlockingIOError:
                data = None
            assert data is None, data
        pairs = [(r.dial(preamble(0, **o)), s) for o, s in zip(others, held)]
        for x, y in pairs:
            y.settimeout(SECONDS)
            talk(x, y)


def transfer(pairs, size):
    """size bytes each way over every pair, at the same time; then half-close, and both see the end."""
    rnd = [(os.urandom(65536), os.urandom(65536)) for _ in pairs]
    failures = []

    def send(s, block):
        left = size
        while left:
            s.sendall(block[:min(left, len(block))])
            left -= min(left, len(block))
        s.shutdown(socket.SHUT_WR)

    def receive(s, block, who):
        have = 0
        while True:
            data = s.recv(1 << 17)
            if not data:
                break
            at = have % len(block)
            if (block * 3)[at:at + len(data)] != data:
                failures.append(f"{who}: other bytes within {have}..{have + len(data)}")
            have += len(data)
        if have != size:
            failures.append(f"{who}: {have} of {size} bytes")

    def guarded(f, *args):
        try:
            f(*args)
        except Exception as e:
            failures.append(f"{f.__name__} {args[-1] if isinstance(args[-1], str) else ''}: {e!r}")

    threads = []
    for i, ((a, b), (x, y)) in enumerate(zip(pairs, rnd)):
        threads += [threading.Thread(target=guarded, args=t) for t in (
            (send, a, x), (send, b, y), (receive, b, x, f"pair {i} ->"), (receive, a, y, f"pair {i} <-"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(SECONDS)
        assert not t.is_alive(), "a transfer hangs"
    assert not failures, failures[0]


def sixteen_pairs_at_once():
    with Relay() as r:
        a = [r.dial(preamble(0, stream=i)) for i in range(16)]
        b = [r.dial(preamble(1, stream=i)) for i in reversed(range(16))][::-1]
        transfer(list(zip(a, b)), 3_000_017)
        r.wait_for("have met")
        for s in a + b:
            s.close()


def half_close_leaves_the_other_way_open():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        r.wait_for("have met")  # who hangs up before is lost
        a.sendall(b"that was all")
        a.shutdown(socket.SHUT_WR)
        assert get(b, 100) == b"that was all"
        for _ in range(50):
            b.sendall(bytes(50000))
            assert len(get(a, 50000)) == 50000
        b.shutdown(socket.SHUT_WR)
        assert a.recv(1) == b""


def a_cut_side_cuts_the_other():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        talk(a, b)
        a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        a.close()  # reset
        try:
            assert b.recv(1) is None, "an orderly end instead of a reset"
        except ConnectionResetError:
            pass


def memory(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"RssAnon:\s+(\d+)", f.read())[1])


def a_reader_that_stops_holds_back_its_writer_only():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        c, d = r.dial(preamble(0, stream=1)), r.dial(preamble(1, stream=1))
        talk(a, b)
        before = memory(r.p.pid)
        a.setblocking(False)
        sent, quiet = 0, 0
        while quiet < 5 and sent < 1 << 28:
            try:
                sent += a.send(bytes(1 << 16))
                quiet = 0
            except BlockingIOError:
                quiet += not select.select([], [a], [], 0.2)[1]
        assert sent < 1 << 28, "no back-pressure"
        assert memory(r.p.pid) - before < 4096, (before, memory(r.p.pid))
        transfer([(c, d)], 1_000_000)
        a.settimeout(SECONDS)
        have = 0
        while have < sent:
            have += len(b.recv(1 << 20))
        talk(a, b)


def early_bytes_are_bounded_and_arrive():
    with Relay() as r:
        a = r.dial(preamble(0))
        data = os.urandom(3_000_000)
        t = threading.Thread(target=a.sendall, args=(data,), daemon=True)
        t.start()
        r.wait_for("waits for the other site")
        b = r.dial(preamble(1))
        assert get(b, len(data)) == data
        t.join(SECONDS)


def garbage_is_closed_and_logged_with_measure():
    with Relay(log="info") as r:
        a = r.dial(preamble(0))
        good = preamble()
        bad = [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00" + bytes(60), os.urandom(500), b"X", preamble(version=2),
               preamble(kind=7), preamble(frm=1, to=1), good[:11] + b"\x0f" + good[12:], preamble(tls=0)[:63] + b"\1", good[:22] + b"\1"
               + good[23:]]
        for data in bad:
            gone(r.dial(data))
        r.wait_for("another protocol version")
        assert "closed a connection from 127.0.0.1:" in r.text() and "no PACX preamble" in r.text()
        for _ in range(200):
            gone(r.dial(b"garbage!"))
        n = r.text().count("closed a connection")
        assert 5 <= n <= 25, f"{n} lines for {200 + len(bad)} strangers"
        for _ in range(50):  # scans: no byte at all, or a few, or a reset
            r.dial().close()
            r.dial(good[:20]).close()
        talk(a, r.dial(preamble(1)))


def silent_strangers_are_thrown_out():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        held = [r.dial(b"PACX") for _ in range(80)]
        talk(a, b)
        stop = threading.Event()

        def drip():  # slowloris: a byte now and then does not help
            while not stop.wait(0.5):
                try:
                    held[-1].sendall(b"L")
                except OSError:
                    return
        t = threading.Thread(target=drip)
        t.start()
        r.wait_for(r"no complete preamble within 10 s")
        for s in held[:-1]:
            gone(s)
        stop.set()
        t.join()
        gone(held[-1])


def strangers(r, n, sides=(0,)):
    """n connections with well-formed preambles of jobs that nobody has, one or both sides of each."""
    held = []
    for i in range(n):
        job = os.urandom(8)
        held += [r.dial(preamble(side, job=job, stream=i % 64)) for side in sides]
    return held


def strangers_that_wait_do_not_fill_it():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        held = strangers(r, 1200)
        r.wait_for("1024 wait for the other site, and this one was drawn")
        talk(a, b)  # who has met does not notice
        for i in range(1, 5):
            talk(r.dial(preamble(0, stream=i)), r.dial(preamble(1, stream=i)))
        talk(a, b)
        for s in held:
            s.close()


def pairs_of_strangers_do_not_fill_it():
    with Relay() as r:
        held = strangers(r, 550, sides=(0, 1))
        while "512 pairs, 0 connections that wait" not in r.text():
            r.p.send_signal(signal.SIGUSR1)
            r.wait_for(" pairs, ", len(re.findall(" pairs, ", r.text())) + 1)
        talk(r.dial(preamble(0)), r.dial(preamble(1)))
        for s in held:
            s.close()


def it_tells_who_is_there():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        talk(a, b, b"12345")
        held = strangers(r, 150)
        r.wait_for("waits for the other site", 150)
        r.p.send_signal(signal.SIGUSR1)
        r.wait_for("1 pairs, 150 connections that wait for the other site, 0 that wait for their preamble")
        job = hashlib.sha256(b"j").hexdigest()[:32]
        ends = [re.escape("%s:%d" % s.getsockname()) for s in (a, b)]
        r.wait_for(f"job {job}: link of site 0 -> site 1, gateways 0 -> 0, stream 0: {ends[0]} and {ends[1]}, for \\d+ s, "
                   "5 bytes there and 5 back")
        assert len(re.findall("waits for the other site, for", r.text())) == 100, r.text()
        talk(a, b)
        for s in held:
            s.close()


def it_serves_the_jobs_it_is_told():
    served, other = b"served", b"other"
    with Relay("--job", served.decode(), "--job", hashlib.sha256(b"too").hexdigest()[:32]) as r:
        for job in (served, b"too"):
            talk(r.dial(preamble(0, job=job)), r.dial(preamble(1, job=job)))
        gone(r.dial(preamble(0, job=other)))
        r.wait_for("it is of a job that is not served here")


def hkdf(key, info):
    prk = hmac.digest(bytes(32), key, "sha256")
    return hmac.digest(prk, info + b"\1", "sha256")


def proved(key, number, *args, **kw):
    said = preamble(*args, **kw)[:40] + struct.pack("<Q", number)
    return said + hmac.digest(hkdf(key, b"pacx1 door"), said, "sha256")[:16]


def it_serves_who_proves_the_key_of_its_door():
    """And then a live pair is not disturbed by who knows the job, nor by what was said before."""
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([f"{BUILD}/bin/pacxctl", "keygen", d + "/key"], check=True, capture_output=True)
        subprocess.run([f"{BUILD}/bin/pacxctl", "doorkey", d + "/key", d + "/door"], check=True, capture_output=True)
        with open(d + "/key") as f:
            key = bytes.fromhex(f.read())
        with open(d + "/door") as f:
            assert bytes.fromhex(f.read()) == hkdf(key, b"pacx1 door")
        assert os.stat(d + "/door").st_mode & 0o777 == 0o600
        with Relay("--door", d + "/door") as r:
            first = proved(key, 1000, 0)
            a, b = r.dial(first), r.dial(proved(key, 7, 1))
            talk(a, b)
            for said in (first, preamble(0), proved(bytes(32), 2000, 0), proved(key, 999, 0), preamble(1, tls=0)):
                gone(r.dial(said))
                talk(a, b)
            r.wait_for("it does not prove the key")
            again = r.dial(proved(key, 1001, 0))
            gone(a)
            gone(b)
            talk(again, r.dial(proved(key, 8, 1)))
        p = subprocess.run([f"{BUILD}/bin/pacxd", "--relay", "0", "--door", d + "/none"], capture_output=True, text=True, timeout=SECONDS)
        assert p.returncode == 2 and "--door: key file" in p.stderr, p


def a_live_pair_is_not_broken_up_from_another_address():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        talk(a, b)
        rival = r.dial(preamble(0), source="127.0.0.2")
        r.wait_for("127.0.0.2:\\d+ has to wait: a pair of this stream lives, from another address")
        talk(a, b)
        again = r.dial(preamble(0))  # from its own it is
        gone(a)
        gone(b)
        talk(again, r.dial(preamble(1)))
        rival.close()


def door_without_descriptors_rests():
    with Relay() as r:
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        talk(a, b)
        _, hard = resource.prlimit(r.p.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(r.p.pid, resource.RLIMIT_NOFILE, (next_descriptor(r.p.pid), hard))
        held = [r.dial(preamble(0, stream=i)) for i in range(1, 20)]
        r.wait_for("cannot accept a connection: Too many open files; trying again")
        before, began = cpu_seconds(r.p.pid), time.monotonic()
        time.sleep(1)  # not to synchronise: how busy it is
        busy = (cpu_seconds(r.p.pid) - before) / (time.monotonic() - began)
        assert busy < 0.5, f"{busy:.2f} of a core"
        talk(a, b)
        resource.prlimit(r.p.pid, resource.RLIMIT_NOFILE, (hard, hard))
        talk(held[0], r.dial(preamble(1, stream=1)))
        for s in held:
            s.close()


def the_newest_of_a_side_replaces_an_older_one():
    with Relay() as r:
        old = r.dial(preamble(0) + b"old")
        r.wait_for("waits for the other site")
        new = r.dial(preamble(0) + b"new")
        gone(old)
        b = r.dial(preamble(1))
        assert get(b, 3) == b"new"
        talk(new, b)


def who_comes_again_breaks_the_old_pair():
    with Relay() as r:
        for side in (0, 1):
            a, b = r.dial(preamble(side)), r.dial(preamble(1 - side))
            talk(a, b)
            again = r.dial(preamble(side) + b"again")
            gone(a)
            gone(b)
            b = r.dial(preamble(1 - side))
            assert get(b, 5) == b"again"
            talk(again, b)
            other, twin = r.dial(preamble(0, stream=9)), r.dial(preamble(1, stream=9))
            talk(other, twin)  # other pairs have nothing to do with it
            talk(again, b)
            for s in (again, b, other, twin):
                s.close()


def both_sides_come_again_many_times():
    with Relay() as r:
        for i in range(60):
            sides = [r.dial(preamble(i & 1) + b"%04d" % i), r.dial(preamble(1 - (i & 1)) + b"%04d" % i)]
            end = time.monotonic() + SECONDS
            while True:  # as a site does: it dials anew until it has the other
                try:
                    if all(get(s, 4) == b"%04d" % i for s in sides):
                        break
                except ConnectionError:
                    pass
                assert time.monotonic() < end
                for s in sides:
                    s.close()
                sides = [r.dial(preamble(j) + b"%04d" % i) for j in (0, 1)]
            if i % 3:
                for s in sides:
                    s.close()


def who_is_lost_while_waiting_is_forgotten():
    with Relay() as r:
        r.dial(preamble(0) + b"lost").close()
        r.wait_for("lost 127.0.0.1:")
        b = r.dial(preamble(1))
        r.wait_for("waits for the other site", 2)
        a = r.dial(preamble(0) + b"here")
        assert get(b, 4) == b"here"


def waiting_ends():
    with Relay("--wait", "1") as r:
        a = r.dial(preamble(0))
        assert a.recv(1) == b""
        r.wait_for("the other site did not come within 1 s")
        a, b = r.dial(preamble(0)), r.dial(preamble(1))
        talk(a, b)
        time.sleep(2)  # not a pair's
        talk(a, b)


def disagreement_on_tls_is_told():
    with Relay() as r:
        a, b = r.dial(preamble(0, tls=0)), r.dial(preamble(1, tls=1))
        gone(a)
        gone(b)
        r.wait_for("do not agree on TLS")
        talk(r.dial(preamble(0, tls=0)), r.dial(preamble(1, tls=0)))


def chain_of_two():
    with Relay() as r2, Relay("--next", f"127.0.0.1:{r2.port}") as r1:
        for i, (x, y) in enumerate(((r1, r2), (r2, r1), (r1, r1))):
            a = x.dial(preamble(0, stream=i) + b"early")
            b = y.dial(preamble(1, stream=i))
            assert get(b, 5) == b"early"
            talk(a, b)
            again = x.dial(preamble(0, stream=i))
            gone(a)
            gone(b)
            b = y.dial(preamble(1, stream=i))
            talk(again, b)
            again.close()
            b.close()
        transfer([(r1.dial(preamble(0, stream=i)), r2.dial(preamble(1, stream=i))) for i in range(20, 28)], 2_000_003)
        gone(r1.dial(b"garbage that does not get far"))
        r1.wait_for("no PACX preamble")
        assert "no PACX preamble" not in r2.text()


def next_relay_may_come_later():
    port = free_ports()[0]
    with Relay("--next", f"127.0.0.1:{port}") as r1:
        gone(r1.dial(preamble(0)))
        r1.wait_for("cannot reach the next relay 127.0.0.1:%d .*refused" % port)
        with Relay(port=port) as r2:
            talk(r1.dial(preamble(0)), r2.dial(preamble(1)))


def a_relay_that_ends_cuts_all_and_another_takes_over():
    with Relay() as r:
        port = r.port
        a, b, c = r.dial(preamble(0)), r.dial(preamble(1)), r.dial(preamble(1, stream=1))
        talk(a, b)
    assert "ended by signal 15 with 3 connections" in r.text(), r.text()
    for s in (a, b, c):
        gone(s)
    with Relay(port=port) as r:
        talk(r.dial(preamble(0)), r.dial(preamble(1)))


def wrong_arguments_are_told():
    for args in ([], ["x:y"], [":5"], ["::1:5"], ["5", "--next"], ["5", "--next", "7"], ["5", "--next", "h:0"], ["70000"],
                 ["5", "--wait", "0"], ["5", "--other", "1"]):
        p = subprocess.run([f"{BUILD}/bin/pacxd", "--relay", *args], capture_output=True, text=True, timeout=SECONDS)
        assert p.returncode == 2 and "usage: pacxd --relay" in p.stderr, (args, p)
    with Relay() as r:
        p = subprocess.run([f"{BUILD}/bin/pacxd", "--relay", f"127.0.0.1:{r.port}"], capture_output=True, text=True,
                           timeout=SECONDS)
        assert p.returncode == 2 and "another process has this port" in p.stderr, p


def main():
    if not os.path.exists(f"{BUILD}/bin/pacxd"):
        print("pacxd has not been built")
        return 77
    only = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run([(t.__name__, t) for t in (
        they_meet_in_either_order, preamble_in_pieces, only_what_belongs_together_meets, sixteen_pairs_at_once,
        half_close_leaves_the_other_way_open, a_cut_side_cuts_the_other, a_reader_that_stops_holds_back_its_writer_only,
        early_bytes_are_bounded_and_arrive, garbage_is_closed_and_logged_with_measure, silent_strangers_are_thrown_out,
        strangers_that_wait_do_not_fill_it, pairs_of_strangers_do_not_fill_it, it_tells_who_is_there, it_serves_the_jobs_it_is_told,
        it_serves_who_proves_the_key_of_its_door, a_live_pair_is_not_broken_up_from_another_address, door_without_descriptors_rests,
        the_newest_of_a_side_replaces_an_older_one, who_comes_again_breaks_the_old_pair, both_sides_come_again_many_times,
        who_is_lost_while_waiting_is_forgotten, waiting_ends, disagreement_on_tls_is_told, chain_of_two,
        next_relay_may_come_later, a_relay_that_ends_cuts_all_and_another_takes_over, wrong_arguments_are_told)
         if not only or any(o in t.__name__ for o in only)])


if __name__ == "__main__":
    sys.exit(main())
