#!/usr/bin/env python3
"""link.py: make bench-link: what a link does, each figure next to a reference measured in the same run. Medians of --runs runs.

 1  one-way time of 1 byte, minus raw TCP (both sides poll)
 2  streaming, 1 KiB to 64 MiB, against raw TCP over loopback
 3  the same over an emulated wide area, 16 MiB, against raw TCP with 1 and 8 connections (root, scripts/wanlab)
 4  a path whose windows limit one stream: streams 1, 8, auto against raw TCP with 8 connections (root)
 5  rate of short messages from 8 ranks to 8 ranks, against 8 raw connections and flat MPI over TCP
 6  TLS against none where the wire is the limit, with the processor time of the daemons
 7  N senders to one receiver (PACX-MPI's Table V): daemons against direct sockets
 8  compression over 10 Mbit/s and 35 ms: time of an exchange against none, by kind of data

Rates are taken at the receiver, after a warm-up. Data is random, so that compression has nothing to do but to notice (but in 8).
Links have the default options, where the table does not say otherwise. Never fails because of a figure.
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KIB, MIB = 1 << 10, 1 << 20
MEGA = 1e6
SKIPPED = 77  # wanlab: not on this machine


def size_text(n):
    return f"{n >> 20} MiB" if n >= MIB else f"{n >> 10} KiB" if n >= KIB else f"{n} B"


def values(text):
    """Lines "NAME VALUE"."""
    pairs = (line.split() for line in text.splitlines())
    return {p[0]: float(p[1]) for p in pairs if len(p) == 2 and p[1][:1].isdigit()}


def med(samples):
    """The median of what there is: a run that failed gives None."""
    there = [s for s in samples if s is not None]
    return statistics.median(there) if there else None


def cell(value, text):
    return "-" if value is None else text.format(value)


def ratio(a, b):
    return a / b if a and b else None


class Table:
    def __init__(self, *heads):
        self.rows = [heads]

    def add(self, *cells):
        self.rows.append(cells)

    def show(self):
        width = [max(len(r[i]) for r in self.rows) for i in range(len(self.rows[0]))]
        for r in self.rows:
            print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, width))).rstrip())
        sys.stdout.flush()


class Place:
    """Two sites on loopback, or in the two namespaces of a lab."""

    def __init__(self, args, lab=False):
        self.build = os.path.join(ROOT, args.build)
        self.mpi = args.mpi
        self.lab = lab
        self.dir = tempfile.mkdtemp(prefix="bench-link-")
        self.failed = 0

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def at(self, i):
        return ["ip", "netns", "exec", os.environ[f"WANLAB_NS_{i}"]] if self.lab else []

    def addr(self, i):
        return os.environ[f"WANLAB_ADDR_{i}"] if self.lab else "127.0.0.1"

    def run(self, command, timeout=180, env=None):
        """The values that a command prints; {} when it fails, which is said."""
        try:
            p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=timeout, env=dict(os.environ, **(env or {})))
        except subprocess.TimeoutExpired:
            self.complain(command, f"not at its end after {timeout} s")
            return {}
        if p.returncode != 0:
            self.complain(command, f"exit status {p.returncode}\n{p.stderr[-2000:]}")
            return {}
        return values(p.stdout)

    def complain(self, command, why):
        self.failed += 1
        print(f"link.py: {' '.join(command)}: {why}", file=sys.stderr)

    def raw(self, size, warm, seconds, procs=1, conns=1, receivers=1):
        """bytes/s of raw TCP from site 0 to site 1: procs sending processes with conns connections each."""
        tool = f"{self.build}/bench/rawlink"
        per = procs * conns // receivers
        server = subprocess.Popen(
            [*self.at(1), tool, "receive", self.addr(1), str(receivers), str(per), str(warm), str(seconds), str(size)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        client = None
        try:
            port = server.stdout.readline().split()
            if len(port) != 2:
                return None
            client = subprocess.Popen([*self.at(0), tool, "send", self.addr(1), port[1], str(procs), str(conns), str(size)],
                                      stdin=subprocess.DEVNULL)
            out, _ = server.communicate(timeout=warm + seconds + 30)
            client.wait(timeout=60)
            return values(out).get("rate")
        except subprocess.TimeoutExpired:
            self.complain([tool], "not at its end in time")
            return None
        finally:
            for p in (server, client):
                if p and p.poll() is None:
                    p.kill()
                    p.wait()

    def iperf3(self, seconds, streams):
        """bytes/s, or None where it is not installed."""
        if not shutil.which("iperf3"):
            return None
        server = subprocess.Popen([*self.at(1), "iperf3", "-s", "-1", "-B", self.addr(1)], stdout=subprocess.PIPE, text=True)
        try:
            server.stdout.readline()
            p = subprocess.run([*self.at(0), "iperf3", "-c", self.addr(1), "-O", "1", "-t", str(seconds), "-P", str(streams), "-J"],
                               stdout=subprocess.PIPE, text=True, timeout=seconds + 30)
            return json.loads(p.stdout)["end"]["sum_received"]["bits_per_second"] / 8
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            return None
        finally:
            if server.poll() is None:
                server.kill()
            server.wait()

    def hostfile(self, ranks, mpi, link):
        path = os.path.join(self.dir, "hosts.yml")
        launch = {"openmpi": "mpirun.openmpi --oversubscribe --bind-to none --allow-run-as-root", "mpich": "mpirun.mpich -iface lo"}
        lines = ["job: bench", "sites:"]
        for i in range(2):
            start = f"{' '.join(self.at(i))} {launch[mpi[i]]} -np {{ranks}} {{app}} : -np {{daemons}} {{pacxd}}"
            lines += [f"  - {{name: site{i}, host: {self.addr(i)}, port: 31000, ranks: {ranks[i]}, mpi: {mpi[i]}, start: \"{start}\"}}"]
        if link:
            lines += ["links:", f"  - {{default: , {link}}}"]
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        return path

    def pacx(self, program, ranks=(1, 1), link="", mpi=None, env=None, timeout=180):
        """The values that link.c prints, and "streams" of the link from left to right."""
        mpi = mpi or (self.mpi, self.mpi)
        stats = os.path.join(self.dir, "stats.json")
        if self.lab:
            where = ["-f", self.hostfile(ranks, mpi, link)]
        else:
            where = ["-n", f"{ranks[0]}+{ranks[1]}", "--mpi", "+".join(mpi)] + (["--link", link] if link else [])
        out = self.run([f"{self.build}/bin/pacxrun", *where, "--stats", stats, "--", f"{self.build}/{{mpi}}/bench/link", *map(str, program)],
                       timeout=timeout, env=env)
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            with open(stats) as f:
                out["streams"] = streams_of(json.load(f))
            os.unlink(stats)
        return out

    def flat(self, program, ranks, mpi):
        """The same program as one job of a native MPI over TCP on loopback."""
        if mpi == "openmpi":
            launch = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                      "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1"]
        else:
            launch = ["env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "FI_PROVIDER=tcp", "mpirun.mpich"]
        return self.run([*launch, "-np", str(ranks), f"{self.build}/{mpi}/bench/link", *map(str, program)])


def streams_of(stats):
    """The largest number of streams of any link, wherever it is in the statistics."""
    if isinstance(stats, dict):
        return max([stats["streams"]] if isinstance(stats.get("streams"), int) else [], default=0) or max(
            (streams_of(v) for v in stats.values()), default=0)
    return max((streams_of(v) for v in stats), default=0) if isinstance(stats, list) else 0


def pairs(place):
    there = [m for m in ("openmpi", "mpich") if os.path.exists(f"{place.build}/{m}/bench/link")]
    return [(m, m) for m in there] + ([tuple(there)] if len(there) == 2 else [])


SECURITY = ("none", "tls")

# ---- the parts ----


def part1(place, runs):
    rounds = 3000
    seen, native, raws = {}, {}, []
    for _ in range(runs):
        raw = place.run([f"{place.build}/bench/rawtcp", str(rounds), "1"]).get("lat_us")
        raws.append(raw)
        for p in pairs(place):
            for sec in SECURITY:
                v = place.pacx(["latency", rounds], mpi=p, link=f"security: {sec}").get("lat_us")
                seen.setdefault((p, sec), []).append(v)
            if p[0] == p[1]:
                launch = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"] if p[0] == "openmpi" else ["mpirun.mpich"]
                native.setdefault(p, []).append(
                    place.run([*launch, "-np", "2", f"{place.build}/{p[0]}/bench/link", "latency", str(rounds)]).get("lat_us"))
    t = Table("sites (1+1 ranks)", "security", "1 B one way", "raw TCP", "added", "native MPI, one hop")
    for (p, sec), v in seen.items():
        t.add("+".join(p), sec, cell(med(v), "{:.1f} us"), cell(med(raws), "{:.1f} us"),
              cell(med([a - b if a and b else None for a, b in zip(v, raws)]), "{:+.1f} us"), cell(med(native.get(p, [])), "{:.1f} us"))
    t.show()


def part2(place, runs):
    sizes = [KIB, 8 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
    warm, seconds = 0.2, 0.5
    seen = {}
    for _ in range(runs):
        raw = {s: place.raw(s, warm, seconds) for s in sizes}
        got = {sec: place.pacx(["stream", 1, warm, seconds, *sizes], link=f"security: {sec}") for sec in SECURITY}
        for s in sizes:
            seen.setdefault(s, []).append((raw[s], [(got[k].get(f"rate_{s}"), got[k].get(f"cpu_{s}")) for k in SECURITY]))
    t = Table("message", "raw TCP, MB/s", *(f"{h}" for sec in SECURITY for h in (f"{sec}, MB/s", "of raw", "CPU s/GB")))
    for s, rows in seen.items():
        cells = []
        for k in range(len(SECURITY)):
            cells += [cell(ratio(med([r[1][k][0] for r in rows]), MEGA), "{:.0f}"),
                      cell(med([ratio(r[1][k][0], r[0]) for r in rows]), "{:.0%}"), cell(med([r[1][k][1] for r in rows]), "{:.2f}")]
        t.add(size_text(s), cell(ratio(med([r[0] for r in rows]), MEGA), "{:.0f}"), *cells)
    t.show()
    print("  (CPU: of all four daemons, for 10^9 bytes)")


def wide(place, runs, warm, seconds, size, links, raw_conns):
    """Rows of (name, rate, share of the best raw one, CPU s/GB, streams) over a lab's link."""
    raws = {n: [] for n in raw_conns}
    iperf = {n: [] for n in raw_conns}
    seen = {name: [] for name in links}
    for _ in range(runs):
        for n in raw_conns:
            raws[n].append(place.raw(size, warm, seconds, conns=n))
            iperf[n].append(place.iperf3(seconds, n))
        for name, (link, w) in links.items():
            seen[name].append(place.pacx(["stream", 1, w, seconds, size], link=link, env={"LINK_SERIES": "1"}, timeout=120))
    reference = {n: med(v) or med(iperf[n]) for n, v in raws.items()}
    last = raw_conns[-1]
    t = Table("", "MB/s", *(f"of raw -P {n}" for n in raw_conns), "CPU s/GB", "streams")
    for kind, got in (("raw TCP", raws), ("iperf3", iperf)):
        for n in raw_conns:
            if med(got[n]):
                t.add(f"{kind} -P {n}", f"{med(got[n]) / MEGA:.1f}", *(f"{med(got[n]) / reference[k]:.0%}" if reference[k] else "-" for k in raw_conns),
                      "", "")
    for name, rows in seen.items():
        rate = med([r.get(f"rate_{size}") for r in rows])
        t.add(name, cell(ratio(rate, MEGA), "{:.1f}"), *(cell(ratio(rate, reference[n]), "{:.0%}") for n in raw_conns),
              cell(med([r.get(f"cpu_{size}") for r in rows]), "{:.2f}"), cell(med([r.get("streams") for r in rows]), "{:.0f}"))
    t.show()
    return seen, reference[last]


