#!/usr/bin/env python3
"""Any MPI that a site has: the library of PACX, the daemons and the launcher are those of the MPI that the program would load.

Other MPIs than Debian's stand in directories that the test makes: copies of the libraries, in whose text the version, the soname or
the name of a function is another one, and launchers that say that they were used.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import sites
from sites import BUILD, Skipped, flavors

TMP = tempfile.mkdtemp(prefix="pacx-mpis-")
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, sum = 0;
	char line[4096], out[8192] = "";
	FILE *f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef LACKING
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Request r;
	int in = 0, class = 0;
	int rc = MPI_Isendrecv(&rank, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r);
	MPI_Error_class(rc, &class);
	sprintf(out, "unsupported %d ", class == MPI_ERR_UNSUPPORTED_OPERATION);
#endif
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	sprintf(out + strlen(out), "rank %d of %d sum %d", rank, size, sum);
	for (f = fopen("/proc/self/maps", "r"); fgets(line, sizeof line, f);)
		if (strstr(line, "r-xp") && (strstr(line, "libpacx") || strstr(line, "/libmpi")))
			sprintf(out + strlen(out), " %s", strtok(strchr(line, '/'), "\n"));
	strcat(out, "\n");
	write(1, out, strlen(out)); /* whole, also where MPICH makes stdout unbuffered */
	return MPI_Finalize();
}
"""


def patched(source, target, changes=()):
    with open(os.path.realpath(source), "rb") as f:
        data = f.read()
    for old, new in changes:
        assert len(old) == len(new) and old in data, f"{old} is not in {source}"
        data = data.replace(old, new)
    with open(target, "wb") as f:
        f.write(data)
    os.chmod(target, 0o755)


def another():
    """An identity that no Open MPI has, of the series that is here."""
    return ".".join(known("openmpi")["identity"].split(".")[:2]) + ".99"


def known(flavor):
    """What PACX knows of Debian's MPI."""
    with open(f"{BUILD}/lib/pacx/{flavor}.mpi") as f:
        return dict(line.rstrip("\n").split(": ", 1) for line in f)


def need(flavor):
    if flavor not in flavors():
        raise Skipped(f"no {flavor} here")


def program(flavor, name, libdir, *flags, changes=()):
    """The program, looking for its MPI in libdir first."""
    source = f"{TMP}/prog.c"
    with open(source, "w") as f:
        f.write(PROGRAM)
    subprocess.run([f"mpicc.{flavor}", "-w", *flags, f"-Wl,-rpath,{libdir}", "-o", f"{TMP}/{name}", source], check=True)
    patched(f"{TMP}/{name}", f"{TMP}/{name}", changes)
    return f"{TMP}/{name}"


def installation():
    """A copy of this build, so that another MPI can be added."""
    where = f"{TMP}/pacx"
    if not os.path.isdir(where):
        os.makedirs(where)
        for d in ("bin", "lib"):
            shutil.copytree(f"{BUILD}/{d}", f"{where}/{d}", symlinks=True)
    return where


def other_mpi(flavor, identity, changes=()):
    """An MPI in a directory of its own, for which the copy is built; the directory."""
    about, where, lib = known(flavor), f"{TMP}/{identity}", installation() + "/lib"
    if os.path.isdir(where):
        return where
    for d in ("lib", "bin"):
        os.makedirs(f"{where}/{d}")
    patched(about["library"], f"{where}/lib/{about['soname']}", changes)
    with open(f"{where}/bin/mpirun", "w") as f:
        f.write(f"#!/bin/sh\ntouch {where}/used\nexec {about['launcher']} \"$@\"\n")
    os.chmod(f"{where}/bin/mpirun", 0o755)
    os.symlink(about["compiler"], f"{where}/bin/mpicc")
    shutil.copy(f"{lib}/libpacx-{flavor}.so", f"{lib}/libpacx-{identity}.so")
    shutil.copy(f"{lib}/pacx/pacxd-{flavor}", f"{lib}/pacx/pacxd-{identity}")
    with open(f"{lib}/pacx/{identity}.mpi", "w") as f:
        f.write(f"identity: {identity}\nflavor: {flavor}\nsoname: {about['soname']}\nlibrary: {where}/lib/{about['soname']}\n"
                f"compiler: {where}/bin/mpicc\nlauncher: {where}/bin/mpirun\n")
    return where


