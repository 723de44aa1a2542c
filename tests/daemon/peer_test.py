#!/usr/bin/env python3
"""peer_test.py: a peer that has the key (a link without TLS here) and whose connections break when a job ends, or who does not keep to
the protocol: what it costs the other site is bounded, and no more is lost than it says itself. This script is the peer of a real site.

usage: peer_test.py [TEST...]
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stranger_test  # noqa: E402
import wire  # noqa: E402
from faulty import Storm  # noqa: E402
from sites import BUILD, flavors, run  # noqa: E402

HAVE = []
# 200 messages for which there is no memory, and then a short one.
FAILING = r"""
#include <mpi.h>
int main(int argc, char **argv)
{
	MPI_Datatype gaps;
	MPI_Request q;
	int r, went = 0, x = 7;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Type_vector(1 << 30, 1 << 19, 1 << 20, MPI_CHAR, &gaps);
	MPI_Type_commit(&gaps);
	for (int i = 0; r == 0 && i < 200; i++)
		went += MPI_Isend(&x, 1, gaps, 1, 1, MPI_COMM_WORLD, &q) == MPI_SUCCESS;
	if (r == 0)
		MPI_Send(&x, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
	else
		MPI_Recv(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Type_free(&gaps);
	MPI_Finalize();
	return went != 0 || x != 7;
}
"""


class Peer(stranger_test.Peer):
    """seconds: how long the ranks of the real site do nothing before they finish."""

    def __init__(self, seconds, link=""):
        super().__init__(HAVE[0])
        self.job.link = "security: none" + link
        self.seconds = seconds

    def __enter__(self):
        self.job.__enter__()
        self.job.start(0, "idle", self.seconds)
        return self

    def read(self, s, kind):
        """Until a frame of this kind comes; its header."""
        while True:
            head = wire.read_exactly(s, 80)
            assert len(head) == 80, self.job.text(0)
            wire.read_exactly(s, struct.unpack_from("<Q", head, 16)[0])
            if head[3] == wire.PING:
                s.sendall(wire.frame(wire.PONG, total=struct.unpack_from("<Q", head, 24)[0]))
            if head[3] == kind:
                return head

    def alive(self, s):
        """Answer heartbeats, as long as the connection stands."""
        def answer():
            try:
                self.read(s, None)
            except (OSError, AssertionError):
                pass
        threading.Thread(target=answer, daemon=True).start()

    def ends(self, status=0, seconds=20):
        assert self.job.wait(0, seconds) == status, self.job.text(0)

    def leaves(self, out):
        """Our own end as a writer, done right."""
        for seq in (1, 2):
            out.sendall(wire.frame(wire.BYE, seq=seq))
            self.read(out, wire.LINKACK)


def bye_is_offered_as_long_as_any_frame():
    """An outage that begins with BYE, longer than any patience but reconnect: itself."""
    with Peer(0, ", reconnect: 30s") as p:
        out, into = p.dial(), p.accept()
        p.leaves(out)
        assert struct.unpack_from("<Q", p.read(into, wire.BYE), 8)[0] == 1
        p.server.close()
        into.close()  # not acknowledged: has it come?
        time.sleep(12)  # not to synchronise: the outage
        p.listen()
        into = p.accept()
        assert struct.unpack_from("<Q", p.read(into, wire.BYE), 8)[0] == 1
        into.sendall(wire.frame(wire.LINKACK, total=1))
        assert struct.unpack_from("<Q", p.read(into, wire.BYE), 8)[0] == 2
        into.sendall(wire.frame(wire.LINKACK, total=2))
        p.ends()


def reader_waits_for_a_writer_that_does_not_know():
    """The acknowledgement of BYE is lost: the reader is still there when its writer comes back."""
    with Peer(0, ", reconnect: 30s") as p:
        out, into = p.dial(), p.accept()
        p.read(into, wire.BYE)
        into.sendall(wire.frame(wire.LINKACK, total=1))
        p.read(into, wire.BYE)
        into.sendall(wire.frame(wire.LINKACK, total=2))
        out.sendall(wire.frame(wire.BYE, seq=1))
        p.read(out, wire.LINKACK)
        out.close()
        time.sleep(3)  # not to synchronise: the outage
        assert p.job.procs[0].poll() is None, p.job.text(0)
        out = p.dial()
        out.sendall(wire.frame(wire.BYE, seq=2))
        p.read(out, wire.LINKACK)
        p.ends()


def reader_that_knows_everything_may_leave():
    """And the writer does not wait for it for all of reconnect:."""
    with Peer(0, ", reconnect: 120s") as p:
        out, into = p.dial(), p.accept()
        p.leaves(out)
        p.read(into, wire.BYE)
        into.sendall(wire.frame(wire.LINKACK, total=1))
        p.read(into, wire.BYE)
        p.server.close()
        into.close()
        p.ends(seconds=30)


def reader_that_breaks_the_protocol(said):
    """On every connection, until the job ends: after five at least, and a beat, here 0.2 s."""
    with Peer(60, ", reconnect: 2400ms") as p:
        out, times = p.dial(), 0
        p.alive(out)
        p.server.settimeout(5)
        try:
            while p.job.procs[0].poll() is None:
                into = p.accept()
                times += 1
                try:
                    into.sendall(said)
                    while wire.read_frame(into)[0] is not None:
                        pass
                except OSError:
                    pass
                into.close()
        except (OSError, AssertionError):
            pass  # it has ended
        p.ends(5)
        assert times >= 5 and "the peer broke the protocol" in p.job.text(0), f"{times} times; {p.job.text(0)}"
        out.close()


def acknowledgement_of_what_was_not_sent_is_malformed():
    reader_that_breaks_the_protocol(wire.frame(wire.LINKACK, total=1))


def pulls_of_unknown_messages_are_bounded():
    """The rank looks now and then only; what is on its way to it stays within what a right reader may ask for."""
    reader_that_breaks_the_protocol(b"".join(wire.frame(wire.PULL, src=0, dst=2, msg=i) for i in range(1500)))


def damage_that_passes_costs_connections_only():
    """Eight damaged frames in a row, at once, and then a right one."""
    with Peer(0) as p:
        into = p.accept()
        p.alive(into)
        for _ in range(8):
            out = p.dial()
            out.sendall(wire.frame(wire.BYE, seq=1)[:-1] + b"\1")
            while wire.read_frame(out)[0] is not None:
                pass
            out.close()
        assert p.job.procs[0].poll() is None, p.job.text(0)
        out = p.dial()
        out.sendall(wire.frame(wire.BYE, seq=1))
        p.read(out, wire.LINKACK)
        into.close()
        out.close()


def damaged_heartbeats_of_an_idle_link_end_nothing():
    """Beats are 0.2 s apart. Seven connections in a row, each cut by a damaged heartbeat and nothing else."""
    with Peer(0, ", reconnect: 2400ms") as p:
        into = p.accept()
        p.alive(into)
        for _ in range(7):
            out = p.dial()
            out.sendall(wire.frame(wire.PING))
            began = time.monotonic()
            while time.monotonic() < began + 0.3:
                p.read(out, wire.PING)
            out.sendall(wire.frame(wire.PING)[:-1] + b"\1")
            while wire.read_frame(out)[0] is not None:
                pass
            out.close()
        assert p.job.procs[0].poll() is None, p.job.text(0)
        into.close()


def link_that_always_comes_back_and_carries_nothing_is_dead():
    with Peer(60, ", reconnect: 3s") as p:
        out, over = p.dial(), time.monotonic() + 20
        p.server.settimeout(5)
        try:
            while p.job.procs[0].poll() is None and time.monotonic() < over:
                p.accept().close()
        except (OSError, AssertionError):
            pass
        p.ends(4)
        assert "nothing has gone through" in p.job.text(0), p.job.text(0)
        out.close()


def first_greeting_without_an_answer_is_given_up_in_time():
    """We may have taken it, and wait; before reconnect: has passed the dialler comes again."""
    with Peer(0, ", reconnect: 6s") as p:
        silent, _ = p.server.accept()
        p.server.settimeout(5)
        p.accept().close()
        silent.close()


def latency_is_what_a_message_meets():
    """Emulation included, which TCP does not see."""
    with Storm([HAVE[0]] * 2, link="emulate: {latency: 60ms}", largest=100) as j:
        seen = []

        def shown():
            text = subprocess.run([BUILD + "/bin/pacxctl", "status", "--json"], stdout=subprocess.PIPE, check=False).stdout
            seen[:] = [l["rtt_us"] for d in json.loads(text or b"[]") for l in d["links"]
                       if d["pid"] in j.processes() and l["rtt_us"]]
            return len(seen) >= 2
        j.until(shown, "a latency of each link, at its sending end")
        assert all(120000 <= us < 20000000 for us in seen), seen
        j.good()


def failed_announcements_give_their_window_back():
    with tempfile.TemporaryDirectory(prefix="pacx-peer-") as d:
        subprocess.run(["mpicc." + HAVE[0], "-w", "-x", "c", "-", "-o", d + "/a"], input=FAILING, text=True, check=True)
        p = subprocess.run([BUILD + "/bin/pacxrun", "-n", "1+1", "--mpi", HAVE[0], "--", d + "/a"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        assert p.returncode == 0, p.stdout


def main():
    HAVE.extend(f for f in flavors() if os.path.exists(f"{BUILD}/{f}/tests/storm"))
    if not HAVE:
        print("no daemon has been built")
        return 77
    tests = (bye_is_offered_as_long_as_any_frame, reader_waits_for_a_writer_that_does_not_know, reader_that_knows_everything_may_leave,
             acknowledgement_of_what_was_not_sent_is_malformed, pulls_of_unknown_messages_are_bounded,
             damaged_heartbeats_of_an_idle_link_end_nothing, damage_that_passes_costs_connections_only,
             link_that_always_comes_back_and_carries_nothing_is_dead,
             first_greeting_without_an_answer_is_given_up_in_time, latency_is_what_a_message_meets,
             failed_announcements_give_their_window_back)
    only = sys.argv[1:]
    run([(t.__name__, t) for t in tests if not only or any(o in t.__name__ for o in only)])


if __name__ == "__main__":
    sys.exit(main())
