#!/usr/bin/env python3
"""check.py: MPI programs on worlds of unlike sites: native ones, 32 bits (i386), big-endian (s390x) and aarch64 (arm64) under qemu. Protocol of tests/run.

usage: tests/unlike/check.py [--build DIR] [--only WORLD] [PROGRAM...]

A world is "FLAVOUR:RANKS+...", of openmpi, mpich, i386, s390x, arm64, arm64ompi (with Open MPI; the others have MPICH). Every world of a native and a
foreign site has to say at its start what differs and what that costs. PROGRAM/carried runs with the files at the first site, PROGRAM/predicted
with links that predict and compress, misfit:WAY has to fail with a word that names the value that does not fit. Programs are those of tests/mpi,
and of this folder. A world of one foreign machine alone has no MPI: "vectors", the golden vectors through its decoder, "doctor", where pacxctl
of this machine asks that of the other one, and unit tests. The foreign trees are made by tree.sh in DIR/unlike, and PACX is built for them
there; what cannot be had is skipped.
"""
import argparse
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/mpi")
import matrix  # noqa: E402

# Flavour: machine, and its MPI.
FOREIGN = {"i386": ("i386", "mpich"), "s390x": ("s390x", "mpich"), "arm64": ("arm64", "mpich"), "arm64ompi": ("arm64", "openmpi")}
# Ranks under qemu: no cross-memory attach, and no memory shared with the launcher, whose locks are of other sizes.
OMPI = ("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader "
        "OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 mpirun.openmpi --oversubscribe --bind-to none")
LOUD = {name: re.compile("") for name in ("values", "external")}  # in which PACX names what does not fit
# Everything that goes between sites by value: the i386 site runs as fast as any, so it gets all; under qemu there are few.
MANY = ["values", "typed", "typed_coll", "smooth/predicted", "f_typed", "external", "coupled", "collectives", "icollectives", "neighbor", "p2p_any", "p2p_modes", "p2p_order", "probe", "sendrecv",
        "requests", "cancel", "comms", "rma_typed", "rma_cas", "files_rep", "groups", "topo", "attrs", "lifetimes", "middle", "bigcount",
        "flow", "pending", "threads", "truncate", "refused"]
MISFITS = [f"misfit:{way}" for way in ("blocking", "nonblocking", "persistent", "any_source", "waitall", "matched", "bcast", "ibcast", "gather", "allgather",
                                       "alltoall", "allreduce", "put", "accumulate", "get")]
# Decoded, converted, compressed and kept on a machine as on any other. (Not those that start programs of their own: qemu does not.)
UNITS = [f"{n}_test" for n in ("auto_codec", "base", "codec", "convert", "crowd", "history", "hostfile", "hostfile_words", "key", "lossy", "map", "outq",
                               "predict", "proof", "ranks", "recording", "records", "tls_handshake", "wire")]
ALONE = ["vectors", "doctor"] + UNITS
# What a native site says of a foreign one.
SAID = {"i386": ["long has 32 bits, not 64: values beyond 2^31 are errors there", "MPI_Aint has 32 bits", "long double takes 12 bytes, not 16"],
        "s390x": ["bytes are in big-endian order: receivers reverse all numbers but bytes", "long double is IEEE's 128 bits, not x87's 80 bits: rounded"],
        "arm64": ["long double is IEEE's 128 bits, not x87's 80 bits: rounded to the nearest value"]}