def in_lab(args, part, options, **inside):
    """Run a part again inside a lab; False where there is none."""
    command = [f"{ROOT}/scripts/wanlab", *options, "--", sys.executable, os.path.abspath(__file__), "--build", args.build, "--runs", str(args.runs),
               "--mpi", args.mpi, "--inside", part] + [f"{k}={v}" for k, v in inside.items()]
    return subprocess.run(command, env=dict(os.environ, PACX_BUILD=args.build)).returncode


def part3(args):
    for rate, _, mtu in (r.partition("@") for r in args.rates):
        mtu = mtu or "1500"
        print(f"  -- {rate}, 10 ms one way, MTU {mtu}, messages of 16 MiB")
        sys.stdout.flush()
        if in_lab(args, "wide", ["--latency", "10ms", "--rate", rate, "--mtu", mtu]) == SKIPPED:
            return


def inside_wide(place, runs, _):
    wide(place, runs, 1.5, 3, 16 * MIB, {"PACX, defaults": ("", 3), "PACX, streams: 1": ("streams: 1", 1.5),
                                       "PACX, streams: 1, security: none": ("streams: 1, security: none", 1.5)}, (1, 8))


WINDOW = 160000  # bytes: about 4 MB/s for one stream at 20 ms


def part4(args):
    print(f"  -- 10 ms one way, 1 Gbit/s, socket buffers at most {WINDOW} bytes, messages of 4 MiB")
    sys.stdout.flush()
    in_lab(args, "window", ["--latency", "10ms", "--rate", "1Gbit/s", "--queue", "4MB"])