def pacxrun(*args, build=None, **env):
    e = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    return subprocess.run([f"{build or installation()}/bin/pacxrun", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=90, env=dict(e, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **env))


def good(r, size=2):
    """The lines of a run in which all ranks were in one world; nothing else was said, but that a slow machine keeps a site waiting."""
    said = [s for s in r.stderr.splitlines() if s and ": waiting for " not in s]
    assert r.returncode == 0 and not said, f"{r.returncode}\n{r.stdout}{r.stderr}"
    total = size * (size - 1) // 2
    lines = r.stdout.splitlines()
    assert len(lines) == size and all(f"of {size} sum {total}" in s for s in lines), r.stdout
    return lines


def test_a_program_runs_with_the_build_for_its_own_library():
    need("openmpi")
    where = other_mpi("openmpi", another())
    prog = program("openmpi", "other", f"{where}/lib")
    for mpi in ("auto", "openmpi", another(), where):
        if os.path.exists(f"{where}/used"):
            os.unlink(f"{where}/used")
        for line in good(pacxrun("-n", "1+1", "--mpi", mpi, "--", prog)):
            assert f"{where}/lib/libmpi.so.40" in line and f"libpacx-{another()}.so" in line, f"{mpi}: {line}"
        assert os.path.exists(f"{where}/used"), f"{mpi}: its own launcher was not used"
    plain = program("openmpi", "plain", "/nowhere")
    for line in good(pacxrun("-n", "1+1", "--mpi", "auto", "--", plain)):
        assert "libpacx-openmpi.so" in line and where not in line, line


def test_the_library_path_decides_as_for_the_loader():
    need("openmpi")
    where = other_mpi("openmpi", another())
    plain = program("openmpi", "plain", "/nowhere")
    for line in good(pacxrun("-n", "2", "--", plain, LD_LIBRARY_PATH=f"{where}/lib")):
        assert f"{where}/lib/libmpi.so.40" in line and f"libpacx-{another()}.so" in line, line


def test_the_rpath_of_the_program_counts_for_its_libraries_and_before_the_library_path():
    """As for the loader: DT_RPATH, not DT_RUNPATH."""
    need("openmpi")
    where = other_mpi("openmpi", another())
    program("openmpi", "plain", "/nowhere")  # writes the source
    subprocess.run(["mpicc.openmpi", "-w", "-shared", "-fPIC", "-Dmain=app", "-o", f"{TMP}/libapp.so", f"{TMP}/prog.c"], check=True)
    with open(f"{TMP}/main.c", "w") as f:
        f.write("int app(int, char **);\nint main(int argc, char **argv) { return app(argc, argv); }\n")
    subprocess.run(["gcc", "-o", f"{TMP}/apart", f"{TMP}/main.c", f"-L{TMP}", "-lapp", f"-Wl,--disable-new-dtags,-rpath,{where}/lib:$ORIGIN"], check=True)
    for line in good(pacxrun("-n", "2", "--", f"{TMP}/apart", LD_LIBRARY_PATH=os.path.dirname(known("openmpi")["library"]))):
        assert f"{where}/lib/libmpi.so.40" in line and f"libpacx-{another()}.so" in line, line


def test_a_library_that_does_not_fit_says_so_before_init():
    need("openmpi")
    where = f"{TMP}/alien/lib"
    os.makedirs(where)
    major, minor = known("openmpi")["identity"].split("-")[1].split(".")[:2]
    patched(known("openmpi")["library"], f"{where}/libmpi.so.40", [(b"Open MPI v%d.%d.%d", b"Open MPI v9%d.%d.0")])
    r = pacxrun("-n", "1+1", "--", program("openmpi", "alien_prog", where))
    assert r.returncode != 0 and r.stdout == "", f"{r.returncode} {r.stdout}"
    assert re.search(rf"has loaded Open MPI 9{major}\.{minor}\.0\w* \({re.escape(where)}/libmpi.so.40\)", r.stderr), r.stderr  # 6.0.0rc2, too
    assert f"make MPI={TMP}/alien/bin/mpicc" in r.stderr, r.stderr


def mpich_abi():
    """MPICH under the soname of its ABI, without MPI_Isendrecv; a program for that; the directory."""
    need("mpich")
    where, soname = f"{TMP}/abi", (b"libmpich.so.12\0", b"libmpi.so.12\0\0\0")
    if not os.path.isdir(where):
        os.makedirs(f"{where}/lib")
        patched(known("mpich")["library"], f"{where}/lib/libmpi.so.12", [soname, (b"MPI_Isendrecv\0", b"MPI_Xsendrecv\0")])
    return where, soname


def test_programs_of_the_mpich_abi_run_with_the_build_for_mpich():
    where, soname = mpich_abi()
    prog = program("mpich", "abi_prog", f"{where}/lib", changes=[soname])
    for mpi in ("auto", "mpich", where):
        for line in good(pacxrun("-n", "1+1", "--mpi", mpi, "--", prog)):
            assert f"{where}/lib/libmpi.so.12" in line and "libpacx-mpich.so" in line and "libmpich" not in line, f"{mpi}: {line}"
    mixed = "+".join(["mpich"] + ["openmpi"] * ("openmpi" in flavors()))
    if "openmpi" in flavors():
        shutil.copy(prog, f"{TMP}/mixed.mpich")
        program("openmpi", "mixed.openmpi", "/nowhere")
        good(pacxrun("-n", "2+1", "--mpi", mixed, "--", f"{TMP}/mixed.{{mpi}}"), 3)


def test_what_the_vendor_lacks_is_refused_by_name():
    where, soname = mpich_abi()
    r = pacxrun("-n", "1+1", "--", program("mpich", "lacking", f"{where}/lib", "-DLACKING", changes=[soname]))
    assert r.returncode == 0 and r.stdout.count("unsupported 1 rank") == 2, f"{r.returncode}\n{r.stdout}{r.stderr}"
    assert r.stderr.count("MPI_Isendrecv: the MPI library of this program, MPICH") == 2, r.stderr


def test_a_launcher_that_dies_of_two_programs_is_given_one_and_leaves_nothing():
    """As that of Open MPI 5.0.7 does, which leaves a directory by its process id, of which the next one of that id dies."""
    need("openmpi")
    where, tmp = other_mpi("openmpi", "openmpi-5.9.9"), f"{TMP}/tmp"
    os.makedirs(tmp)
    for dies, form in (("mkdir -p $TMPDIR/left/x; kill -SEGV $$", "single executable"), ("exit 0", "MPMD")):
        with open(f"{where}/bin/mpirun", "w") as f:
            f.write(f"#!/bin/sh\necho tried >>{where}/tries\n{dies}\n")
        r = pacxrun("-n", "1+1", "--check", "--mpi", "openmpi-5.9.9", "--", program("openmpi", "five", f"{where}/lib"), TMPDIR=tmp)
        assert r.returncode == 0 and r.stdout.count(form) == 2, f"{r.returncode}\n{r.stdout}{r.stderr}"
        assert not os.listdir(tmp), os.listdir(tmp)
    with open(f"{where}/tries") as f:
        assert len(f.readlines()) == 2, "once for all sites of a job"


def test_pacxctl_lists_what_is_built():
    other = other_mpi("openmpi", another()) if "openmpi" in flavors() else None
    env = dict(os.environ)
    strange = f"{TMP}/strange"
    os.makedirs(strange)
    with open(f"{strange}/mpicc", "w") as f:
        f.write("#!/bin/sh\nexit 0\n")
    os.chmod(f"{strange}/mpicc", 0o755)
    env["PATH"] = f"{strange}:{env['PATH']}"
    out = subprocess.run([f"{installation()}/bin/pacxctl", "mpis"], env=env, capture_output=True, text=True, check=True).stdout
    for f in flavors():
        about = known(f)
        assert re.search(rf"^{re.escape(about['identity'])}   also {f}\n  serves programs linked with {re.escape(about['library'])}", out, re.M), out
    assert not other or f"{another()}\n  serves programs linked with {other}/lib/libmpi.so.40" in out, out
    assert f"`make MPI={strange}/mpicc`" in out, out


def test_what_is_not_there_is_named():
    r = pacxrun("-n", "1+1", "--mpi", "openmpi-0.9", "--", "true")
    assert r.returncode == 2 and "not built for the MPI openmpi-0.9" in r.stderr, r.stderr
    assert known(flavors()[0])["identity"] in r.stderr, r.stderr
    r = pacxrun("-n", "1+1", "--mpi", "/nowhere", "--", "true")
    assert r.returncode == 2 and "make MPI=/nowhere/bin/mpicc" in r.stderr, r.stderr


def test_names_of_builds():
    """What make builds for: each MPI once, by its flavour or its identity."""
    def names(*args, path=None):
        env = dict(os.environ, PATH=path or os.environ["PATH"])
        return subprocess.run([sys.executable, f"{sites.ROOT}/scripts/mpi_identity.py", "names", *args], env=env, capture_output=True, text=True)
    for f in flavors():
        assert f"{f}=mpicc.{f}={known(f)['identity']}" in names().stdout.split(), names()
        full = shutil.which(f"mpicc.{f}")
        assert names(full).stdout.split() == [f"{known(f)['identity']}={full}={known(f)['identity']}"], names(full)
    r = names("gcc")
    assert r.returncode != 0 and "no mpi.h" in r.stderr, r


if __name__ == "__main__":
    try:
        sites.run([(n[5:], f) for n, f in list(globals().items()) if n.startswith("test_")])
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
