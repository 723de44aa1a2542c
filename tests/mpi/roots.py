#!/usr/bin/env python3
"""roots.py: the MPI test programs in worlds whose sites have different versions of MPI; speaks the protocol of tests/run.

usage: tests/mpi/roots.py [--roots DIR] [--build DIR] [--only WORLD] [--all] [--ranks 2+1] [PROGRAM...]

The sites are private roots of Debian's releases on this machine (scripts/mpi_roots; made below DIR, build/roots, when they
are not there). PACX is built in each, and the start command of a site enters its root. A world is "flavour@suite+flavour@suite+...";
the flavours openmpi-abi and mpich-abi are programs of the standard ABI of MPI-5 over those vendors. Without names all programs are run,
in the worlds of the standard ABI those of its list unless --all is said, and LAMMPS where the world is one of LAMMPS.
"""
import argparse
import os
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import matrix  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBS = "/usr/lib/x86_64-linux-gnu"
SUITES = ("bookworm", "trixie", "sid")
WORLDS = ["openmpi@bookworm+openmpi@trixie+openmpi@sid", "mpich@bookworm+mpich@trixie+mpich@sid", "mpich@sid+openmpi@trixie+mpich@bookworm",
          "openmpi-abi@sid+mpich-abi@sid", "openmpi-abi@sid+openmpi-abi@sid", "mpich-abi@sid+mpich-abi@sid"]
# What the standard ABI differs in: its worlds run these unless --all is said.
ABI = {"attrs", "collectives", "comms", "datatypes", "errors", "get_status", "groups", "handles", "icollectives", "p2p_any", "requests", "rma_ops",
       "rma_sync", "rma_typed", "topo", "typed"}
LAMMPS = {"openmpi@bookworm+openmpi@trixie"}  # Debian builds it with Open MPI only


def enter(roots, suite, *command, **kw):
    return subprocess.run([f"{ROOT}/scripts/mpi_roots", "enter", f"{roots}/{suite}", *command], **kw)


def site_of(text):
    """(flavour, vendor, suite) of a site: ("openmpi-abi", "openmpi", "sid")."""
    flavour, suite = text.split("@")
    return flavour, flavour.removesuffix("-abi"), suite


def abi_tools(roots, suite):
    """Debian has both vendors' libraries of the standard ABI, but no compiler command that works: Open MPI's is its wrapper under another
    name. Which of the two libraries libmpi_abi.so.1 is, the directory abi-VENDOR says."""
    built = f"{ROOT}/build/in-{suite}"
    for vendor in "openmpi", "mpich":
        library = f"{LIBS}/libmpi_abi_{vendor}.so.1.0.0"
        if not os.path.exists(f"{roots}/{suite}{library}"):
            return False
        os.makedirs(f"{built}/abi-{vendor}", exist_ok=True)
        link(library, f"{built}/abi-{vendor}/libmpi_abi.so.1")
    os.makedirs(f"{built}/abi-cc", exist_ok=True)
    link("/usr/bin/opal_wrapper", f"{built}/abi-cc/mpicc_abi")
    return True


def link(to, path):
    if not os.path.islink(path):
        os.symlink(to, path)


