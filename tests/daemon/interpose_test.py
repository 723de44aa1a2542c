#!/usr/bin/env python3
"""interpose_test.py: libpacx is met on every way to MPI: from constructors, from C++, by dlsym, in plug-ins, behind other tools; and
a rank's children meet nothing of it. The programs are in tests/interpose."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import sites
from sites import BUILD, ROOT

SRC = f"{ROOT}/tests/interpose"
TMP = tempfile.mkdtemp(prefix="pacx-interpose-")
FLAVORS = sites.flavors()
MIX = f"{FLAVORS[0]}+{FLAVORS[-1]}"
LIB = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}


def build(compiler, out, *args):
    subprocess.run([compiler, "-w", "-g", "-O1", "-fPIC", "-o", out, *args], check=True)


def made(language, name):
    """tests/interpose/NAME, for every flavor of MPI; the program with the hole {mpi}."""
    out = os.path.splitext(name)[0]
    for m in FLAVORS:
        build(f"mpi{language}.{m}", f"{TMP}/{out}.{m}", f"{SRC}/{name}", f"-J{TMP}" if language == "f90" else "-I" + SRC)
    return f"{TMP}/{out}.{{mpi}}"


def shared(language, name, lib, *args, flavors=FLAVORS):
    for m in flavors:
        os.makedirs(f"{TMP}/{m}", exist_ok=True)
        build(f"mpi{language}.{m}", f"{TMP}/{m}/{lib}", "-shared", f"{SRC}/{name}", "-I" + SRC, *args)


def linked(language, name, lib, flavors=FLAVORS):
    """name linked with a library of shared(), before MPI."""
    out = f"{os.path.splitext(name)[0]}-{lib}"
    for m in flavors:
        build(f"mpi{language}.{m}", f"{TMP}/{out}.{m}", f"{SRC}/{name}", "-I" + SRC, f"-J{TMP}" if language == "f90" else "-I" + TMP,
              "-Wl,--no-as-needed", f"-L{TMP}/{m}", "-l" + lib, f"-Wl,-rpath,{TMP}/{m}")
    return f"{TMP}/{out}.{{mpi}}"


def run(*args, mpi=MIX, ranks="2+2", options=(), **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PACX_")}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
    return subprocess.run([f"{BUILD}/bin/pacxrun", "-n", ranks, "--mpi", mpi, *options, "--", *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=100, env=env, check=False)


def said(p, *lines):
    """The run was good and printed these lines, in any order, and no others."""
    assert p.returncode == 0, f"exit status {p.returncode}\n{p.stdout}{p.stderr}"
    assert sorted(p.stdout.split("\n")[:-1]) == sorted(lines), f"{p.stdout}{p.stderr}"


def lines(text, n=4):
    return [text.format(r=r, n=n) for r in range(n)]


def constructors_exit_handlers_and_destructors_may_ask():
    shared("cc", "early.c", "libearly.so")
    prog = linked("cc", "early_main.c", "early")
    said(run(prog), *lines("early right: rank {r} of {n} sum 6"), *["after main: right"] * 4)
    said(run(prog, EARLY_INIT="1"), *lines("early right: rank {r} of {n} sum 6"), *["after main: right"] * 4)


def cxx_programs():
    said(run(made("cxx", "cxx_plain.cc")), *lines("plain rank {r} of {n}"))


def cxx_programs_with_the_bindings():
    have = [m for m in FLAVORS if subprocess.run([f"mpicxx.{m}", "-fsyntax-only", f"{SRC}/ring.cc"], capture_output=True).returncode == 0]
    if not have:
        raise sites.Skipped("no MPI here has C++ bindings")
    shared("cxx", "ring.cc", "libring.so", flavors=have)
    prog = linked("cxx", "cxx_bindings.cc", "ring", have)
    said(run(prog, mpi=f"{have[0]}+{have[-1]}"), *[f"cxx rank {r} of 4 clean 1 all 6 half {2 if r % 2 == 0 else 4} callbacks 1" for r in range(4)])


def boost_mpi():
    if "openmpi" not in FLAVORS or not os.path.exists("/usr/include/boost/mpi.hpp"):
        raise sites.Skipped("libboost-mpi-dev is not there")
    build("mpicxx.openmpi", f"{TMP}/boost", f"{SRC}/boost.cc", "-lboost_mpi", "-lboost_serialization")
    said(run(f"{TMP}/boost", mpi="openmpi+openmpi"), *lines("boost rank {r} of {n} sum 6 last 4 half 2"))


def found_by_dlsym():
    for m in FLAVORS:
        build("gcc", f"{TMP}/found.{m}", f"{SRC}/found.c", *includes(m))
        for how in ("local", "deepbind"):
            said(run(f"{TMP}/found.{{mpi}}", LIB[m], how, mpi=f"{m}+{m}", ranks="1+2"), *lines("found rank {r} of {n} sum 3", 3))
    for m in FLAVORS:  # the handle is that of a library that needs MPI
        said(run(f"{TMP}/found.{{mpi}}", f"{TMP}/{m}/plug.so", mpi=f"{m}+{m}", ranks="1+1"), *lines("found rank {r} of {n} sum 1", 2))


def includes(m):
    words = subprocess.run([f"mpicc.{m}", "-show"], check=True, capture_output=True, text=True).stdout.split()
    return [w for w in words if w.startswith("-I")]


def ends_with(reason, m, *args):
    p = run(f"{TMP}/found.{{mpi}}", *args, mpi=f"{m}+{m}", ranks="1+1")
    assert p.returncode != 0 and reason in p.stderr, f"exit status {p.returncode}\n{p.stdout}{p.stderr}"


def a_second_copy_of_the_library_ends_the_job_with_its_reason():
    m = FLAVORS[0]
    real = subprocess.run(["sh", "-c", f"ldconfig -p | sed -n 's/.*{LIB[m]} .*=> //p' | head -n 1"], check=True, capture_output=True, text=True,
                          env=dict(os.environ, PATH=os.environ["PATH"] + ":/sbin:/usr/sbin")).stdout.strip()
    os.makedirs(f"{TMP}/copy", exist_ok=True)
    shutil.copy(real, f"{TMP}/copy/{LIB[m]}")
    ends_with("a second copy of an MPI library is loaded: MPI_Init was found in " + TMP, m, f"{TMP}/copy/{LIB[m]}")


def a_second_copy_by_dlmopen_ends_the_job_with_its_reason():
    m = FLAVORS[0]
    alone = f"import ctypes; ctypes.CDLL(None).dlmopen(ctypes.c_long(-1), b'{LIB[m]}', 2)"
    if subprocess.run([sys.executable, "-c", alone], capture_output=True).returncode == -signal.SIGSEGV:
        raise sites.Skipped(f"dlmopen of {m} {sites.version(m)} crashes in its constructors (VENDORS.md)")
    ends_with(f"dlmopen of {LIB[m]} loaded a second MPI library", m, LIB[m], "mopen")


def plug_ins_with_and_without_deepbind():
    prog = made("cc", "plugged.c")
    for how in ("deepbind", "local", "libc"):
        said(run("sh", "-c", f"exec {prog} {TMP}/$PACX_MPI/plug.so {how}"), *lines("plug same: rank {r} of {n}"))


def callers_of_dlsym_and_dlopen_stay_who_they_are():
    """RTLD_NEXT and RUNPATH depend on the return address. No MPI in the program, and PACX not active: the same code."""
    os.makedirs(f"{TMP}/only", exist_ok=True)
    for part, where in (("a", TMP), ("b", TMP), ("c", f"{TMP}/only")):
        build("gcc", f"{where}/liborder_{part}.so", "-shared", f'-DPART="{part}"', f"{SRC}/order.c", f"-Wl,-rpath,{TMP}/only",
              f"-Wl,-soname,liborder_{part}-{os.getpid()}.so" if part == "c" else "-Wl,--enable-new-dtags")
    build("gcc", f"{TMP}/order", f"{SRC}/order.c", f"-L{TMP}", "-Wl,--no-as-needed", "-lorder_a", "-lorder_b", f"-Wl,-rpath,{TMP}")
    alone = subprocess.run([f"{TMP}/order"], capture_output=True, text=True, check=True).stdout
    assert alone == "a b end, found, not loaded, malloc\n", alone
    for m in FLAVORS:
        out = subprocess.run([f"{TMP}/order"], capture_output=True, text=True, check=True,
                             env=dict(os.environ, LD_PRELOAD=f"{BUILD}/lib/libpacx-{m}.so")).stdout
        assert out == alone, out


def sanitizers_in_the_program_find_their_functions():
    """Their runtimes call dlsym before any constructor, and before strcmp works."""
    m, alone = FLAVORS[0], []
    # The thread sanitizer keeps the addresses at which Open MPI 5's PMIx wants its shared memory (VENDORS.md).
    for kind, options in (("address", {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}),
                          ("thread", {"TSAN_OPTIONS": "report_bugs=0", "PMIX_MCA_gds": "hash"})):
        build(f"mpicc.{m}", f"{TMP}/{kind}", f"{SRC}/tooled_c.c", "-fsanitize=" + kind)
        p = run(f"{TMP}/{kind}", mpi=f"{m}+{m}", ranks="1+1", **options)
        if p.returncode and subprocess.run([f"mpirun.{m}", "-np", "1", f"{TMP}/{kind}"], stdin=subprocess.DEVNULL, capture_output=True,
                                           env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **options)).returncode:
            alone.append(kind)
        else:
            said(p, *lines("rank {r} sum 1", 2))
    if alone:
        raise sites.Skipped(f"over {m} {sites.version(m)} a program with the {' and the '.join(alone)} sanitizer does not run by itself (VENDORS.md)")


def other_tools_see_the_whole_world():
    """Each kind of tool: within the program, linked, linked and looking for RTLD_NEXT, preloaded before libpacx and behind it."""
    shared("cc", "tool.c", "libtool.so")
    shared("cc", "tool.c", "libtoolnext.so", "-DNEXT")
    for language, name, count in (("cc", "tooled_c.c", "20 C 0 Fortran, get_attr 0"), ("f90", "tooled_f.f90", "0 C 20 Fortran, get_attr 4")):
        want = lines("rank {r} sum 6") + ["tool: 4 ranks, allreduce " + count]
        plain = made(language, name)
        for m in FLAVORS:
            build(f"mpicc.{m}", f"{TMP}/tool.{m}.o", "-c", f"{SRC}/tool.c")
            build(f"mpi{language}.{m}", f"{TMP}/within-{language}.{m}", f"{SRC}/{name}", f"{TMP}/tool.{m}.o", f"-J{TMP}" if language == "f90" else "-I.")
        said(run(f"{TMP}/within-{language}.{{mpi}}"), *want)
        for lib in ("tool", "toolnext"):
            said(run(linked(language, name, lib)), *want)
        for lib in ("tool", "toolnext")[:2 if language == "cc" else 1]:
            before = f"exec env LD_PRELOAD={TMP}/$PACX_MPI/lib{lib}.so:$LD_PRELOAD {plain}"
            behind = f"exec env LD_PRELOAD=$LD_PRELOAD:{TMP}/$PACX_MPI/lib{lib}.so {plain}"
            said(run("sh", "-c", before), *want)
            said(run("sh", "-c", behind), *want)


def what_the_user_preloads_comes_first():
    m = FLAVORS[0]
    said(run(f"{TMP}/tooled_c.{m}", mpi=f"{m}+{m}", LD_PRELOAD=f"{TMP}/{m}/libtool.so"),
         *lines("rank {r} sum 6"), "tool: 4 ranks, allreduce 20 C 0 Fortran, get_attr 0")


def the_libraries_bring_all_that_they_call():
    # As a shell between the launcher and the program loads them where the linker's default is to look up all names at once.
    for m in FLAVORS:
        p = subprocess.run(["/bin/sh", "-c", ":"], env=dict(os.environ, LD_PRELOAD=f"{BUILD}/lib/libpacx-{m}.so", LD_BIND_NOW="1"),
                           capture_output=True, text=True)
        assert (p.returncode, p.stderr) == (0, ""), p.stderr


def children_are_ordinary_programs():
    prog = made("cc", "children.c")
    other = f"{TMP}/liborder_a.so:{TMP}/liborder_b.so"
    p = run(prog, LD_PRELOAD=other, options=("--stats", f"{TMP}/stats.json"))
    assert p.returncode == 0 and "status 0 sum 6 of 4\n" in p.stdout and "wrong" not in p.stdout, p.stdout + p.stderr
    env = [x[7:] for x in p.stdout.splitlines() if x.startswith("child: ")]
    ours = {f"{k}={v}" for k, v in os.environ.items()}  # the tree may lie in a folder of that name
    assert not [x for x in env if "pacx" in x.lower().replace(TMP, "") and x not in ours and not x.startswith(("PWD=", "OLDPWD=", "_="))], env
    assert "LD_PRELOAD=" + other in env, env
    assert os.path.getsize(f"{TMP}/stats.json") > 0
    p = run(prog, options=("--label",))
    assert p.returncode == 0 and "LD_PRELOAD" not in p.stdout and "key" not in p.stdout, p.stdout + p.stderr


def a_rank_may_start_another_mpi_job_as_natively():
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    for m in FLAVORS:
        job = f"mpirun.{m} -np 2 {TMP}/children.{m} >/dev/null 2>&1"
        slots = ["--oversubscribe"] if m == "openmpi" else []
        native = subprocess.run([f"mpirun.{m}", *slots, "-np", "2", f"{TMP}/children.{m}", job], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                env=env, timeout=100, check=True).stdout
        want = [x for x in native.splitlines() if x.startswith("status")]
        p = run(f"{TMP}/children.{m}", job, mpi=f"{m}+{m}", ranks="1+1")
        assert p.returncode == 0 and want and [x for x in p.stdout.splitlines() if x.startswith("status")] == want, f"natively {native}\n{p.stdout}{p.stderr}"


def the_key_leaves_a_rank_before_its_program_begins():
    show = ["/bin/sh", "-c", 'echo "${PACX_KEY-none} $(tr "\\0" "\\n" </proc/$$/environ | grep -c sesame)"']
    for m in FLAVORS:
        rank, size = ("PMI_RANK", "PMI_SIZE") if m == "mpich" else ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        for number, want in (("0", "none 0\n"), ("3", "sesame 1\n")):  # rank 3 of 4 is a daemon's
            env = {"PATH": os.environ["PATH"], "LD_PRELOAD": f"{BUILD}/lib/libpacx-{m}.so", "PACX_SITE": "x", "PACX_KEY": "sesame", "PACX_FORM": "single",
                   rank: number, size: "4"}
            out = subprocess.run(show, env=env, capture_output=True, text=True, check=True).stdout
            assert out == want, f"{m} rank {number}: {out}"


TESTS = [constructors_exit_handlers_and_destructors_may_ask, cxx_programs, cxx_programs_with_the_bindings, boost_mpi, found_by_dlsym,
         a_second_copy_of_the_library_ends_the_job_with_its_reason, a_second_copy_by_dlmopen_ends_the_job_with_its_reason, plug_ins_with_and_without_deepbind,
         callers_of_dlsym_and_dlopen_stay_who_they_are, sanitizers_in_the_program_find_their_functions,
         other_tools_see_the_whole_world, what_the_user_preloads_comes_first,
         the_libraries_bring_all_that_they_call, children_are_ordinary_programs, a_rank_may_start_another_mpi_job_as_natively, the_key_leaves_a_rank_before_its_program_begins]


if __name__ == "__main__":
    if not FLAVORS:
        raise SystemExit(77)
    try:
        shared("cc", "plug.c", "plug.so")
        sites.run([(t.__name__, t) for t in TESTS if not sys.argv[1:] or t.__name__ in sys.argv[1:]])
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
