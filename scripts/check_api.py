#!/usr/bin/env python3
"""check_api.py: proves that libpacx/mpi.api is complete and that the built libraries keep to it.

    check_api.py [--build DIR]   every check, for each vendor whose mpicc.VENDOR is installed
    check_api.py --table         libpacx/COVERAGE.md, to standard output

Checks: every MPI_ and MPIX_ function of each mpi.h, mpi-ext.h and library (hidden and exported-only ones included) has exactly one row; no row is
stale; every row of class `own` has its body px_<Name> in the built library; the library exports every function that
is not `native`, as MPI_ and PMPI_, and nothing but MPI_, PMPI_, their Fortran twins, pacx_, MPICHX_, the
functions of dlsym_hook.c and those of other libraries that libpacx takes over (taken_over).
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from gen_bindings import dlsym_names, fortran_names, leave_names, taken_over  # noqa: E402
from mpi_h import ROOT, lookup, prototypes, read_api, reason, row_name, stem, symbol_name  # noqa: E402

VENDORS = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}


def symbols(path, *flags, kinds="TtWwiDdBbRrV"):
    out = subprocess.run(["nm", "--defined-only", *flags, path], text=True, check=True, stdout=subprocess.PIPE).stdout
    rows = (line.split() for line in out.splitlines())
    return {r[2].split("@")[0] for r in rows if len(r) == 3 and r[1] in kinds}


def vendor_library(cc, soname):
    """Path of the vendor library that cc links with."""
    path = subprocess.run([cc, "-print-file-name=" + soname], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
    if os.path.exists(path):
        return path
    cache = subprocess.run(["/sbin/ldconfig", "-p"], text=True, stdout=subprocess.PIPE).stdout
    m = re.search(r"^\s*" + re.escape(soname) + r" .*=> (\S+)$", cache, re.M)
    return m.group(1) if m else None


def functions(vendor):
    """All functions of a vendor: name without MPI_ (row_name) -> Func, or None when only exported."""
    cc = "mpicc." + vendor
    funcs = dict(prototypes(cc))
    lib = vendor_library(cc, VENDORS[vendor])
    if lib:
        for s in symbols(lib, "-D", kinds="TWi"):
            if s.startswith(("MPI_", "MPIX_")):
                funcs.setdefault(row_name(s), None)
    return funcs


def check_library(path, vendor, api, funcs, errors):
    dynamic = symbols(path, "-D")
    local = symbols(path)
    taken = set(taken_over(vendor))
    allowed = set(fortran_names()) | set(leave_names()) | set(dlsym_names()) | taken
    for name, f in sorted(funcs.items()):
        row = lookup(api, name, funcs)
        if not row or not f:
            continue
        cls = row[0]
        for s in (symbol_name(name), "P" + symbol_name(name)):
            if cls != "native" and s not in dynamic:
                errors.append(f"{path}: does not export {s}, class {cls}")
            if cls == "native" and s in dynamic:
                errors.append(f"{path}: exports {s}, class native")
        base = stem(name) if stem(name) in api else name[:-2]
        if cls == "own" and local and "px_" + base not in local:
            errors.append(f"{path}: no body px_{base} for {symbol_name(name)}, class own")
    errors += [f"{path}: does not export {s}, which it takes over" for s in sorted(taken - dynamic)]
    if vendor == "mpich":  # whose ABI others have, under other names
        out = subprocess.run(["nm", "-D", "--undefined-only", path], text=True, check=True, stdout=subprocess.PIPE).stdout
        errors += [f"{path}: needs {s}, and so a library of MPICH's" for s in re.findall(r" U ((?:P?MPI|MPI[RIX]+)_\w+)", out)]
    for s in sorted(dynamic):
        if not s.startswith(("MPI_", "PMPI_", "MPIX_", "PMPIX_", "pacx_", "MPICHX_")) and s not in allowed:
            errors.append(f"{path}: {s} leaves the library")


def table(api, installed):
    print("# Coverage\n\nEvery function of Open MPI's and MPICH's mpi.h, by what libpacx does with it. Made by `scripts/check_api.py --table`\n"
          "from `libpacx/mpi.api`, which is where a change belongs.\n")
    print("| class | functions | on a communicator that spans sites |")
    print("|---|---|---|")
    meaning = {
        "own": "carried out by libpacx",
        "call": "native, with `MPI_COMM_WORLD` mapped",
        "refused": "not supported, for the reasons below: raises an error through the error handler; works on a communicator within one site",
        "native": "not intercepted",
    }
    for cls in ("own", "call", "refused", "native"):
        names = sorted(n for n, row in api.items() if row[0] == cls)
        if cls == "native":
            listed = f"the other {len(names)}: datatypes, operators, info, what a window's handle carries by itself, `MPI_T_`, ..."
        else:
            listed = f"{len(names)}: " + ", ".join(f"`{symbol_name(n) if n.startswith('X_') else n}`" for n in names)
        print(f"| {cls} | {listed} | {meaning[cls]} |")
    print("\n| refused | because |\n|---|---|")
    whys = {}
    for n in sorted(n for n, row in api.items() if row[0] == "refused"):
        whys.setdefault(reason(n), []).append(f"`{symbol_name(n) if n.startswith('X_') else n}`")
    for why, names in whys.items():
        print(f"| {', '.join(names)} | {why} |")
    large = sum(1 for fs in installed.values() for n in fs if n not in api and n.endswith("_c"))
    print(f"\nThe {large} large-count functions `MPI_X_c` of MPICH are treated like `MPI_X`." if large else "")


def main():
    args = sys.argv[1:]
    build = args[args.index("--build") + 1] if "--build" in args else os.path.join(ROOT, "build")
    api, errors = read_api(), []
    installed = {v: functions(v) for v in VENDORS if shutil.which("mpicc." + v)}
    if "--table" in args:
        table(api, installed)
        return
    for vendor, funcs in installed.items():
        for name in sorted(funcs):
            if lookup(api, name, funcs) is None:
                errors.append(f"libpacx/mpi.api: no row for {symbol_name(name)} of {vendor}")
    if len(installed) == len(VENDORS):
        for name, (_, opts) in api.items():
            if "later" not in opts and not any(name in funcs or "X_" + name in funcs for funcs in installed.values()):
                errors.append(f"libpacx/mpi.api: {name} is in no installed MPI; the row is stale")
    for vendor, funcs in installed.items():
        path = os.path.join(build, "lib", f"libpacx-{vendor}.so")
        if os.path.exists(path):
            check_library(path, vendor, api, funcs, errors)
        else:
            errors.append(f"{path}: not built")
    for e in errors:
        print(e)
    total = ", ".join(f"{v} {len(fs)}" for v, fs in installed.items())
    print(f"check_api: {len(api)} rows, functions: {total}; {len(errors)} errors")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
