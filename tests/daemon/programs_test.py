#!/usr/bin/env python3
"""programs_test.py: several programs in one job: MPI_APPNUM and the other predefined attributes describe the coupled job; speaks the
protocol of tests/run."""
import re
import shutil
import subprocess
import tempfile

import sites
from sites import BUILD, Skipped, flavors, mpmd

LINE = re.compile(r"^rank (\d+) appnum (\d+) of (\d+) universe (\d+) global (\d+) host none io any$", re.M)


def run(args, hostfile=None, **files):
    """What each rank prints: (appnum, ranks with this number, universe size, is wtime global), in rank order."""
    with tempfile.TemporaryDirectory() as tmp:
        for name, flavor in files.items():
            shutil.copy(f"{BUILD}/{flavor}/tests/programs", f"{tmp}/{name}")
        if hostfile:
            with open(f"{tmp}/hosts.yml", "w") as f:
                f.write(hostfile.replace("@", tmp))
            args = ["-f", f"{tmp}/hosts.yml", *args]
        p = subprocess.run([f"{BUILD}/bin/pacxrun", *[a.replace("@", tmp) for a in args]], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True)
    ranks = sorted((int(r), int(a), int(n), int(u), int(g)) for r, a, n, u, g in LINE.findall(p.stdout))
    if p.returncode or [r[0] for r in ranks] != list(range(len(ranks))):
        raise AssertionError(f"status {p.returncode}\n{p.stdout}")
    return [r[1:] for r in ranks]


def equal(got, want):
    if got != want:
        raise AssertionError(f"expected {want}, got {got}")


def one_program_is_one_number_whatever_its_vendor():
    mpi = "+".join(flavors() * 2)
    n = len(flavors() * 2)
    equal(run(["-n", "+".join(["2"] * n), "--mpi", mpi, "--", f"{BUILD}/{{mpi}}/tests/programs"]), [(0, 2 * n, 2 * n, 0)] * 2 * n)


def a_program_per_site_has_a_number_each():
    a, b = flavors()[0], flavors()[-1]
    sites = f"""sites:
  - {{name: ocean, ranks: 2, mpi: {a}, exe: "@/ocean"}}
  - {{name: air, ranks: 1, mpi: {b}, exe: "@/air"}}
  - {{name: ocean2, ranks: 1, mpi: {a}, exe: "@/ocean"}}
"""
    equal(run(["--", "x"], sites, ocean=a, air=b), [(0, 3, 4, 0)] * 2 + [(1, 1, 4, 0), (0, 3, 4, 0)])


def other_arguments_are_another_program():
    a = flavors()[0]
    sites = f"""sites:
  - {{name: left, ranks: 1, mpi: {a}, args: [one]}}
  - {{name: right, ranks: 2, mpi: {a}, args: [two]}}
"""
    equal(run(["--", "@/ocean"], sites, ocean=a), [(0, 1, 3, 0), (1, 2, 3, 0), (1, 2, 3, 0)])


def several_programs_at_a_site(order):
    """The daemons are a context of their own, in front or behind; `ocean` at the second site is the first one's."""
    a, b = flavors()[0], flavors()[-1]
    if not mpmd(a):
        raise Skipped(f"the launcher of this {a} dies of several programs in one line")
    daemons = "-np {daemons} {pacxd}"
    left, right = "-np 1 env {env} @/ocean : -np 1 env {env} @/air : -np 1 env {env} @/air", "-np 1 env {env} @/soil : -np 1 env {env} @/ocean"
    both = [f"{daemons} : {x}" if order == "first" else f"{x} : {daemons}" for x in (left, right)]
    host = [f"mpirun.{m} {'--oversubscribe --bind-to none --allow-run-as-root' if m == 'openmpi' else ''} {x}"
            for m, x in zip((a, a), both)]
    sites = f"""sites:
  - {{name: left, ranks: 3, mpi: {a}, daemons: {order}, start: "{host[0]}"}}
  - {{name: right, ranks: 2, mpi: {a}, daemons: {order}, start: "{host[1]}"}}
"""
    equal(run(["--", "x"], sites, ocean=a, air=a, soil=a),
          [(0, 2, 5, 0), (1, 1, 5, 0), (2, 1, 5, 0), (3, 1, 5, 0), (0, 2, 5, 0)])


def several_programs_at_a_site_daemons_last():
    several_programs_at_a_site("last")


def several_programs_at_a_site_daemons_first():
    several_programs_at_a_site("first")


def main():
    tests = [one_program_is_one_number_whatever_its_vendor, a_program_per_site_has_a_number_each, other_arguments_are_another_program,
             several_programs_at_a_site_daemons_last, several_programs_at_a_site_daemons_first]
    sites.run([(t.__name__, t) for t in tests])


if __name__ == "__main__":
    main()
