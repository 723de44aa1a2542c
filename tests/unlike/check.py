#!/usr/bin/env python3
"""check.py: MPI programs on worlds of unlike sites: native ones, 32 bits (i386), big-endian (s390x) and aarch64 (arm64) under qemu. Protocol of tests/run.

usage: tests/unlike/check.py [--build DIR] [--only WORLD] [PROGRAM...]

A world is "FLAVOUR:RANKS+...", of openmpi, mpich, i386, s390x, arm64; PROGRAM/carried runs with the files at the first site, misfit:WAY has
to fail with a word that names the value that does not fit. The foreign trees are made by tree.sh in DIR/unlike, and PACX is built
for them there; what cannot be had is skipped. Programs are those of tests/mpi, and of this folder.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/mpi")
import matrix  # noqa: E402

FOREIGN = ("i386", "s390x", "arm64")
LOUD = {"values", "external"}  # in which PACX names what does not fit
# Everything that goes between sites by value: the i386 site runs as fast as any, so it gets all; under qemu there are few.
MANY = ["values", "typed", "f_typed", "external", "coupled", "collectives", "icollectives", "neighbor", "p2p_any", "p2p_modes", "p2p_order", "probe", "sendrecv",
        "requests", "cancel", "comms", "rma_typed", "rma_cas", "files_rep", "groups", "topo", "attrs", "lifetimes", "middle", "bigcount",
        "flow", "pending", "threads", "truncate", "refused"]
MISFITS = [f"misfit:{way}" for way in ("blocking", "nonblocking", "persistent", "any_source", "waitall", "matched", "bcast", "ibcast", "gather", "allgather",
                                       "alltoall", "allreduce", "put", "accumulate", "get")]
NAMED = re.compile(r"rank \d+: .*rank \d+ \(site \w+\).* element \d+ is 1099511627776, which does not fit into the long of this site, of 4 bytes")
RUNS = [("openmpi:2+mpich:2", ["coupled"]),
        ("openmpi:2+i386:2", MANY + MISFITS),
        ("i386:2+mpich:2", ["values", "typed", "f_typed", "external", "collectives", "rma_typed"]),
        ("openmpi:1+i386:2+mpich:2", ["typed", "collectives", "icollectives", "neighbor", "rma_typed", "files_rep/carried"]),
        ("openmpi:2+s390x:2", ["values", "typed", "f_typed", "external", "coupled", "rma_typed", "rma_sync", "files_rep", "files_rep/carried"]),
        ("s390x:2+mpich:2", ["typed", "collectives", "coupled"]),
        ("openmpi:2+arm64:2", ["values", "typed", "f_typed", "external", "coupled", "collectives", "rma_typed", "rma_cas", "files_rep", "files_rep/carried"]),
        ("mpich:2+arm64:2", ["typed", "collectives", "coupled"]),
        ("i386:2+s390x:2", ["values", "typed", "rma_typed"]),
        ("openmpi:1+mpich:1+i386:1+s390x:1", ["typed", "f_typed", "external", "coupled", "collectives", "neighbor", "rma_typed", "files_rep"])]


def sh(command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)


class Foreign:
    """A machine unlike this one: its tree, PACX for it, test programs for it."""

    def __init__(self, build, arch):
        self.tree, self.arch = f"{build}/unlike", arch
        self.bin = f"{self.tree}/bin-{arch}"
        self.pacx = f"{self.tree}/pacx-{arch}"
        self.why = None

    def make(self):
        made = sh([f"{ROOT}/tests/unlike/tree.sh", self.tree, self.arch])
        if made.returncode == 77:
            self.why = made.stdout.strip().splitlines()[-1]
            return
        if made.returncode:
            raise SystemExit(f"tree.sh {self.arch}:\n{made.stdout}")
        env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}")
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            env.pop(name, None)
        parts = ["lib/libpacx-mpich.so", "lib/pacx/pacxd-mpich", "bin/pacxd"]
        made = sh(["make", "-j2", "-C", ROOT, f"B={self.pacx}", "VENDORS=mpich", "CC=gcc", "SAN=", "OPT=-O2 -Wno-psabi"]
                  + [f"{self.pacx}/{p}" for p in parts], env=env)
        if made.returncode:
            raise SystemExit(f"PACX for {self.arch}:\n{made.stdout}")

    def program(self, source):
        exe = f"{self.tree}/tests-{self.arch}/{os.path.basename(source).split('.')[0]}"
        if stale(exe, source):
            os.makedirs(os.path.dirname(exe), exist_ok=True)
            compile_mpi(f"{self.bin}/", "mpich", source, exe)
        return exe

    def start(self, exe):
        run = f"{self.bin}/run"
        return f"mpirun.mpich -np {{ranks}} {run} env {{env}} {exe} : -np {{daemons}} {run} {{pacxd}}"


def stale(exe, source):
    made_of = [source] + glob.glob(f"{ROOT}/tests/mpi/*.h")
    return not os.path.exists(exe) or os.path.getmtime(exe) < max(map(os.path.getmtime, made_of))


def compile_mpi(where, flavour, source, exe):
    if source.endswith(".f90"):
        made = sh([f"{where}mpif90.{flavour}", "-O1", "-w", "-fallow-argument-mismatch", "-o", exe, source])
    else:
        made = sh([f"{where}mpicc.{flavour}", "-std=c11", "-D_GNU_SOURCE", "-O1", "-w", "-iquote", f"{ROOT}/tests/mpi", "-o", exe, source, "-lm", "-pthread"])
    if made.returncode:
        raise SystemExit(f"{source}:\n{made.stdout}")


def source_of(name):
    here = glob.glob(f"{ROOT}/tests/unlike/{name}.[cf]*")
    return here[0] if here else f"{ROOT}/tests/mpi/{name}.c"


def native(build, flavour, name):
    exe = f"{build}/unlike/tests-{flavour}/{name}"
    if stale(exe, source_of(name)):
        os.makedirs(os.path.dirname(exe), exist_ok=True)
        compile_mpi("", flavour, source_of(name), exe)
    return exe


def hostfile(build, world, name, argument, carried, foreign):
    text = "deadlines: {start: 120s}\n" + (f"files: {world.split(':')[0]}0\n" if carried else "") + "sites:\n"
    for i, site in enumerate(world.split("+")):
        flavour, ranks = site.split(":")
        text += f"  - {{name: {flavour}{i}, host: 127.0.0.1, port: 0, ranks: {ranks}, mpi: {'mpich' if flavour in foreign else flavour}"
        if flavour in foreign:
            f = foreign[flavour]
            text += f", prefix: '{f.pacx}', start: '{f.start(f'{f.program(source_of(name))} {argument}')}'"
        text += "}\n"
    return text


def run(build, world, name, foreign, deadline):
    name, _, carried = name.partition("/")
    name, _, argument = name.partition(":")
    for site in world.split("+"):
        if site.split(":")[0] not in foreign:
            native(build, site.split(":")[0], name)
    with tempfile.TemporaryDirectory(prefix="pacx-unlike-") as tmp:
        with open(f"{tmp}/hosts.yml", "w", encoding="utf-8") as f:
            f.write(hostfile(build, world, name, argument, carried, foreign))
        command = [f"{build}/bin/pacxrun", "-f", f"{tmp}/hosts.yml", "--", f"{build}/unlike/tests-{{mpi}}/{name}", *argument.split()]
        good, text, seconds = matrix.verdict_of(command, None, deadline, name in matrix.SAYS or name in LOUD)
    if argument:
        good = bool(NAMED.search(text)) and "exit status 0" not in text
    return good, text, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", action="append", help="world (may be repeated)")
    parser.add_argument("--deadline", type=float, default=240)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    known = dict(RUNS)
    runs = [(w, n) for w in args.only or known for n in args.names or known[w]]
    machines = {s.split(":")[0] for w, _ in runs for s in w.split("+")}
    foreign = {a: Foreign(build, a) for a in FOREIGN if a in machines}
    for f in foreign.values():
        f.make()
    print(f"1..{len(runs)}", flush=True)
    failed = 0
    for world, name in runs:
        label = f"{name}@{world.replace(':', '/')}"
        parts = [s.split(":")[0] for s in world.split("+")]
        lacking = [foreign[p].why for p in parts if p in foreign and foreign[p].why]
        lacking += [f"no {p} here" for p in parts if p not in foreign and not shutil.which(f"mpicc.{p}")]
        if lacking:
            print(f"skip {label}: {lacking[0]}", flush=True)
            continue
        failed += matrix.report(label, *run(build, world, name, foreign, args.deadline))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
