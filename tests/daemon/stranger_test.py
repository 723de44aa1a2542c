#!/usr/bin/env python3
"""stranger_test.py: who connects to the in-daemon's port and is not a peer changes nothing; a peer that breaks
the protocol loses its connection, and ends the job only when it goes on like that. The run meanwhile goes on between two
real sites, or with this script as the peer. Links without TLS here; security_test.py has those with."""
import os
import resource
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # noqa: E402
from sites import Job, cpu_seconds, flavors, next_descriptor, run  # noqa: E402


def ours(j, hello, **how):
    """What site1 says when it dials site0 to write."""
    return wire.preamble(j.job, 1, 0) + wire.frame(wire.HELLO, hello, **how)


def with_running_job(f, disturb):
    """disturb(job) while two sites are linked; both must end well afterwards."""
    with Job([f, f]) as j:
        for i in range(2):
            j.start(i, "idle", 4, PACX_LOG="debug")
        for i in range(2):
            j.wait_text(i, f"link from site site{i} to")
            j.wait_text(i, f"to site site{i} is up")
        disturb(j)
        for i in range(2):
            assert j.wait(i) == 0, j.text(i)


def garbage_is_refused(f):
    def disturb(j):
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
                     os.urandom(5000), b"P", b"PX", b"PX\x01"):
            with wire.dial(j.ports[0]) as s:
                s.sendall(data)
                if len(data) > 3:
                    kind, body = wire.read_frame(s)
                    assert kind is None and not body, (kind, body)
        j.wait_text(0, "closed a connection from 127.0.0.1:")
        j.wait_text(0, "no PACX preamble")
    with_running_job(f, disturb)


def log_of_strangers_is_limited(f):
    def disturb(j):
        for _ in range(300):
            wire.ask(j.ports[0], b"garbage!")
        n = j.text(0).count("closed a connection")
        assert 5 <= n <= 20, f"{n} lines for 300 strangers"
    with_running_job(f, disturb)


def other_version_is_refused(f):
    def disturb(j):
        kind, text = wire.ask(j.ports[0], wire.preamble(j.job, 1, 0, version=2))
        assert kind is None and text == "", (kind, text)
        j.wait_text(0, "another protocol version")
        kind, text = wire.ask(j.ports[0], ours(j, wire.hello(j.job, "site1", 1), version=2))
        assert kind == wire.REFUSE and "version 2" in text, (kind, text)
        kind, text = wire.ask(j.ports[0], ours(j, wire.hello(j.job, "site1", 1, protocol=3)))
        assert kind == wire.REFUSE and "version 3" in text, (kind, text)
    with_running_job(f, disturb)


def other_job_is_refused(f):
    def disturb(j):
        kind, text = wire.ask(j.ports[0], wire.preamble("xyz", 1, 0))
        assert kind == wire.REFUSE and "another job" in text and j.job not in text, (kind, text)
        kind, text = wire.ask(j.ports[0], ours(j, wire.hello("xyz", "site1", 1)))
        assert kind == wire.REFUSE and "not the job" in text and j.job not in text, (kind, text)
        kind, text = wire.ask(j.ports[0], wire.preamble(j.job, 1, 0, tls=True))
        assert kind is None, (kind, text)
        j.wait_text(0, "wants TLS")
    with_running_job(f, disturb)


def duplicate_and_unknown_sites_are_refused(f):
    def disturb(j):
        for h, what in ((wire.hello(j.job, "site1", 1), "already"), (wire.hello(j.job, "site0", 0), "twice"),
                        (wire.hello(j.job, "other", 1), "hostfile"), (wire.hello(j.job, "site1", 1, nranks=5), "ranks"),
                        (wire.hello(j.job, "site1", 1, nsites=3), "3")):
            kind, text = wire.ask(j.ports[0], ours(j, h))
            assert kind == wire.REFUSE and what in text, (kind, text)
    with_running_job(f, disturb)


def strangers_do_not_fill_the_door(f):
    """Many know the job and say no more; some of them are drawn for others, and the real peer comes in among them."""
    with Job([f, f], deadline=40) as j:
        j.start(0, "idle", 0)
        j.wait_port(0)
        held = []
        drawn = "connections wait for their HELLO, and this one was drawn"
        while drawn not in j.text(0) and len(held) < 3000:
            for _ in range(50):
                held.append(wire.dial(j.ports[0]))
                held[-1].sendall(wire.preamble(j.job, 1, 0))
        j.wait_text(0, drawn)  # the launcher hands it on when it likes
        j.start(1, "idle", 0)
        for i in range(2):
            assert j.wait(i) == 0, j.text(i)
        for s in held:
            s.close()