def inside_window(place, runs, _):
    for i in range(2):
        for key in ("tcp_rmem", "tcp_wmem"):
            subprocess.run([*place.at(i), "sysctl", "-qw", f"net.ipv4.{key}=4096 {WINDOW // 2} {WINDOW}"], check=True)
    seen, best = wide(place, runs, 2, 4, 4 * MIB, {"PACX, streams: 1": ("streams: 1", 1.5), "PACX, streams: 8": ("streams: 8", 1.5),
                                                     "PACX, streams: auto": ("streams: auto", 6)}, (1, 8))
    series = [{int(k.rsplit("_", 1)[1]): v for k, v in r.items() if k.startswith("series_")} for r in seen["PACX, streams: auto"]]
    steps = range(min((max(s) for s in series if s), default=0))
    print("  streams: auto, MB/s in each half second: " + " ".join(f"{med([s.get(i) for s in series]) / MEGA:.0f}" for i in steps
                                                                if med([s.get(i) for s in series])))
    first = next((i for i in steps if best and (med([s.get(i) for s in series]) or 0) > 0.9 * best), None)
    print("  90 % of raw -P 8 are reached " + ("not within the time measured" if first is None else f"after {(first + 1) / 2:.1f} s"))


def part5(place, runs):
    warm, seconds, n, size = 0.5, 1, 8, 8
    wire = size + 80  # what a message costs on a PACX link
    raws, flat, seen = [], [], {sec: [] for sec in SECURITY}
    for _ in range(runs):
        raws.append(place.raw(wire, warm, seconds, procs=n, receivers=n))
        flat.append(place.flat(["stream", n, warm, seconds, size], 2 * n, place.mpi).get(f"rate_{size}"))
        for sec in SECURITY:
            seen[sec].append(place.pacx(["stream", n, warm, seconds, size], ranks=(n, n), link=f"security: {sec}"))
    t = Table(f"{n} pairs of ranks, {size} B", "messages/s", "of raw", "of flat", "daemons' CPU us/message")
    raw, base = ratio(med(raws), wire), ratio(med(flat), size)
    t.add(f"raw TCP, a write and {wire} B each", cell(raw, "{:.0f}"), "100%", cell(ratio(raw, base), "{:.0%}"), "")
    t.add(f"flat {place.mpi} over TCP", cell(base, "{:.0f}"), cell(ratio(base, raw), "{:.0%}"), "100%", "")
    for sec, rows in seen.items():
        rate = ratio(med([r.get(f"rate_{size}") for r in rows]), size)
        cpu = med([r.get(f"cpu_{size}") for r in rows])
        t.add(f"PACX, security: {sec}", cell(rate, "{:.0f}"), cell(ratio(rate, raw), "{:.0%}"), cell(ratio(rate, base), "{:.0%}"),
              cell(cpu and cpu * size / 1e3, "{:.2f}"))
    t.show()