def making(roots, suites):
    """Begin to make the roots, all at once: a mirror is waited for more than a processor. {suite: process}"""
    os.makedirs(roots, exist_ok=True)
    return {s: subprocess.Popen([f"{ROOT}/scripts/mpi_roots", "make", roots, s], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for s in suites}


def prepare(roots, suite, made, names, abi):
    """Build PACX in a root when it is made, with these programs or all. None, or why there is none."""
    said, _ = made.communicate()
    if made.returncode:
        return (said.strip() or "no root").splitlines()[-1]
    if not abi_tools(roots, suite) and abi:
        return f"{suite} has no libraries of the standard ABI of both vendors"
    flavours = ["openmpi", "mpich"] + ["abi"] * abi
    programs = [f"build/in-{suite}/{f}/tests/{n}" for n in names for f in flavours if f != "abi" or not n.startswith("f_")] or ["mpi-tests"]
    built = enter(roots, suite, "env", f"PATH=/pacx/build/in-{suite}/abi-cc:/usr/sbin:/usr/bin:/sbin:/bin", "make", "-C", "/pacx", "-j", str(os.cpu_count()), f"B=build/in-{suite}",
                  "all", *programs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if built.returncode:
        raise SystemExit(f"PACX cannot be built in {suite}:\n" + "\n".join(built.stdout.splitlines()[-30:]))
    return None


def api(suite, roots):
    """Does the table of functions know those of this suite's MPIs? (scripts/check_api.py, as make check runs it)"""
    p = enter(roots, suite, "/pacx/scripts/check_api.py", "--build", f"/pacx/build/in-{suite}", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.returncode == 0, p.stdout, 0


def identity(site):
    flavour, vendor, suite = site_of(site)
    return matrix.identity(f"{ROOT}/build/in-{suite}", vendor)


def launch(roots, site):
    """How a site's launcher is called in its root."""
    flavour, vendor, suite = site_of(site)
    more = " --oversubscribe --bind-to none --allow-run-as-root" if vendor == "openmpi" else ""
    libs = f"env LD_LIBRARY_PATH=/pacx/build/in-{suite}/abi-{vendor} " if flavour != vendor else ""
    return f"{ROOT}/scripts/mpi_roots enter {roots}/{suite} {libs}mpirun.{vendor}{more}"


def hostfile(roots, world, ranks, exe, folder):
    """exe(flavour, suite): the program of a site."""
    held, lines = [], ["sites:"]
    for i, site in enumerate(world.split("+")):
        flavour, vendor, suite = site_of(site)
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        held.append(s)
        # The launcher of Open MPI 5.0.7 dies of two programs in one line: one program, of whose ranks some become daemons.
        lines.append(f"  - {{name: s{i}, host: 127.0.0.1, port: {s.getsockname()[1]}, ranks: {ranks[i]}, mpi: {flavour}, "
                     f"prefix: /pacx/build/in-{suite}, exe: {exe(flavour, suite)}, "
                     f"start: '{launch(roots, site)} -np {{procs}} {{app}}'}}")
    with open(f"{folder}/hosts.yml", "w") as f:
        f.write("\n".join(lines) + "\n")
    return held


def program(name):
    return lambda flavour, suite: f"/pacx/build/in-{suite}/{'abi' if flavour.endswith('-abi') else flavour}/tests/{name}"


def lammps(args, roots, world):
    """The melt of the demo over the world, and plainly in the root of each site: the same thermo table (tests/apps/thermo.py)."""
    sites = world.split("+")
    for _, _, suite in map(site_of, sites):
        if not os.path.exists(f"{roots}/{suite}/usr/bin/lmp"):
            got = enter(roots, suite, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", "apt-get update -q && apt-get install -y -q --no-install-recommends lammps",
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if got.returncode:
                return None, f"LAMMPS cannot be installed in {suite}", 0
    with tempfile.TemporaryDirectory(prefix="pacx-roots-") as folder:
        plain = []
        for i, site in enumerate(sites):
            run = subprocess.run([*launch(roots, site).split(), "-np", "4", "lmp", "-in", "/pacx/tests/apps/in.melt", "-log", "none"],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * args.deadline)
            plain.append(f"{folder}/plain{i}")
            with open(plain[-1], "w") as f:
                f.write(run.stdout)
        held = hostfile(roots, world, [2] * len(sites), lambda *_: "lmp", folder)
        p = subprocess.run([f"{args.build}/bin/pacxrun", "-f", f"{folder}/hosts.yml", "--", "lmp", "-in", "/pacx/tests/apps/in.melt", "-log", "none"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * args.deadline)
        for s in held:
            s.close()
        with open(f"{folder}/coupled", "w") as f:
            f.write(p.stdout)
        same = subprocess.run([f"{ROOT}/tests/apps/thermo.py", *plain, f"{folder}/coupled"], capture_output=True, text=True)
        return p.returncode == 0 and same.returncode == 0, p.stdout + p.stderr + same.stdout + same.stderr, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roots", default=f"{ROOT}/build/roots")
    parser.add_argument("--build", default=f"{ROOT}/build")
    parser.add_argument("--only", action="append", help="world (may be repeated)")
    parser.add_argument("--all", action="store_true", help="all programs in the worlds of the standard ABI, too")
    parser.add_argument("--ranks", help="of each site (2+1+1, 2+2)")
    parser.add_argument("--deadline", type=float, default=90)
    parser.add_argument("names", nargs="*", help="lammps: LAMMPS")
    args = parser.parse_args()
    roots = os.path.abspath(args.roots)
    worlds = args.only or WORLDS + sorted(LAMMPS)
    all_names = args.names or matrix.programs(args.build)[1] + ["lammps"]
    runs = [(w, n) for w in worlds for n in all_names
            if args.names and n != "lammps" or (n == "lammps") == (w in LAMMPS) and (args.all or n in ABI or "-abi@" not in w)]
    wanted = {s: any(w.endswith("-abi") for x, n in runs for w, _, t in map(site_of, x.split("+")) if t == s)
              for s in SUITES if any(f"@{s}" in w for w, _ in runs)}
    mine = tuple(n for n in args.names if n != "lammps")
    made = making(roots, wanted)
    try:
        missing = {s: why for s, abi in wanted.items() for why in [prepare(roots, s, made[s], mine, abi)] if why}
    finally:
        for p in made.values():
            p.wait()
    print(f"1..{len(runs) + len(wanted)}")
    failed = 0
    for suite in wanted:
        failed += matrix.report(f"check_api@{suite}", *((None, missing[suite], 0) if suite in missing else api(suite, roots)))
    for world, name in runs:
        sites = world.split("+")
        ranks = (args.ranks or {2: "2+2"}.get(len(sites), "2+1+1")).split("+")  # odd ranks, which programs split off, are at several sites
        label = f"{name}@{world.replace('@', '-')}"
        why = [missing[s] for s in missing if f"@{s}" in world] or \
            ["the standard ABI has no Fortran" for _ in [0] if "-abi@" in world and name.startswith("f_")] or \
            [w for w in [matrix.broken([identity(s) for s in sites], name)] if w]
        if why:
            print(f"skip {label}: {why[0]}", flush=True)
            continue
        if name == "lammps":
            failed += matrix.report(label, *lammps(args, roots, world))
            continue
        with tempfile.TemporaryDirectory(prefix="pacx-roots-") as folder:
            held = hostfile(roots, world, ranks, program(name), folder)
            good, text, seconds = matrix.verdict_of([f"{args.build}/bin/pacxrun", "-f", f"{folder}/hosts.yml"], None, args.deadline, matrix.SAYS.get(name))
            for s in held:
                s.close()
        failed += matrix.report(label, good, text, seconds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