def door_without_descriptors_rests(f):
    """Nobody waits at the door and nothing can be accepted: the daemon does not spin, says so now and then, and goes on later."""
    def disturb(j):
        pid = j.daemons(0)[1]
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (next_descriptor(pid), hard))
        held = [wire.dial(j.ports[0]) for _ in range(30)]
        j.wait_text(0, "cannot accept a connection: Too many open files; trying again every 200 ms")
        before, began = cpu_seconds(pid), time.monotonic()
        time.sleep(2)  # not to synchronise: how busy it is
        busy = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        assert busy < 0.5, f"{busy:.2f} of a core"
        assert j.text(0).count("cannot accept") < 20, j.text(0)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        kind, text = wire.ask(j.ports[0], wire.preamble("xyz", 1, 0))
        assert kind == wire.REFUSE, (kind, text)
        for s in held:
            s.close()
    with_running_job(f, disturb)


class Peer:
    """Plays site1 for a real site0: accepts its link, dials its own."""
    def __init__(self, f, link=""):
        self.job = Job([f, f])
        self.job.link += link
        self.listen()
        self.hello = ours(self.job, wire.hello(self.job.job, "site1", 1))
        self.answer = wire.frame(wire.HELLO, wire.hello(self.job.job, "site1", 1, session=0, next_=1))

    def listen(self):
        self.server = socket.socket()
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.server.bind(("127.0.0.1", self.job.ports[1]))
        self.server.listen()

    def accept(self, answer=None):
        s, _ = self.server.accept()
        s.settimeout(20)
        assert wire.read_exactly(s, 64) == wire.preamble(self.job.job, 0, 1)
        kind, _ = wire.read_frame(s)
        assert kind == wire.HELLO
        s.sendall(self.answer if answer is None else answer)
        return s

    def dial(self, wait=True):
        """The connection on which we write, past the HELLOs and the first CREDIT. wait: until the site listens."""
        if wait:
            self.job.wait_port(0)
        s = wire.dial(self.job.ports[0])
        s.sendall(self.hello)
        kind, body = wire.read_frame(s)
        assert kind == wire.HELLO, body
        assert wire.read_frame(s)[0] == wire.CREDIT
        return s

    def __enter__(self):
        self.job.__enter__()
        self.job.start(0, "idle", 30)
        return self

    def __exit__(self, *a):
        self.server.close()
        return self.job.__exit__(*a)


def peer_that_breaks_the_protocol(f, data, what):
    """Again and again, without anything right in between: at least five times and for a beat, here 0.2 s."""
    with Peer(f, ", reconnect: 2400ms") as p:
        into = p.accept()
        times = 0
        while p.job.procs[0].poll() is None:
            try:
                out = p.dial(wait=times == 0)
            except (OSError, AssertionError):
                assert p.job.wait(0) == 5, p.job.text(0)
                break
            times += 1
            out.sendall(data)
            while wire.read_frame(out)[0] is not None:
                pass  # PING, LINKACK; then it closes
            out.close()
        assert times >= 5, times
        assert p.job.wait(0) == 5, p.job.text(0)
        assert "site1" in p.job.text(0) and "the peer broke the protocol" in p.job.text(0), p.job.text(0)
        assert what in p.job.text(0), p.job.text(0)
        into.close()


def malformed_frames_in_between_do_no_harm(f):
    """The link goes on behind the last frame that was right."""
    with Peer(f) as p:
        into = p.accept()
        for seq in range(1, 9):
            out = p.dial()
            out.sendall(wire.frame(wire.MSG, b"x", seq=seq, src=2, dst=0, ctx=2) + os.urandom(100))
            while wire.read_frame(out)[0] is not None:
                pass
            out.close()
        out = p.dial()
        out.sendall(wire.frame(wire.BYE, seq=9))
        kind = None
        while kind != wire.LINKACK:
            kind, _ = wire.read_frame(out)
            assert kind is not None
        assert p.job.procs[0].poll() is None, p.job.text(0)
        into.close()
        out.close()