def part6(args):
    print("  -- 200 Mbit/s, 10 ms one way, messages of 16 MiB")
    sys.stdout.flush()
    if in_lab(args, "tls", ["--latency", "10ms", "--rate", "200Mbit/s"]) == SKIPPED:
        print("  without root: the daemons slow themselves down (emulate:), no raw reference")
        with opened(args) as place:
            compare_tls(place, args.runs, "emulate: {latency: 10ms, rate: 200Mbit/s}, ", ())


def inside_tls(place, runs, _):
    compare_tls(place, runs, "", (1,))


def compare_tls(place, runs, link, raw_conns):
    wide(place, runs, 1.5, 3, 16 * MIB, {f"PACX, security: {s}": (f"{link}streams: 1, security: {s}", 1.5) for s in SECURITY}, raw_conns)


def senders(place, runs, sizes, warm, seconds):
    t = Table("message", "senders", "direct sockets, MB/s", "PACX tls, MB/s", "of direct", "PACX none, MB/s", "of direct")
    for size in sizes:
        for n in (1, 2, 4, 8):
            raws, seen = [], {sec: [] for sec in SECURITY}
            for _ in range(runs):
                raws.append(place.raw(size, warm, seconds, procs=n))
                for sec in SECURITY:
                    seen[sec].append(place.pacx(["stream", n, warm, seconds, size], ranks=(n, 1), link=f"security: {sec}").get(f"rate_{size}"))
            raw = med(raws)
            cells = []
            for sec in ("tls", "none"):
                cells += [cell(ratio(med(seen[sec]), MEGA), "{:.1f}"), cell(med([ratio(a, b) for a, b in zip(seen[sec], raws)]), "{:.0%}")]
            t.add(size_text(size), str(n), cell(ratio(raw, MEGA), "{:.1f}"), *cells)
    t.show()