NAMED = re.compile(r"rank \d+: .*rank \d+ \(site \w+\).* element \d+ is 1099511627776, which does not fit into the long of this site, of 4 bytes")
SAID["arm64ompi"] = SAID["arm64"]
RUNS = [(arch, ALONE) for arch in ("i386", "s390x", "arm64")] + [
        ("openmpi:2+mpich:2", ["coupled"]),
        ("openmpi:2+i386:2", MANY + MISFITS),
        ("i386:2+mpich:2", ["values", "typed", "typed_coll", "f_typed", "external", "collectives", "rma_typed", "partition"]),
        ("openmpi:1+i386:2+mpich:2", ["typed", "typed_coll", "collectives", "icollectives", "neighbor", "rma_typed", "files_rep/carried"]),
        ("openmpi:2+s390x:2", ["values", "typed", "typed_coll", "smooth/predicted", "f_typed", "external", "coupled", "collectives", "rma_typed", "rma_sync", "files_rep", "files_rep/carried"]),
        ("s390x:2+mpich:2", ["typed", "typed_coll", "partition", "collectives", "coupled"]),
        ("openmpi:2+arm64:2", ["values", "typed", "typed_coll", "smooth/predicted", "f_typed", "external", "coupled", "collectives", "rma_typed", "rma_cas", "files_rep", "files_rep/carried"]),
        ("mpich:2+arm64:2", ["typed", "collectives", "coupled"]),
        ("mpich:2+arm64ompi:2", ["values", "typed", "typed_coll", "f_typed", "coupled", "collectives", "rma_typed"]),
        ("i386:2+s390x:2", ["values", "typed", "typed_coll", "rma_typed"]),
        ("openmpi:1+mpich:1+i386:1+s390x:1", ["values", "typed", "typed_coll", "f_typed", "external", "coupled", "collectives", "neighbor", "rma_typed", "files_rep"])]


def sh(command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)


class Foreign:
    """A machine unlike this one: its tree, PACX for it, test programs for it."""

    def __init__(self, build, flavour):
        self.flavour = flavour
        arch, self.mpi = FOREIGN[flavour]
        self.tree, self.arch = f"{build}/unlike", arch
        self.bin = f"{self.tree}/bin-{arch}"
        self.pacx = f"{self.tree}/pacx-{arch}"
        self.why = None

    def make(self, alone):
        made = sh([f"{ROOT}/tests/unlike/tree.sh", self.tree, self.arch])
        if made.returncode == 77:
            self.why = made.stdout.strip().splitlines()[-1]
            return
        if made.returncode:
            raise SystemExit(f"tree.sh {self.arch}:\n{made.stdout}")
        env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}")
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            env.pop(name, None)
        vendors = "mpich openmpi" if self.arch == "arm64" else "mpich"
        parts = [f"lib/libpacx-{self.mpi}.so", f"lib/pacx/pacxd-{self.mpi}", f"lib/pacx/{self.mpi}.mpi", "bin/pacxd"]
        if alone:
            parts += ["bin/pacxctl", "tests/decode"] + [f"tests/{u}" for u in UNITS]
        made = sh(["make", "-j2", "-C", ROOT, f"B={self.pacx}", f"VENDORS={vendors}", "CC=gcc", "SAN=", "OPT=-O2 -Wno-psabi"]
                  + [f"{self.pacx}/{p}" for p in parts], env=env)
        if made.returncode:
            raise SystemExit(f"PACX for {self.arch}:\n{made.stdout}")

    def program(self, source):
        exe = f"{self.tree}/tests-{self.flavour}/{os.path.basename(source).split('.')[0]}"
        if stale(exe, source):
            os.makedirs(os.path.dirname(exe), exist_ok=True)
            compile_mpi(f"{self.bin}/", self.mpi, source, exe)
        return exe

    def start(self, exe):
        run = f"{self.bin}/run"
        mpirun = "mpirun.mpich" if self.mpi == "mpich" else OMPI
        return f"{mpirun} -np {{ranks}} {run} env {{env}} {exe} : -np {{daemons}} {run} {{pacxd}}"


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


def hostfile(world, name, argument, how, foreign):
    text = "deadlines: {start: 120s}\n" + (f"files: {world.split(':')[0]}0\n" if how == "carried" else "")
    text += ("links: [{default: , compress: zstd, predict: always}]\n" if how == "predicted" else "") + "sites:\n"
    for i, site in enumerate(world.split("+")):
        flavour, ranks = site.split(":")
        text += f"  - {{name: {flavour}{i}, host: 127.0.0.1, port: 0, ranks: {ranks}, mpi: {foreign[flavour].mpi if flavour in foreign else flavour}"
        if flavour in foreign:
            f = foreign[flavour]
            text += f", prefix: '{f.pacx}', start: '{f.start(f'{f.program(source_of(name))} {argument}')}'"
        text += "}\n"
    return text