def contradicting_segment_ends_the_job(f):
    with Peer(f) as p:
        into, out = p.accept(), p.dial()
        for seq in (1, 2):
            out.sendall(wire.frame(wire.SEG, bytes(5000), seg=1 << 18, seq=seq, src=2, dst=0, ctx=2))
        assert p.job.wait(0) == 5, p.job.text(0)
        assert "contradicts" in p.job.text(0), p.job.text(0)
        into.close()
        out.close()


def second_writer_is_refused(f):
    with Peer(f) as p:
        into, out = p.accept(), p.dial()
        kind, text = wire.ask(p.job.ports[0], ours(p.job, wire.hello(p.job.job, "site1", 1, session=78)))
        assert kind == wire.REFUSE and "already" in text, (kind, text)
        into.close()
        out.close()


def peer_that_refuses(f):
    """Once it may have been damage on the way."""
    with Peer(f) as p:
        damaged = bytearray(wire.frame(wire.REFUSE, b"we do not like you"))
        held = [p.accept(bytes(damaged[:-1]) + b"!")]
        held += [p.accept(wire.frame(wire.REFUSE, b"we do not like you\x1b[31m")) for _ in range(3)]
        assert p.job.wait(0, 15) == 3, p.job.text(0)
        assert "refused us: we do not like you?[31m" in p.job.text(0), p.job.text(0)
        for s in held:
            s.close()


def peer_of_another_version(f):
    with Peer(f) as p:
        held = [p.accept(wire.frame(wire.HELLO, wire.hello(p.job.job, "site1", 1, session=0, next_=1), version=v)) for v in (7, 9, 9, 9)]
        assert p.job.wait(0, 15) == 3, p.job.text(0)
        assert "version 9" in p.job.text(0), p.job.text(0)
        for s in held:
            s.close()


def abort_of_a_peer_wins_over_its_loss(f):
    with Peer(f) as p:
        into, out = p.accept(), p.dial()
        into.close()
        time.sleep(0.3)  # the loss comes first; the reason must still win
        out.sendall(wire.frame(wire.ABORT, b"because", seq=1, src=2, tag=42))
        out.close()
        assert p.job.wait(0) == 42, p.job.text(0)
        assert "site site1 ended the job: because" in p.job.text(0), p.job.text(0)


def main():
    have = flavors()
    if not have:
        print("no daemon has been built")
        return 77
    f = have[0]
    tests = [(t.__name__, lambda t=t: t(f)) for t in (
        garbage_is_refused, log_of_strangers_is_limited, other_version_is_refused, other_job_is_refused,
        duplicate_and_unknown_sites_are_refused, strangers_do_not_fill_the_door, door_without_descriptors_rests, peer_that_refuses,
        peer_of_another_version, abort_of_a_peer_wins_over_its_loss, malformed_frames_in_between_do_no_harm,
        contradicting_segment_ends_the_job, second_writer_is_refused)]
    msg = dict(seq=1, src=2, dst=0, ctx=2)
    for name, data, what in (
            ("malformed_frame", b"not a frame", "malformed"),
            ("gap_in_sequence", wire.frame(wire.MSG, b"x", **dict(msg, seq=2)), "sequence"),
            ("foreign_source", wire.frame(wire.MSG, b"x", **dict(msg, src=0)), "source"),
            ("foreign_destination", wire.frame(wire.MSG, b"x", **dict(msg, dst=3)), "destination"),
            ("local_tag_on_link", wire.frame(wire.MSG, b"", total=5000, seg=1 << 18, local=20, **msg), "link"),
            ("damaged_frame", wire.frame(wire.MSG, b"x", **msg)[:-1] + b"y", "checksum"),
            ("frame_without_checksum", wire.frame(wire.MSG, b"x", checked=False, **msg), "checksum"),
            ("more_than_its_credit", wire.frame(wire.SEG, b"", flags=8, total=1 << 40, seg=1 << 20, **msg), "malformed"),
            ("reverse_frame", wire.frame(wire.CREDIT, dst=1), "may not be sent")):
        tests.append((f"peer_sends_{name}", lambda d=data, w=what: peer_that_breaks_the_protocol(f, d, w)))
    only = sys.argv[1:]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run([t for t in tests if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