def part7(args):
    runs = max(1, args.runs - 2)
    print("  -- loopback")
    with opened(args) as place:
        senders(place, runs, (KIB, MIB), 0.3, 0.7)
    print("  -- 200 Mbit/s, 10 ms one way")
    sys.stdout.flush()
    in_lab(args, "senders", ["--latency", "10ms", "--rate", "200Mbit/s"])


def inside_senders(place, _runs, _):
    senders(place, 1, (64 * KIB,), 1, 2)


def lammps_dump(place):
    """A binary dump of LAMMPS itself, where it is installed: id type xs ys zs of 32,000 atoms of a melt, as doubles."""
    path = os.path.join(place.dir, "dump.bin")
    with open(f"{ROOT}/tests/apps/in.melt") as f:
        text = f.read().replace("processors", "#").replace("block 0 10 0 10 0 10", "block 0 20 0 20 0 20").replace("run\t\t250", "")
    script = os.path.join(place.dir, "in.dump")
    with open(script, "w") as f:
        f.write(text + f"\nrun 100\nwrite_dump all atom {path}\n")
    if not shutil.which("lmp"):
        return None
    subprocess.run(["lmp", "-in", script, "-log", "none"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=place.dir)
    return path if os.path.exists(path) else None


def part8(place, _runs):
    kinds = {"random": "random", "text": "text", "smooth": "smooth field, doubles", "singles": "the same, singles as doubles", "front": "front in a field at rest",
             "atoms": "positions and velocities, doubles", "dump": "LAMMPS dump, by formula"}
    words = list(kinds)
    dump = lammps_dump(place)
    if dump:
        kinds["file"] = "LAMMPS dump of a melt"
        words.append(f"file:{dump}:8")
    modes = ("none", "auto", "lz4", "zstd")
    seen = {m: place.pacx(["exchange", 3, MIB, *words], link=f"compress: {m}, streams: 1, emulate: {{latency: 35ms, rate: 10Mbit/s}}", timeout=200) for m in modes}
    t = Table("exchange of 1 MiB", "wire alone", "none", *(h for m in modes[1:] for h in (m, "faster")), "auto, first one")
    for k, name in kinds.items():
        none = seen["none"].get(f"time_{k}")
        wire = seen["none"].get(f"bytes_{k}", 0) / 1.25e6 + 0.035
        cells = []
        for m in modes[1:]:
            v = seen[m].get(f"time_{k}")
            cells += [cell(v, "{:.3f} s"), cell(ratio(none, v), "{:.2f} x")]
        t.add(name, f"{wire:.3f} s", cell(none, "{:.3f} s"), *cells, cell(ratio(seen["none"].get(f"first_{k}"), seen["auto"].get(f"first_{k}")), "{:.2f} x"))
    t.show()


@contextlib.contextmanager
def opened(args, lab=False):
    place = Place(args, lab)
    try:
        yield place
    finally:
        place.close()
        args.failed += place.failed


INSIDE = {"wide": inside_wide, "window": inside_window, "tls": inside_tls, "senders": inside_senders}
PARTS = {1: part1, 2: part2, 3: part3, 4: part4, 5: part5, 6: part6, 7: part7, 8: part8}
TITLES = {int(line[1]): line[4:] for line in __doc__.splitlines() if line[:1] == " " and line[1:2].isdigit()}
LABS = (3, 4, 6, 7)  # they make their own places


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--part", default="", help="numbers of parts, such as 3 or 1,2")
    parser.add_argument("--mpi", default="openmpi" if shutil.which("mpirun.openmpi") else "mpich", help="of both sites, in all parts but 1")
    parser.add_argument("--rates", default="1Gbit/s,1Gbit/s@9000,200Mbit/s",
                        help="of part 3, RATE or RATE@MTU: large packets leave more of the processors to the daemons")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.failed = 0
    args.rates = args.rates.split(",")
    if args.inside:
        with opened(args, lab=True) as place:
            INSIDE[args.inside[0]](place, args.runs, args.inside[1:])
        sys.exit(1 if args.failed else 0)
    for n in [int(p) for p in args.part.split(",") if p] or PARTS:
        print(f"{n}. {TITLES[n]}   [load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores]")
        sys.stdout.flush()
        if n in LABS:
            PARTS[n](args)
        else:
            with opened(args) as place:
                PARTS[n](place, args.runs)
        print()
    sys.exit(1 if args.failed else 0)


if __name__ == "__main__":
    main()
