#!/usr/bin/env python3
"""relay_test.py: the relay daemon between real native jobs: messages of all sizes between sites of every vendor pair,
the end of a job in all its forms, statistics, idle daemons."""
import itertools
import os
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sites import Job, cpu_seconds, flavors, run  # noqa: E402


FORMS = {"tls": "security: tls", "tls_3_streams": "security: tls, streams: 3",
         "plain_4_streams": "security: none, streams: 4", "lz4": "compress: lz4", "zstd_3_2_streams": "compress: 'zstd:3', streams: 2",
         "zlib_plain": "compress: zlib, security: none", "emulated": "emulate: {latency: 2ms, rate: 200MB/s}",
         "congestion": "tcp: {congestion: reno}", "one_side_dials": "dial: site1", "command": f"dial: 'exec {sys.executable} {os.path.abspath(__file__)} --splice %h %p'"}
SOON = "security: none, reconnect: 2s"


def finish(job, *args, expect=0):
    for i in range(len(job.mpi)):
        job.start(i, *args)
    for i in range(len(job.mpi)):
        status = job.wait(i)
        assert status == expect, f"{job.names[i]} ended with {status}, expected {expect}:\n{job.text(i)}"


def random_messages(mpi, **how):
    with Job(mpi, **how) as j:
        finish(j, "random", 150)
        n = sum(j.text(i).count("_ok") for i in range(len(mpi)))
        assert n == 2 * len(mpi), f"only {n} ranks said ok"
        for i in range(len(mpi)):
            said = [t for t in j.text(i).splitlines() if "pacxd" in t and "waiting for" not in t]
            assert not said, f"a quiet run is expected to say nothing: {said}"


def splice(host, port):
    """A transport for `dial: COMMAND`, as ssh -W would be: standard input and output to host and port."""
    with socket.create_connection((host, int(port))) as s:
        def back():
            while data := s.recv(65536):
                while data:
                    data = data[os.write(1, data):]
            os._exit(0)
        threading.Thread(target=back, daemon=True).start()
        while data := os.read(0, 65536):
            s.sendall(data)


def random_messages_in_form(link):
    have = flavors()
    random_messages([have[0], have[-1]], link=link)


def pingpong(mpi):
    with Job(mpi, ranks=1) as j:
        finish(j, "pingpong", 2000)
        assert "oneway_us" in j.text(0)


def single_site(f):
    with Job([f]) as j:
        finish(j, "idle", 0)


def unreceived_messages_drain(f):
    with Job([f, f]) as j:
        finish(j, "leave")


def abort_reaches_all_sites(mpi):
    with Job(mpi) as j:
        finish(j, "abort", 7, expect=7)
        assert "MPI_Abort(by client)" in j.text(0), j.text(0)
        for i in range(1, len(mpi)):
            assert "site0 ended the job: MPI_Abort" in j.text(i), j.text(i)


def lost_rank_ends_peer(f):
    with Job([f, f], link=SOON) as j:
        for i in range(2):
            j.start(i, "crash")
        assert j.wait(0) != 0
        assert j.wait(1) == 4
        assert "is dead: no connection for 2 s" in j.text(1) and "from site site0" in j.text(1), j.text(1)


def killed_daemon_ends_both(f, which):
    with Job([f, f], link=SOON) as j:
        for i in range(2):
            j.start(i, "idle", 30, PACX_LOG="debug")
        for i in range(2):
            j.wait_text(i, f"link from site site{i} to")
            j.wait_text(i, f"to site site{i} is up")
        os.kill(j.daemons(1)[which], 9)
        assert j.wait(1) != 0
        assert j.wait(0) == 4, j.text(0)
        assert "is dead" in j.text(0) and "site1" in j.text(0)


def catches(pid, sig):
    """Has the process a handler for the signal, that is, is it past its first steps?"""
    try:
        with open(f"/proc/{pid}/status") as status:
            mask = next(line.split()[1] for line in status if line.startswith("SigCgt"))
    except (OSError, StopIteration):
        return False
    return bool(int(mask, 16) >> (sig - 1) & 1)


def terminated_quietly(f):
    with Job([f], ranks=1) as j:
        p = j.start(0, "idle", 30)
        while sum(catches(d, signal.SIGTERM) for d in j.daemons(0)) < 2:
            assert p.poll() is None, f"ended with {p.poll()} before it was terminated: {j.text(0)}"
        p.terminate()
        status = j.wait(0, 20)
        assert status != 0, f"status {status}: {j.text(0)}"


def missing_site_ends_start(f):
    with Job([f, f], deadline=4) as j:
        j.start(0, "idle", 0)
        assert j.wait(0, 30) == 3, j.text(0)
        text = j.text(0)
        assert "waiting for 1 of 2 sites" in text and "site1 at 127.0.0.1:" in text, text
        assert "start deadline of 4 s passed" in text and "Connection refused" in text, text


