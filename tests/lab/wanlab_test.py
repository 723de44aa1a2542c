#!/usr/bin/env python3
"""wanlab_test.py: scripts/wanlab and its emulator: latency, rate, queue, loss, cut and heal, clean-up, a pacxrun job.

Speaks the protocol of tests/run. Bounds on times are wide: they tell an emulated network from none, not how good the clock is.
The test starts itself a second time inside a lab (--inside), where one process has sockets in all sites.
"""
import contextlib
import ctypes
import hashlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("PACX_BUILD", "build"))
WANLAB = os.path.join(ROOT, "scripts/wanlab")
LIBC = ctypes.CDLL(None, use_errno=True)
SO_RCVBUFFORCE = 33
WAIT = 20  # seconds after which something that must come is missing

# ---- inside ----


@contextlib.contextmanager
def in_site(i):
    """This thread is in site i: a socket stays where it was made."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + os.environ[f"WANLAB_NS_{i}"], os.O_RDONLY)
    try:
        assert LIBC.setns(there, 0) == 0, os.strerror(ctypes.get_errno())
        yield os.environ[f"WANLAB_ADDR_{i}"]
    finally:
        LIBC.setns(home, 0)
        os.close(home)
        os.close(there)


def udp(i):
    with in_site(i) as addr:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((addr, 0))
        s.settimeout(WAIT)
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)  # what gets lost, the network has lost
        return s


def tcp(i, j):
    """A connection from site i to site j: both ends."""
    with in_site(j) as addr:
        listener = socket.create_server((addr, 0))
    with in_site(i):
        a = socket.socket()
    a.settimeout(WAIT)
    a.connect(listener.getsockname())
    b, _ = listener.accept()
    b.settimeout(WAIT)
    listener.close()
    return a, b


def ctl(*words, status=0):
    p = subprocess.run([WANLAB, "--ctl", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WAIT)
    assert p.returncode == status, f"{words}: status {p.returncode}: {p.stdout}"
    return p.stdout


def counters(link):
    for line in ctl("show").splitlines():
        name, *pairs = line.split()
        if name == link:
            return dict(p.split("=") for p in pairs)
    raise AssertionError(f"no link {link}")


def fast():
    """All links as the lab was started: 20 ms, no limits."""
    ctl("heal", "all")
    ctl("set", "all", "latency=20ms", "rate=0", "loss=0", "queue=0")
    ctl("set", "up:0", "rate=0")
    ctl("set", "down:0", "rate=0")


def round_trip(i, j, times=10):
    """The shortest of some round trips, in seconds."""
    a, b = udp(i), udp(j)
    best = WAIT
    for _ in range(times):
        start = time.monotonic()
        a.sendto(b"x", b.getsockname())
        b.sendto(*b.recvfrom(10))
        a.recv(10)
        best = min(best, time.monotonic() - start)
    a.close()
    b.close()
    return best


def arrived(a, b, n, size=1000):
    """Sends n numbered datagrams from a to b; the numbers that arrived. A last one, sent until it arrives, ends the wait."""
    for k in range(n):
        a.sendto(k.to_bytes(4, "big") + bytes(size - 4), b.getsockname())
    got, end = [], time.monotonic() + WAIT
    while time.monotonic() < end:
        if not select.select([b], [], [], 0.1)[0]:
            a.sendto(b"\xff" * 4, b.getsockname())
            continue
        k = int.from_bytes(b.recv(2000)[:4], "big")
        if k == 0xffffffff:
            return got
        got.append(k)
    raise AssertionError("the last datagram never arrived")


def a_round_trip_takes_two_latencies():
    ratio = round_trip(0, 1) / 0.040
    assert 0.99 < ratio < 2.5, f"{ratio:.2f} of two latencies"


def latency_changes_in_one_direction_while_it_runs():
    ctl("set", "0:1", "latency=100ms")
    ratio = round_trip(0, 1, 4) / 0.120
    other = round_trip(0, 2, 4) / 0.040
    assert 0.99 < ratio < 2.5 and 0.99 < other < 2.5, f"{ratio:.2f}, other link {other:.2f}"


def data_is_whole_over_a_slow_link_and_not_faster_than_its_rate():
    ctl("set", "0-1", "rate=1MB/s", "latency=5ms")
    a, b = tcp(0, 1)
    data = random.Random(7).randbytes(1000000)
    start = time.monotonic()
    sender = threading.Thread(target=lambda: (a.sendall(data), a.shutdown(socket.SHUT_WR)))
    sender.start()
    got = hashlib.sha256()
    while piece := b.recv(65536):
        got.update(piece)
    seconds = time.monotonic() - start
    sender.join()
    a.close()
    b.close()
    assert got.digest() == hashlib.sha256(data).digest(), "other data came out"
    assert 0.98 < seconds < 6, f"1 MB took {seconds:.2f} s at 1 MB/s"


def links_of_a_site_share_its_uplink_and_its_downlink():
    ctl("set", "up:0", "rate=1MB/s")
    ctl("set", "down:0", "rate=1MB/s")
    for there in (True, False):
        pairs = [tcp(0, k) if there else tcp(k, 0) for k in (1, 2)]
        start = time.monotonic()
        senders = [threading.Thread(target=lambda a=a: (a.sendall(bytes(500000)), a.shutdown(socket.SHUT_WR))) for a, _ in pairs]
        for s in senders:
            s.start()
        got = 0
        for a, b in pairs:
            while piece := b.recv(65536):
                got += len(piece)
        seconds = time.monotonic() - start
        for s in senders:
            s.join()
        for a, b in pairs:
            a.close()
            b.close()
        assert got == 1000000 and 0.98 < seconds < 8, f"{got} bytes over two links took {seconds:.2f} s at 1 MB/s together"


def a_full_queue_loses_the_last_that_came():
    ctl("set", "0:2", "rate=10kB/s", "queue=5kB")
    a, b = udp(0), udp(2)
    got = arrived(a, b, 30)
    full = int(counters("0:2")["full"])
    a.close()
    b.close()
    # One packet is being sent, 4 wait (1028 bytes each); a slow machine may take a few more meanwhile.
    assert got[:5] == [0, 1, 2, 3, 4] and len(got) <= 15 and full >= 15, f"{got}, {full} lost"


def loss_loses_its_share_in_its_direction():
    ctl("set", "1:2", "loss=30")
    a, b = udp(1), udp(2)
    there, back = arrived(a, b, 400), arrived(b, a, 400)
    a.close()
    b.close()
    assert 0.5 * 400 < len(there) < 0.9 * 400, f"{len(there)} of 400 arrived at a loss of 30 %"
    assert len(back) == 400, f"{len(back)} of 400 arrived the other way"


def a_cut_stops_traffic_and_heal_resumes_it():
    a, b = tcp(0, 1)
    c, d = tcp(0, 2)
    a.sendall(b"before")
    assert b.recv(100) == b"before"
    ctl("cut", "0-1")
    a.sendall(b"during")
    end = time.monotonic() + WAIT
    while int(counters("0:1")["dropped"]) == 0:  # then the kernel has sent it
        assert time.monotonic() < end, "nothing came to the cut link"
    assert counters("0:1")["state"] == "cut"
    c.sendall(b"elsewhere")
    assert d.recv(100) == b"elsewhere"
    assert not select.select([b], [], [], 0)[0], "data came over a cut link"
    ctl("heal", "0-1")
    assert b.recv(100) == b"during"
    for s in (a, b, c, d):
        s.close()


def a_wrong_command_changes_nothing():
    before = ctl("show").replace("carried", "\ncarried").split()
    for words in (["set", "0-1", "latency=1ms", "rate=fast"], ["set", "0-1", "colour=red"], ["set", "0-1"], ["cut"], ["cut", "0-3"],
                  ["cut", "0-1", "now"], ["set", "all", "latency=-1ms"], ["set", "0:1", "loss=101"], ["set", "up:3", "rate=1MB/s"], ["sever", "0-1"]):
        assert ctl(*words, status=1).startswith("error: "), words
    after = ctl("show").replace("carried", "\ncarried").split()
    keep = [w for w in before if w.startswith(("latency", "rate", "loss", "queue", "state"))]
    assert keep == [w for w in after if w.startswith(("latency", "rate", "loss", "queue", "state"))], "a link changed"


INSIDE = [a_round_trip_takes_two_latencies, latency_changes_in_one_direction_while_it_runs,
          data_is_whole_over_a_slow_link_and_not_faster_than_its_rate, links_of_a_site_share_its_uplink_and_its_downlink, a_full_queue_loses_the_last_that_came,
          loss_loses_its_share_in_its_direction, a_cut_stops_traffic_and_heal_resumes_it, a_wrong_command_changes_nothing]

# ---- outside ----


def namespaces_of(pid):
    """Those that the wanlab with this process id made."""
    try:
        return [n for n in os.listdir("/run/netns") if n.startswith(f"wanlab-{pid}-")]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def start(command, *options):
    return subprocess.Popen([WANLAB, "--sites", "2", *options, "--", "sh", "-c", command], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def gone(lab, pids):
    """Nothing of the lab is left, at the latest after a while."""
    end = time.monotonic() + WAIT
    while namespaces_of(lab.pid) or any(map(alive, pids)):
        assert time.monotonic() < end, f"left: {namespaces_of(lab.pid)}, {[p for p in pids if alive(p)]}"
        time.sleep(0.02)


# Two that would stay: one in a site, one outside.
LEAVE = f"""
sleep 1000 >/dev/null & echo outside $!
{WANLAB} --at 1 -- sh -c 'echo inside $$; exec sleep 1000 >/dev/null' &
"""


def left_behind(lab):
    """Process ids of both, when they are there."""
    return {where: int(pid) for where, pid in (lab.stdout.readline().split() for _ in range(2))}


def the_end_leaves_nothing_and_passes_the_status_on():
    lab = start(LEAVE + "read end; exit 7")
    pids = left_behind(lab)
    lab.stdin.close()
    status = lab.wait(WAIT)
    assert status == 7, f"status {status}"
    left = namespaces_of(lab.pid) + [p for p in pids.values() if alive(p)]
    assert not left, f"left: {left}"
    lab.stdout.close()


def ended_by(number, status):
    lab = start(LEAVE + "wait")
    pids = left_behind(lab)
    assert len(namespaces_of(lab.pid)) == 2
    lab.send_signal(number)
    assert lab.wait(WAIT) == status
    if number == signal.SIGKILL:
        gone(lab, [pids["inside"]])
        os.kill(pids["outside"], signal.SIGKILL)  # it cannot be told from others any more: ours to end
    else:
        assert not namespaces_of(lab.pid) and not any(map(alive, pids.values())), "something is left"
    lab.stdin.close()
    lab.stdout.close()


def sigterm_leaves_nothing():
    ended_by(signal.SIGTERM, 128 + signal.SIGTERM)


def sigkill_leaves_nothing_in_the_sites():
    ended_by(signal.SIGKILL, -signal.SIGKILL)


def pacxrun_couples_two_sites_over_10_ms():
    mpi = [m for m in ("openmpi", "mpich") if os.path.exists(f"{BUILD}/{m}/tests/traffic")]
    lab = subprocess.Popen([WANLAB, "--latency", "10ms", "--rate", "10MB/s", "--pacx", "--mpi", f"{mpi[0]}+{mpi[-1]}", "--ranks", "2+2",
                            "--", BUILD + "/{mpi}/tests/traffic"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    text, _ = lab.communicate(timeout=60)
    assert lab.returncode == 0 and ", 0 failed" in text, f"status {lab.returncode}: {text}"
    assert not namespaces_of(lab.pid), "namespaces are left"


OUTSIDE = [the_end_leaves_nothing_and_passes_the_status_on, sigterm_leaves_nothing, sigkill_leaves_nothing_in_the_sites,
           pacxrun_couples_two_sites_over_10_ms]


def run(tests, before):
    failed = 0
    for f in tests:
        try:
            before()
            f()
            print(f"ok {f.__name__}", flush=True)
        except Exception as e:  # whatever it is, the other tests shall run
            failed += 1
            print(f"not ok {f.__name__}: {type(e).__name__} {e}", flush=True)
    return failed


def main():
    if sys.argv[1:] == ["--inside"]:
        sys.exit(1 if run(INSIDE, fast) else 0)
    p = subprocess.run([WANLAB, "--", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=WAIT)
    if p.returncode == 77:
        print(p.stderr.strip())
        sys.exit(77)
    assert p.returncode == 0, p.stderr
    print(f"1..{len(INSIDE) + len(OUTSIDE)}", flush=True)
    inside = subprocess.run([WANLAB, "--sites", "3", "--latency", "20ms", "--rate", "0", "--", sys.executable, os.path.abspath(__file__),
                             "--inside"], stdin=subprocess.DEVNULL, timeout=90)
    failed = run(OUTSIDE, lambda: None)
    sys.exit(1 if failed or inside.returncode else 0)


if __name__ == "__main__":
    main()
