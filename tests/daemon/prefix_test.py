#!/usr/bin/env python3
"""A site's own MPI in a directory of its own: `make MPI=/its/bin/mpicc` builds for it beside what is there, `make install` takes all along,
and programs of that MPI run with it, alone and in one world with Debian's.

The MPI is Debian's MPICH, moved: compiler command, headers, library and launcher stand below another directory, and say another version.
"""
import os
import shutil
import subprocess
import tempfile

import mpis_test as mpis
from sites import BUILD, ROOT, Skipped, flavors, run

TMP = tempfile.mkdtemp(prefix="pacx-prefix-")
OPT, IDENTITY = f"{TMP}/opt/other-name", "mpich-4.9.9"


def moved():
    """Debian's MPICH below OPT."""
    about = mpis.known("mpich")
    version = about["identity"].split("-")[1]
    if len(version) != len("4.9.9"):
        raise Skipped(f"no MPICH here whose version could be written over: {version}")
    for d in ("bin", "lib"):
        os.makedirs(f"{OPT}/{d}")
    cc = open(about["compiler"]).read()
    old = [line.split("=", 1)[1] for name in ("includedir", "libdir") for line in cc.splitlines() if line.startswith(name + "=")]
    shutil.copytree(old[0], f"{OPT}/include")
    for was, now in zip(old, ("include", "lib")):
        cc = cc.replace(f"={was}\n", f"={OPT}/{now}\n")
    for path, text in ((f"{OPT}/bin/mpicc", cc), (f"{OPT}/include/mpi.h", open(f"{OPT}/include/mpi.h").read().replace(f'"{version}"', '"4.9.9"'))):
        with open(path, "w") as f:
            f.write(text)
    os.chmod(f"{OPT}/bin/mpicc", 0o755)
    mpis.patched(about["library"], f"{OPT}/lib/{about['soname']}")
    os.symlink(about["soname"], f"{OPT}/lib/libmpich.so")
    for name in ("mpiexec.hydra", "hydra_pmi_proxy"):
        shutil.copy2(shutil.which(name), f"{OPT}/bin/{name}")
    os.symlink("mpiexec.hydra", f"{OPT}/bin/mpirun")
    return f"{OPT}/lib/{about['soname']}"


def make(*args):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    p = subprocess.run(["make", "-C", ROOT, "-j2", f"B={TMP}/build", f"MPI={OPT}/bin/mpicc", *args], env=env, capture_output=True, text=True)
    assert p.returncode == 0, p.stdout[-2000:] + p.stderr[-4000:]


def maps(lines, *parts):
    for line in lines:
        assert all(p in line for p in parts), line


def test_a_build_for_an_mpi_in_a_directory_of_its_own():
    if "mpich" not in flavors():
        raise Skipped("no mpich here")
    library = moved()
    # What is built already stays: the new MPI comes beside it.
    for d in ("bin", "lib", "obj/plain"):
        shutil.copytree(f"{BUILD}/{d}", f"{TMP}/build/{d}", symlinks=True, copy_function=shutil.copy2)
    make("install", f"PREFIX={TMP}/installed")
    shown = subprocess.run([f"{TMP}/installed/bin/pacxctl", "mpis"], capture_output=True, text=True, check=True).stdout
    assert f"{IDENTITY}\n  serves programs linked with {library}" in shown and f"started by {OPT}/bin/mpirun\n" in shown, shown
    with open(f"{TMP}/prog.c", "w") as f:
        f.write(mpis.PROGRAM)
    subprocess.run([f"{OPT}/bin/mpicc", "-w", f"-Wl,-rpath,{OPT}/lib", "-o", f"{TMP}/prog.mine", f"{TMP}/prog.c"], check=True)
    for mpi in ("auto", IDENTITY, OPT):
        lines = mpis.good(mpis.pacxrun("-n", "1+1", "--mpi", mpi, "--", f"{TMP}/prog.mine", build=f"{TMP}/installed"))
        maps(lines, library, f"libpacx-{IDENTITY}.so")
    debians = [f for f in flavors() if os.path.exists(f"{TMP}/installed/lib/libpacx-{f}.so")]
    for m in debians:
        subprocess.run([f"mpicc.{m}", "-w", "-o", f"{TMP}/prog.{m}", f"{TMP}/prog.c"], check=True)
        with open(f"{TMP}/hosts.yml", "w") as f:
            f.write(f"sites:\n  - {{name: mine, ranks: 2, mpi: {IDENTITY}, exe: {TMP}/prog.mine}}\n"
                    f"  - {{name: debian, ranks: 1, mpi: {m}, exe: {TMP}/prog.{m}}}\n")
        lines = mpis.good(mpis.pacxrun("-f", f"{TMP}/hosts.yml", "--", "x", build=f"{TMP}/installed"), 3)
        maps([s for s in lines if not s.startswith("rank 2")], library, f"libpacx-{IDENTITY}.so")
        maps([s for s in lines if s.startswith("rank 2")], f"libpacx-{m}.so")


if __name__ == "__main__":
    try:
        run([(n[5:], f) for n, f in list(globals().items()) if n.startswith("test_")])
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
        shutil.rmtree(mpis.TMP, ignore_errors=True)
