#!/usr/bin/env python3
"""wan.py: make bench-wan: collective operations over a wide area of 10 ms one way and 1 MByte/s in each direction between each pair of sites.

One table for each setting (PART=2x8, or several: PART=2x8,8x2): our time over Open MPI and MPICH, mixed where there are several sites; what one flat
job of Open MPI, of Open MPI with han, and of MPICH takes over the same network; the limit: one latency and the least bytes that a link must carry, or
two latencies and pieces where that is less (broadcast 2 L + 2 b / ((n - 1) B), reductions 2 L + 2 b / (n B)). A setting named with "long" has
10 ms and no limit of the rate, and long messages, by the algorithms that PACX_COLL_* can force. In one named with "up" it is not each link that has
1 MByte/s, but all those out of a site together, and all those into it. One named with "gw" is Matsuda's, with long messages: a site has as many gateways as
ranks, and each path from gateway to gateway, as `emulate:` has it, 10 ms and 25 MByte/s; ours as chosen, by leaders and in lanes. PART=tables: Tables II, III and IV of PACX-MPI in shape: a broadcast and a
reduction of 1 KiB, with the same ranks split in several ways over the sites, ours and a binomial tree of all ranks.

Times are ms from a common start until the last rank is done, medians (tests/bench/wide.c). A row has seconds, a job has a deadline: what has not ended by then
is "-", and the rest goes on. Sites are network namespaces (scripts/wanlab, root); where these are not to be had, ours runs over `emulate:` of the links
and the flat jobs are left out. The row nop is the noise of the method on this machine at this load. Never fails because of a figure.
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, f"{ROOT}/tests/daemon")
from ports import free_ports  # noqa: E402

LATENCY, RATE = 10.0, 1e6 * 1448 / 1500 / 1e3   # ms, bytes/ms without the headers of TCP and IP
K64 = 65536
SHORT = [("nop", 0), ("barrier", 0), ("bcast", 1), ("bcast", K64), ("allgather", 1), ("allgather_tot", K64), ("allgather", K64),
         ("reduce", 1), ("reduce", K64), ("allreduce", 8), ("allreduce", K64), ("alltoall", 1), ("alltoall", 1024),
         ("gather", K64), ("scatter", K64), ("scan", 8), ("exscan", 8), ("scan", K64), ("reduce_scatter", K64)]
GATED = 25e3    # bytes/ms of a path
LONG = [("nop", 0), ("bcast", 1 << 20), ("allreduce", 1 << 20), ("reduce", 1 << 20), ("bcast", 32 << 20), ("allreduce", 32 << 20)]
PARTS = ["2x8", "4x4", "8x2", "2x12", "4x6", "8x3", "2x16", "4x8", "8x4", "2x4long", "2x4gw", "4x4up", "tables"]
K1 = 1024
# PACX-MPI's splits of 64 and 96 nodes with a quarter of the ranks: heading, latency one way in ms, splits, operations.
TABLES = [("II: 16 ranks on two sites, 3.5 ms", 3.5, ["8+8", "4+12", "2+14", "1+15"], ["bcast", "reduce"]),
          ("III: 16 ranks on two sites, 70 ms", 70, ["8+8", "4+12", "2+14", "1+15"], ["reduce"]),
          ("IV: 24 ranks on two, three and four sites, 3.5 ms", 3.5, ["12+12", "8+8+8", "6+6+6+6"], ["bcast"])]
TREE = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_bcast_algorithm": "6", "OMPI_MCA_coll_tuned_reduce_algorithm": "5"}


def limit(op, b, sites, ranks, shared=False):
    """ms; shared: the links of a site share the rate."""
    n, total = sites, sites * ranks
    link = {"bcast": b, "reduce": b, "allreduce": b, "scan": b, "exscan": b, "allgather": b * ranks, "allgather_tot": b / n,
            "alltoall": b * ranks * ranks, "gather": b / n, "scatter": b / n, "reduce_scatter": b / n}.get(op, 0)
    links = n - 1 if shared else 1     # that have to carry so much at the busiest site
    least = LATENCY + links * link / RATE
    if op == "bcast" and n > 2:
        least = min(least, 2 * LATENCY + (1 + (n - 2) / (n - 1) if shared else 2 / (n - 1)) * b / RATE)
    if op in ("reduce", "allreduce") and total > 1:
        least = min(least, 2 * LATENCY + links * 2 * b / (n * RATE))
    return least


def run(command, env, deadline, known):
    """Rows "OPERATION:BYTES median least samples" of a job that is ended at its deadline, to known."""
    with tempfile.TemporaryFile("w+") as errors:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, env=dict(os.environ, **env))

        def late(*_):
            p.send_signal(signal.SIGTERM)    # wanlab and pacxrun end what they have started
        signal.signal(signal.SIGALRM, late)
        signal.alarm(deadline)
        for line in p.stdout:
            words = line.split()
            if len(words) == 4 and ":" in words[0]:
                known[words[0]] = float(words[1])
        try:
            p.wait(60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        signal.alarm(0)
        if p.returncode:
            errors.seek(0)
            print(f"wan.py: {' '.join(command)}: status {p.returncode}: {errors.read()[-600:]}", file=sys.stderr)
    return p.returncode


class Setting:
    def __init__(self, args, name):
        self.args, self.name = args, name
        self.gated, self.shared = name.endswith("gw"), name.endswith("up")
        self.long = name.endswith("long") or self.gated
        self.sites, self.ranks = (int(x) for x in name.replace("long", "").replace("up", "").replace("gw", "").split("x"))
        self.rows = [r for r in (LONG if self.long else SHORT) if not args.only or r[0] in args.only.split(",")]
        self.mpis = [m for m in ("openmpi", "mpich") if os.path.exists(f"{args.build}/{m}/bench/wide")]
        self.nap = os.path.abspath(f"{args.build}/bench/nap.so")

    def lab(self, *options):
        rate = "0" if self.long or self.shared else "1MB/s"
        queue = ["--queue", "64MB"] if self.long else ["--uplink", "1MB/s"] if self.shared else []
        return [f"{ROOT}/scripts/wanlab", "--sites", str(self.sites), "--latency", f"{LATENCY:g}ms", "--rate", rate, *queue,
                "--ranks", str(self.ranks), *options, "--"]

    def job(self, command, env):
        """A job for all rows; a second and third one for those that are left when one has failed or is late."""
        known = {}
        for _ in range(3):
            left = [r for r in self.rows if f"{r[0]}:{r[1]}" not in known]
            if not left:
                break
            deadline = int(60 + len(left) * (2 * self.args.seconds + 5))
            words = [str(self.args.samples), str(self.args.seconds), *(f"{op}:{b}" for op, b in left)]
            run(command + words, env, deadline, known)
            done = [r for r in left if f"{r[0]}:{r[1]}" in known]
            if len(done) < len(left):     # the first one that is not there is what it did not come through
                known[f"{left[len(done)][0]}:{left[len(done)][1]}"] = None
        return known

    def ours(self, mpi, **env):
        mpis = "+".join(mpi[i % len(mpi)] for i in range(self.sites))
        program = f"{self.args.build}/{{mpi}}/bench/wide"
        if self.gated:
            command = [f"{self.args.build}/bin/pacxrun", "-f", self.hostfile(mpis.split("+")), "--", program]
        elif self.args.lab:
            command = self.lab("--pacx", "--mpi", mpis, "--link-options", "compress: none") + [program]
        else:
            rate = "" if self.long else ", rate: 1MB/s"
            command = [f"{self.args.build}/bin/pacxrun", "-n", "+".join([str(self.ranks)] * self.sites), "--mpi", mpis,
                       "--link", f"compress: none, emulate: {{latency: {LATENCY:g}ms{rate}}}", "--", program]
        return self.job(command, env)

    def hostfile(self, mpis):
        """Sites on this machine with as many gateways as ranks."""
        ports = free_ports(self.sites * self.ranks)
        path = os.path.join(self.args.tmp, "hosts.yml")
        with open(path, "w") as f:
            f.write("job: wan\nsites:\n")
            for i, mpi in enumerate(mpis):
                gates = ", ".join(f"{{port: {p}}}" for p in ports[i * self.ranks:(i + 1) * self.ranks])
                f.write(f"  - {{name: s{i}, host: 127.0.0.1, ranks: {self.ranks}, mpi: {mpi}, gateways: [{gates}]}}\n")
            f.write(f"links:\n  - {{default: , compress: none, emulate: {{latency: {LATENCY:g}ms, rate: {GATED / 1e3:g}MB/s}}}}\n")
        return path

    def flat(self, mpi, **env):
        return self.job(self.lab("--flat", mpi) + [f"{self.args.build}/{mpi}/bench/wide"], dict(env, LD_PRELOAD=self.nap)) if self.args.lab else {}

    def columns(self):
        """(heading, rows' times, is it ours)"""
        if self.long:
            yield ("ours", self.ours(self.mpis), True)
            for way in ("leader", "lanes" if self.gated else "segments"):
                yield (way, self.ours(self.mpis, **{f"PACX_COLL_{op}": way for op in ("BCAST", "REDUCE", "ALLREDUCE")}), False)
        elif self.args.mixed:
            yield ("ours", self.ours(self.mpis), True)
        else:
            for m in self.mpis:
                yield (f"ours {m}", self.ours([m]), True)
        for m in self.mpis if not self.gated else ():
            yield (m, self.flat(m), False)
            if m == "openmpi":
                yield ("han", self.flat(m, OMPI_MCA_coll_han_priority="100"), False)

    def show(self):
        print(f"## {self.name}: {self.sites} sites x {self.ranks} ranks, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        columns = list(self.columns())
        heads = ["operation", "bytes", "limit"] + [c[0] for c in columns] + ["ours / limit", "ours / best flat"]
        print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
        for op, b in self.rows:
            at = [c[1].get(f"{op}:{b}") for c in columns]
            ours = [v for v, c in zip(at, columns) if c[2] and v is not None]
            flat = [v for v, c in zip(at, columns) if not c[2] and v is not None and c[0] in ("openmpi", "han", "mpich")]
            least = limit(op, b, self.sites, self.ranks, self.shared) if not self.long else LATENCY + (b / (GATED * self.ranks) if self.gated else 0)
            worst = max(ours) if ours else None
            cells = [op, str(b), f"{least:.1f}" if op != "nop" else ""] + ["-" if v is None else f"{v:.1f}" for v in at]
            cells += [f"{worst / least:.2f}" if worst and op != "nop" else "-", f"{worst / min(flat):.2f}" if worst and flat and op != "nop" else "-"]
            print("| " + " | ".join(cells) + " |")
        print(flush=True)


def tables(args):
    """Ours sends one message to each other site, whatever the split; the tree one for each of its edges that crosses."""
    for heading, latency, splits, ops in TABLES:
        print(f"## Table {heading}; ms, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        ways = [("ours", ["--pacx", "--mpi", "openmpi", "--link-options", "compress: none"], "{mpi}", {}), ("tree", ["--flat", "openmpi"], "openmpi", TREE)]
        print("| ranks | " + " | ".join(f"{op} {way[0]}" for op in ops for way in ways) + " |\n|" + "---|" * (1 + 2 * len(ops)))
        for split in splits:
            cells = []
            known = []
            for _, options, mpi, env in ways:
                known.append({})
                run([f"{ROOT}/scripts/wanlab", "--sites", str(split.count("+") + 1), "--latency", f"{latency:g}ms", "--rate", "10MB/s", "--ranks", split, *options,
                     "--", f"{args.build}/{mpi}/bench/wide", str(args.samples), str(args.seconds), *(f"{op}:{K1}" for op in ops)],
                    dict(env, LD_PRELOAD=os.path.abspath(f"{args.build}/bench/nap.so")) if env else {}, 120, known[-1])
            for op in ops:
                cells += [f"{k[f'{op}:{K1}']:.1f}" if f"{op}:{K1}" in k else "-" for k in known]
            print("| " + " | ".join([split, *cells]) + " |", flush=True)
        print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--part", default="", help="of " + ",".join(PARTS) + "; any SITESxRANKS will do")
    parser.add_argument("--only", default="", help="operations, such as bcast,reduce")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5, help="of one row; a single operation may take more")
    parser.add_argument("--mixed", action="store_true", help="ours with both MPIs in one job only, not with each")
    args = parser.parse_args()
    args.lab = subprocess.run([f"{ROOT}/scripts/wanlab", "--sites", "2", "--", "true"], stdout=subprocess.DEVNULL).returncode == 0
    if not args.lab:
        print("no network namespaces here: only ours, over `emulate:` of the links\n")
    with tempfile.TemporaryDirectory() as args.tmp:
        for name in [p for p in args.part.split(",") if p] or PARTS:
            if name != "tables":
                Setting(args, name).show()
            elif args.lab:
                tables(args)


if __name__ == "__main__":
    main()
