#!/usr/bin/env python3
"""stats_test.py: --stats counts what tests/mpi/traffic.c is known to send; speaks the protocol of tests/run."""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get("PACX_BUILD", "build")
START = 12288   # bytes that the libraries send over each link to measure it, libpacx/coll/model.c
# operation -> calls, latencies in sequence, (wide-area messages, bytes) sent by the first site and by each other one; n = other sites
EXPECTED = {"bcast": (7, 1, lambda n: (7 * n, 448 * n), lambda n: (0, 0)),
            "allreduce": (4, 1, lambda n: (4 * n, 32 * n), lambda n: (4 * n, 32 * n)),
            "barrier": (2, 1, lambda n: (2 * n, 0), lambda n: (2 * n, 0))}


def check(sites, mpi):
    names = ["left", "right"] if sites.count("+") == 1 else None
    others = sites.count("+")
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "stats.json")
        p = subprocess.run([BUILD + "/bin/pacxrun", "-n", sites, "--mpi", mpi, "--stats", path, "--", BUILD + "/{mpi}/tests/traffic"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True)
        if p.returncode or ", 0 failed" not in p.stdout:
            return f"status {p.returncode}: {p.stdout}"
        with open(path) as f:
            stats = json.load(f)
    order = [s["name"] for s in stats["sites"]]
    if names and order != names:
        return f"sites {order}"
    links = {(l["from"], l["to"]): l for l in stats["links"]}
    if sorted(links) != sorted((a, b) for a in order for b in order if a != b):
        return f"links {sorted(links)}"
    first, last = order[0], order[-1]
    data = links[first, last]
    if data["messages"] < 13 + 7 + 4 + 2 or not 3010000 <= data["payload_bytes"] - START < 3020000:
        return f"{first} -> {last}: {data}"
    for l in links.values():
        if l["wire_bytes"] < l["payload_bytes"] + 80 * l["messages"]:
            return f"fewer bytes on the wire than headers and data: {l}"
    for op, (calls, latencies, at_first, at_others) in EXPECTED.items():
        for site in order:
            want = at_first(others) if site == first else at_others(others)
            got = stats["collectives"][site].get(op)
            if not got or (got["calls"], got["messages"], got["bytes"], got["latencies"]) != (calls, *want, latencies):
                return f"{site}: {op}: {got}, expected {calls} calls, {want} messages and bytes, {latencies} latencies"
    return None


def main():
    cases = [("2+2", "openmpi"), ("2+2", "mpich"), ("2+1+2", "openmpi+mpich+openmpi")]
    cases = [c for c in cases if all(os.path.exists(f"{BUILD}/{m}/tests/traffic") for m in c[1].split("+"))]
    print(f"1..{len(cases)}")
    bad = 0
    for sites, mpi in cases:
        why = check(sites, mpi)
        if why:
            bad += 1
            print(f"  {why}")
        print(f"{'not ok' if why else 'ok'} statistics_count_known_traffic_{sites}_{mpi}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