def alone(build, f, name, deadline):
    """What machine f does without MPI: (good, text, seconds)."""
    start = time.monotonic()
    if name == "doctor":
        return doctor(build, f, deadline)
    command = ["tests/wire/check_vectors.py", f"{f.bin}/run", f"{f.pacx}/tests/decode"] if name == "vectors" else [f"{f.bin}/run", f"{f.pacx}/tests/{name}"]
    try:
        done = sh(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=deadline)
    except subprocess.TimeoutExpired as e:
        return False, f"not finished after {deadline} s\n{e.stdout}", deadline
    return done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}", time.monotonic() - start


def doctor(build, f, deadline):
    """pacxctl of this machine tests the way to pacxctl answer on machine f, which has to say what differs there."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pacx-unlike-") as tmp, socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        hosts = f"{tmp}/hosts.yml"
        with open(hosts, "w", encoding="utf-8") as out:
            out.write("job: j\nsites: [{name: here, ranks: 1, listen: no}, "
                      f"{{name: there, ranks: 1, host: 127.0.0.1, port: {held.getsockname()[1]}}}]\n")
        held.close()
        with subprocess.Popen([f"{f.bin}/run", f"{f.pacx}/bin/pacxctl", "answer", "-f", hosts, "--site", "there", "--for", "2m"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as answer:
            line = answer.stdout.readline()
            while line and "listens on" not in line:
                line = answer.stdout.readline()
            done = sh([f"{build}/bin/pacxctl", "doctor", "-f", hosts, "--site", "here"], stdin=subprocess.DEVNULL, timeout=deadline)
            answer.terminate()
            rest = answer.communicate()[0]
    good = done.returncode == 0 and f"stored unlike here: at site there {SAID[f.flavour][0]}" in done.stdout and all(w in done.stdout for w in SAID[f.flavour])
    return good, f"exit status {done.returncode}\n{done.stdout}{rest}", time.monotonic() - start


def unsaid(world, foreign, text):
    """What the start of a world should have said of its sites, and has not."""
    sites = [s.split(":")[0] for s in world.split("+")]
    lines = [next((l for l in text.splitlines() if f"site {s}{i} stores data unlike site {sites[0]}0: there " in l), "")
             for i, s in enumerate(sites)]
    return [w for s, l in zip(sites, lines) if s in foreign and sites[0] not in foreign for w in SAID[s] if w not in l]


def run(build, world, name, foreign, deadline):
    name, _, how = name.partition("/")
    name, _, argument = name.partition(":")
    if world in foreign:
        return alone(build, foreign[world], name, deadline)
    for site in world.split("+"):
        if site.split(":")[0] not in foreign:
            native(build, site.split(":")[0], name)
    with tempfile.TemporaryDirectory(prefix="pacx-unlike-") as tmp:
        with open(f"{tmp}/hosts.yml", "w", encoding="utf-8") as f:
            f.write(hostfile(world, name, argument, how, foreign))
        command = [f"{build}/bin/pacxrun", "-f", f"{tmp}/hosts.yml", "--stats", f"{tmp}/stats", "--", f"{build}/unlike/tests-{{mpi}}/{name}", *argument.split()]
        good, text, seconds = matrix.verdict_of(command, None, deadline, LOUD.get(name, matrix.SAYS.get(name)))
        if good and how == "predicted":
            with open(f"{tmp}/stats", encoding="utf-8") as f:
                kinds = [set(link["predicted"]) for link in json.load(f)["links"]]
            good, text = all("weighted" in k for k in kinds), f"{text}\npredicted: {kinds}"
    if argument:
        good = bool(NAMED.search(text)) and "exit status 0" not in text
    lacking = unsaid(world, foreign, text)
    if good and lacking:
        return False, text + "\nnot said at the start: " + "; ".join(lacking), seconds
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
        f.make(any(w == f.flavour for w, _ in runs))
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