def wrong_number_of_ranks(f):
    with Job([f, f], ranks=1) as j:
        j.ranks = 2
        plan = j.plan()
        j.ranks = 1
        j.start(0, "idle", 0, PACX_PLAN=plan)
        assert j.wait(0, 30) == 2, j.text(0)
        assert j.text(0).count("was started with 1 application ranks") == 1, j.text(0)


def wrong_job_ends_both(f):
    with Job([f, f]) as j:
        j.start(0, "idle", 30)
        j.start(1, "idle", 30, PACX_JOB="another")
        assert j.wait(0, 30) == 3, j.text(0)
        assert j.wait(1, 30) == 3, j.text(1)
        assert "refused us" in j.text(0) + j.text(1) and "of another job" in j.text(0) + j.text(1)


def idle_daemons_sleep(f):
    with Job([f, f], ranks=1) as j:
        for i in range(2):
            j.start(i, "idle", 6, PACX_LOG="debug")
        for i in range(2):
            j.wait_text(i, f"link from site site{i} to")
            j.wait_text(i, f"to site site{i} is up")
        import time
        time.sleep(1)  # not to synchronise: the load after the start is not what is measured
        pids = [p for i in range(2) for p in j.daemons(i)]
        before, t = {p: cpu_seconds(p) for p in pids}, time.monotonic()
        time.sleep(4)
        share = {p: 100 * (cpu_seconds(p) - before[p]) / (time.monotonic() - t) for p in pids}
        assert len(pids) == 4 and max(share.values()) < 3, f"percent of a core: {share}"


def statistics_are_reported(f):
    with Job([f, f], extra={"PACX_STATS": "1"}) as j:
        finish(j, "random", 20)
        out = open(j.procs[0].log.name, "rb").read()
        recs, at = [], out.find(b"\001pacx ")
        while at >= 0:
            recs.append(out[at:at + 256])
            at = out.find(b"\001pacx ", at + 256)
        assert recs and all(len(r) == 256 and r.endswith(b"\n") for r in recs), recs
        text = {}
        for r in recs:
            who, kind, seq, body = r[6:].decode().split(" ", 3)
            text[who] = text.get(who, "") + body.rstrip()
        import json
        o, i = json.loads(text["site0:out"]), json.loads(text["site0:in"])
        assert o["links"][0]["messages"] == 80 and o["links"][0]["to"] == "site1", o
        assert o["collectives"] == {"barrier": [1, 2, 3, 4]} and i["links_in"][0]["messages"] == 80, (o, i)


def main():
    if sys.argv[1:2] == ["--splice"]:
        return splice(*sys.argv[2:])
    have = flavors()
    if not have:
        print("no daemon has been built")
        return 77
    pairs = [list(p) for p in itertools.combinations_with_replacement(have, 2)]
    tests = []
    for p in pairs:
        name = "_".join(p)
        tests.append((f"random_messages_{name}", lambda p=p: random_messages(p)))
        tests.append((f"pingpong_{name}", lambda p=p: pingpong(p)))
    tests.append(("random_messages_three_sites", lambda: random_messages([have[0], have[-1], have[0]])))
    for name, link in FORMS.items():
        tests.append((f"random_messages_{name}", lambda l=link: random_messages_in_form(l)))
    tests.append(("daemons_first", lambda: random_messages([have[0], have[-1]], first=True)))
    tests.append(("sites_by_name", lambda: random_messages([have[0]] * 2, host="localhost")))
    if os.path.exists("/proc/net/if_inet6") and " lo" in open("/proc/net/if_inet6").read():
        tests.append(("sites_on_ipv6", lambda: random_messages([have[0]] * 2, host="::1")))
    tests.append(("abort_reaches_all_sites", lambda: abort_reaches_all_sites([have[0], have[-1], have[0]])))
    for f in have:
        for test in (single_site, unreceived_messages_drain, lost_rank_ends_peer, terminated_quietly,
                     missing_site_ends_start, wrong_number_of_ranks, wrong_job_ends_both, idle_daemons_sleep,
                     statistics_are_reported):
            tests.append((f"{test.__name__}_{f}", lambda test=test, f=f: test(f)))
        for which, role in enumerate(("out", "in")):
            tests.append((f"killed_{role}_daemon_ends_both_{f}", lambda f=f, w=which: killed_daemon_ends_both(f, w)))
    only = sys.argv[1:]
    run([t for t in tests if not only or any(o in t[0] for o in only)])


if __name__ == "__main__":
    sys.exit(main())
