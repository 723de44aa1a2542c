#!/usr/bin/env python3
"""mpi_identity.py: which MPI a compiler command is of.

    mpi_identity.py names [CC ...]    "NAME=CC=IDENTITY ..." of each distinct MPI: what make builds for; without CC those in PATH
    mpi_identity.py describe CC       what the programs read about a build, lib/pacx/NAME.mpi

NAME is the flavour (openmpi, mpich) for the commands mpicc.openmpi and mpicc.mpich of PATH, which are Debian's names; for any other
command it is the identity: vendor and version, such as openmpi-5.0.7, mpich-4.2.1, intelmpi-2021.13. The standard ABI of MPI-5, which
is no vendor's, is abi whatever vendor's command compiles for it; its identity is abi-1. A file NAME.mpi has lines "key: value":

    identity   vendor and version            flavor    openmpi, mpich or abi: whose handles and launcher it has
    soname     of the vendor's library       library   its file, all links followed
    compiler   the command, by its full path launcher  mpirun or mpiexec beside it, or empty
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEFAULT = ("mpicc.openmpi", "mpicc.mpich", "mpicc", "mpicc_abi")
# Macros of mpi.h by which a vendor says its name and version; the first that is there counts. MPICH's relatives have its macros, too.
VENDORS = (("openmpi", "OMPI_MAJOR_VERSION"), ("intelmpi", "I_MPI_VERSION"), ("mvapich", "MVAPICH_VERSION"),
           ("mvapich", "MVAPICH2_VERSION"), ("craympich", "CRAY_MPICH_VERSION"), ("mpich", "MPICH_VERSION"), ("abi", "MPI_ABI_VERSION"))
LIBRARY = re.compile(r"lib(mpi|mpich|mpi_abi|mpi_cray|mpi_gnu_\d+)\.so(\.\d+)*$")


def macros(cc):
    """The macros of cc's mpi.h, None when it has none."""
    p = subprocess.run([cc, "-E", "-dM", "-x", "c", "-"], input="#include <mpi.h>\n", text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return dict(re.findall(r"^#define (\w+) (.*)$", p.stdout, re.M)) if p.returncode == 0 else None


def identity(cc):
    """(vendor, version), None when cc finds no mpi.h, or one that says nothing about itself."""
    m = macros(cc)
    for vendor, name in VENDORS if m else ():
        if name not in m:
            continue
        if vendor == "openmpi":
            return vendor, ".".join(m[f"OMPI_{part}_VERSION"] for part in ("MAJOR", "MINOR", "RELEASE"))
        version = m[name].strip('"')
        return vendor, re.sub(r"[^0-9A-Za-z.]+", "-", version).strip("-")
    return None


def flavor(vendor):
    return vendor if vendor in ("openmpi", "abi") else "mpich"


def names(commands):
    """[(name, cc, identity)] of each distinct MPI. Raises SystemExit when a command that was asked for is no MPI compiler."""
    asked, found, seen = bool(commands), [], set()
    for cc in commands or DEFAULT:
        who = identity(cc) if shutil.which(cc) else None
        if not who and asked:
            raise SystemExit(f"mpi_identity: {cc}: {'it finds no mpi.h' if shutil.which(cc) else 'no such command'}; "
                             "give MPI= the compiler command of an MPI, such as MPI=/opt/openmpi/bin/mpicc")
        if not who or who in seen:
            continue
        seen.add(who)
        name = cc[6:] if cc in ("mpicc.openmpi", "mpicc.mpich") else who[0] if who[0] == "abi" else "-".join(who)
        found.append((name, cc, "-".join(who)))
    return found


def library(cc):
    """(soname, file) of the MPI library that programs of cc are linked with."""
    with tempfile.TemporaryDirectory() as tmp:
        exe = os.path.join(tmp, "a")
        # -t: the linker names the files that it takes; at run time another one of that soname may come first.
        linked = subprocess.run([cc, "-x", "c", "-", "-o", exe, "-Wl,-t"], text=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                input="#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n").stdout
        needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", exe], text=True, check=True, stdout=subprocess.PIPE).stdout)
        where = subprocess.run(["ldd", exe], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    for soname in filter(LIBRARY.match, needed):
        at = re.search(r"^(/\S*/" + re.escape(soname.split(".so")[0]) + r"\.so\S*)$", linked, re.M) or \
            re.search(r"^\s*" + re.escape(soname) + r" => (/\S+)", where, re.M)
        return soname, os.path.realpath(at[1]) if at else ""
    raise SystemExit(f"mpi_identity: {cc} links with no shared MPI library ({', '.join(needed)}): a static MPI cannot be interposed")


def launcher(cc):
    folder, base = os.path.split(cc)
    suffix = base[base.index("."):] if "." in base else ""
    for name in ("mpirun" + suffix, "mpiexec" + suffix, "mpiexec.hydra"):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return ""


def describe(cc):
    vendor, version = identity(cc)
    soname, path = library(cc)
    compiler = os.path.abspath(shutil.which(cc))
    return (f"identity: {vendor}-{version}\nflavor: {flavor(vendor)}\nsoname: {soname}\nlibrary: {path}\n"
            f"compiler: {compiler}\nlauncher: {launcher(compiler)}\n")


def main():
    if sys.argv[1:2] == ["names"]:
        print(" ".join("=".join(row) for row in names(sys.argv[2:])))
    elif sys.argv[1:2] == ["describe"] and len(sys.argv) == 3:
        sys.stdout.write(describe(sys.argv[2]))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
