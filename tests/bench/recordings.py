#!/usr/bin/env python3
"""recordings.py: record what real programs send from one site to another, for `make bench-codec`: LAMMPS with a melt and a solid
(Debian's lmp, over Open MPI), and the programs of tests/bench/fields.c. Prints the names of the recordings; what is there already is kept.

usage: recordings.py --build B --fields PROGRAM DIR
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIELDS = ("heat", "cavity", "cg", "transpose", "lattice")
HEATS = (("melt", "3"), ("solid", "0.05"))


def record(build, folder, mpi, command):
    """What the left site sends, as a file. None: the program failed; nothing of it is left."""
    out = f"{folder}/left-right.pacxrec"
    if os.path.exists(out):
        return out
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    p = subprocess.run([f"{build}/bin/pacxrun", "-n", "1+1", *mpi, "--record", folder, "--", *command],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, text=True)
    if p.returncode == 0:
        return out
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{' '.join(command)}: status {p.returncode}: {p.stdout}", file=sys.stderr)
    return None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default="build")
    a.add_argument("--fields", required=True)
    a.add_argument("dir")
    a = a.parse_args()
    jobs = [(name, (), [a.fields, name]) for name in FIELDS]
    if shutil.which("lmp"):
        jobs += [(name, ("--mpi", "openmpi"), ["lmp", "-in", f"{HERE}/in.halo", "-log", "none", "-var", "heat", heat]) for name, heat in HEATS]
    else:
        print("recordings.py: no lmp (Debian's lammps): no melt, no solid", file=sys.stderr)
    made = [record(a.build, f"{a.dir}/{name}", mpi, command) for name, mpi, command in jobs]
    print(*[m for m in made if m])
    return 0 if all(made) else 1


sys.exit(main())
