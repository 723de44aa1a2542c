#!/usr/bin/env python3
"""roots.py: the MPI test programs in worlds whose sites have different versions of MPI; speaks the protocol of tests/run.

usage: tests/mpi/roots.py [--roots DIR] [--build DIR] [--only WORLD] [PROGRAM...]

The sites are private roots of Debian's releases on this machine (scripts/mpi_roots; made below DIR, build/roots, when they
are not there). PACX is built in each, and the start command of a site enters its root. A world is "flavour@suite+flavour@suite+...".
"""
import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import matrix  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITES = ("bookworm", "trixie", "sid")
WORLDS = ["openmpi@bookworm+openmpi@trixie+openmpi@sid", "mpich@bookworm+mpich@trixie+mpich@sid", "mpich@sid+openmpi@trixie+mpich@bookworm"]
# What a vendor's version cannot do by itself, with one site.
BROKEN = {("openmpi-4.1.4", "rma_cas"): "Open MPI 4.1.4 crashes in MPI_Compare_and_swap over shared memory"}


def enter(roots, suite, *command, **kw):
    return subprocess.run([f"{ROOT}/scripts/mpi_roots", "enter", f"{roots}/{suite}", *command], **kw)


def prepare(roots, suite, names):
    """Make a root and build PACX in it, with these programs or all. None, or why there is none."""
    os.makedirs(roots, exist_ok=True)
    made = subprocess.run([f"{ROOT}/scripts/mpi_roots", "make", roots, suite], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        return (made.stdout.strip() or "no root").splitlines()[-1]
    programs = [f"build/in-{suite}/{f}/tests/{n}" for n in names for f in ("openmpi", "mpich")] or ["mpi-tests"]
    built = enter(roots, suite, "make", "-C", "/pacx", "-j", str(os.cpu_count()), f"B=build/in-{suite}", "all", *programs,
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if built.returncode:
        raise SystemExit(f"PACX cannot be built in {suite}:\n" + "\n".join(built.stdout.splitlines()[-30:]))
    return None


def identity(suite, flavour):
    with open(f"{ROOT}/build/in-{suite}/lib/pacx/{flavour}.mpi") as f:
        return re.search(r"^identity: (.*)$", f.read(), re.M)[1]


def hostfile(roots, world, name, folder):
    """One rank per site, two at the first."""
    held, lines = [], ["sites:"]
    for i, site in enumerate(world.split("+")):
        flavour, suite = site.split("@")
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        held.append(s)
        # The launcher of Open MPI 5.0.7 dies of two programs in one line: one program, of whose ranks some become daemons.
        more = "--oversubscribe --bind-to none --allow-run-as-root " if flavour == "openmpi" else ""
        lines.append(f"  - {{name: s{i}, host: 127.0.0.1, port: {s.getsockname()[1]}, ranks: {2 if i == 0 else 1}, mpi: {flavour}, "
                     f"prefix: /pacx/build/in-{suite}, exe: /pacx/build/in-{suite}/{flavour}/tests/{name}, "
                     f"start: '{ROOT}/scripts/mpi_roots enter {roots}/{suite} mpirun.{flavour} {more}-np {{procs}} {{app}}'}}")
    with open(f"{folder}/hosts.yml", "w") as f:
        f.write("\n".join(lines) + "\n")
    return held


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roots", default=f"{ROOT}/build/roots")
    parser.add_argument("--build", default=f"{ROOT}/build")
    parser.add_argument("--only", action="append", help="world (may be repeated)")
    parser.add_argument("--deadline", type=float, default=90)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    worlds = args.only or WORLDS
    wanted = [s for s in SUITES if any(f"@{s}" in w for w in worlds)]
    missing = {s: why for s in wanted for why in [prepare(os.path.abspath(args.roots), s, args.names)] if why}
    names = args.names or matrix.programs(args.build)[1]
    print(f"1..{len(worlds) * len(names)}")
    failed = 0
    for world in worlds:
        absent = [missing[s] for s in missing if f"@{s}" in world]
        for name in names:
            broken = [] if absent else [BROKEN[k] for site in world.split("+")
                                        for k in [(identity(*reversed(site.split("@"))), name)] if k in BROKEN and world.count("@") == 1]
            label = f"{name}@{world.replace('@', '-')}"
            if absent or broken:
                print(f"skip {label}: {(absent or broken)[0]}", flush=True)
                continue
            with tempfile.TemporaryDirectory(prefix="pacx-roots-") as folder:
                held = hostfile(os.path.abspath(args.roots), world, name, folder)
                good, text, seconds = matrix.verdict_of([f"{args.build}/bin/pacxrun", "-f", f"{folder}/hosts.yml"], None, args.deadline, name in matrix.SAYS)
                for s in held:
                    s.close()
            failed += matrix.report(label, good, text, seconds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
