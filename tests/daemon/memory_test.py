#!/usr/bin/env python3
"""memory_test.py: the daemons' memory stays under the configured bound plus a stated constant, whatever the ranks do: tests/mpi/flow.c's
patterns with far more data than the bound, and the most anonymous memory that any daemon was seen with."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sites import BUILD, flavors, run  # noqa: E402

MIB = 1 << 20
CONSTANT = 40 * MIB  # a process with its native MPI, the pool of free segments, sockets and TLS: daemon/LINKS.md


def daemons_of(pid):
    """Pids of pacxd below a process."""
    children, found, stack = {}, [], [pid]
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open(f"/proc/{d}/stat") as f:
                    children.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(d))
            except OSError:
                pass
    while stack:
        for c in children.get(stack.pop(), []):
            stack.append(c)
            try:
                with open(f"/proc/{c}/comm") as f:
                    if f.read().startswith("pacxd-"):
                        found.append(c)
            except OSError:
                pass
    return found


def anonymous(pid):
    """Bytes now; the kernel keeps the largest value only for all pages together, those of files included."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon")), 0)
    except OSError:
        return 0


def pattern(mpi, number, count, size, link="compress: none", ranks=3):
    cmd = [f"{BUILD}/bin/pacxrun", "-n", f"{ranks}+{ranks}", "--mpi", mpi, "--buffer", "16MiB", "--link", link, "--",
           f"{BUILD}/{{mpi}}/tests/flow", str(count), str(size), str(number)]
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    most, pids, end = 0, [], time.monotonic() + 150
    while p.poll() is None:
        assert time.monotonic() < end, "it hangs"
        if len(pids) < 4:
            pids = daemons_of(p.pid)
        most = max([most] + [anonymous(d) for d in pids])
        time.sleep(0.02)
    text = p.stdout.read()
    assert p.returncode == 0 and "0 failed" in text, text
    assert len(pids) == 4, "not all daemons were seen"
    # With many ranks a segment of each one that is receiving may come on top.
    bound = 16 * MIB + (ranks * MIB if ranks > 3 else 0)
    assert 0 < most < bound + CONSTANT, f"{most / MIB:.1f} MiB, allowed are {(bound + CONSTANT) / MIB:.1f}"
    print(f"# largest daemon {most / MIB:.1f} MiB")


def main():
    have = flavors()
    if not have:
        return 77
    both = f"{have[0]}+{have[-1]}"
    run([("last_received_first", lambda: pattern(both, 0, 120, 1000000)),
         ("sleeper_beside_a_fast_pair", lambda: pattern(both, 2, 150, 1000000)),
         ("flood_of_short_messages", lambda: pattern(both, 3, 300, 1000)),
         ("compressed_and_striped", lambda: pattern(both, 0, 100, 1000000, "compress: lz4, streams: 4")),
         ("many_ranks_share_what_few_had_each", lambda: pattern(both, 0, 20, 1000000, ranks=8)),
         ("over_a_slow_link", lambda: pattern(both, 0, 30, 1000000, "compress: none, emulate: {latency: 20ms, rate: 30MB/s}"))])


if __name__ == "__main__":
    sys.exit(main())
