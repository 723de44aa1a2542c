#!/usr/bin/env python3
"""matrix.py: run the MPI test programs on couplings of sites; speaks the protocol of tests/run.

usage: tests/mpi/matrix.py [--build DIR] [--only CONFIG] [--long] [PROGRAM...]

A config is "sites:flavours", or "sites:flavours:poll", ":thread" to run with PACX_PROGRESS=poll, thread; of those only the programs in which
that matters are run, if none is named. A program
passes when it exits with 0 and its last lines say that it made checks and none failed, and neither PACX nor the vendor about
what PACX left behind has said anything. Most programs of a config without a way run in one job (suite.c); if anything is wrong with that job,
each runs alone, and if then nothing is, "suite" has failed.
"""
import argparse
import os
import re
import subprocess
import sys
import threading
import time

CONFIGS = ["4:openmpi", "4:mpich", "3+3:openmpi+mpich", "3+2:mpich+openmpi", "2+2:openmpi+openmpi", "2+2:mpich+mpich",
           "2+1+2:openmpi+mpich+openmpi",
           "2+2:openmpi+openmpi:poll", "3+2:mpich+openmpi:poll", "2+2:openmpi+mpich:thread"]
# What the ways of making progress differ in.
PROGRESS = {"poll": {"collectives", "comms", "icollectives", "inplace", "inter", "inter_coll", "pending", "ports", "progress", "p2p_any", "requests", "rma_sync", "sendrecv", "storm", "threads", "threads_make"},
            "thread": {"icollectives", "p2p_any", "rma_busy", "rma_sync", "storm", "threads", "threads_flood"}}
# Programs with arguments of their own, or that end on purpose with another status, have their own tests.
SEPARATE = {"suite", "abort", "fatal", "files_local", "programs", "rma_busy", "spawn", "stdin_rank0"}
# What PACX says, and what a vendor says of requests that are left at the end. (MPICH 4.0 also says that it has leaked objects of yaksa, its
# datatypes: it forgets them when a receive is cancelled, natively, too.)
OURS = re.compile(r"^(?:pacx(?:run|d|ctl|rank|label)?(?:\[|:).*|.*freeing inactive.*)$", re.M)
EXPECTED = re.compile(": waiting for | stores data unlike site ")  # a slow machine keeps a site waiting; what tests/unlike is about
# What some may say besides: that numbers go lossy where the wire is slow, as accuracy asks; that a call is refused.
SAYS = {"accuracy": re.compile("within a bound that was asked for are lossy"), "refused": re.compile(""), "spawn": re.compile("")}
# What a version of an MPI cannot do by itself (VENDORS.md): where it is the only site, and where it is one of them.
BROKEN = {("openmpi-4.1.4", "rma_cas"): "Open MPI 4.1.4 crashes in MPI_Compare_and_swap over shared memory",
          ("mpich-4.0.2", "persist_coll"): "MPICH 4.0.2's own persistent gather and scatter move wrong data, and it crashes with 4 ranks",
          ("mpich-4.0.2", "files_rep"): "MPICH 4.0.2 moves wrong data between files in external32 and buffers with gaps",
          ("mpich-4.0.2", "inter_ibcast"): "MPICH 4.0.2 reads beyond the remote group in MPI_Ibcast on intercommunicators"}
BROKEN.update({(f"mpich-{v}", n): BROKEN["mpich-4.0.2", n].replace("4.0.2", v)
               for v, n in (("4.2.1", "persist_coll"), ("4.2.1", "files_rep"), ("4.2.1", "inter_ibcast"), ("5.0.2", "inter_ibcast"))})
BROKEN.update({(f"openmpi-{v}", n): f"Open MPI {v}'s own {n} does not end with 4 ranks"
               for v, n in (("5.0.7", "files_rep"), ("5.0.7", "ports"), ("6.0.0", "files_rep"), ("6.0.0", "partition"))})
BROKEN.update({(f"openmpi-{v}", "rma_cas"): f"Open MPI {v}'s own MPI_Compare_and_swap takes datatypes that have no bits to compare" for v in ("5.0.7", "6.0.0")})
BROKEN["mpich-5.0.2", "errors"] = "MPICH 5.0.2 of Debian takes wrong arguments without a word"
BROKEN["mpich-5.0.2", "files"] = "MPICH 5.0.2 forgets the class of an error of MPI_File_open (\"Ring ids do not match\")"
BROKEN_SITE = {("mpich-4.2.1", "datatypes"): "MPICH 4.2.1 divides by zero in MPI_Sendrecv of an empty datatype",
               ("mpich-5.0.2", "datatypes"): "MPICH 5.0.2 divides by zero in MPI_Sendrecv of an empty datatype",
               ("mpich-5.0.2", "nullcomm"): "MPICH 5.0.2 takes MPI_COMM_NULL in MPI_Sendrecv, and its error handlers get another communicator",
               ("openmpi-6.0.0", "nullcomm"): "Open MPI 6.0 rc2's error handlers get another communicator when that of the call is MPI_COMM_NULL"}
# What runs alone where such a site is one of several: behind the errors of other programs it is as in BROKEN.
ALONE = {("mpich-5.0.2", "files")}


def broken(sites, name):
    """Why program `name` cannot run on sites of these identities, or None."""
    return next((BROKEN_SITE[s, name] for s in sites if (s, name) in BROKEN_SITE), None) or \
        (BROKEN.get((sites[0], name)) if len(sites) == 1 else None)


def identity(build, flavour):
    with open(f"{build}/lib/pacx/{flavour}.mpi") as f:
        return re.search(r"^identity: (.*)$", f.read(), re.M)[1]


def members(build, flavour):
    """The programs of the suite."""
    return subprocess.run([f"{build}/{flavour}/tests/suite"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def programs(build):
    flavours = [f for f in ("openmpi", "mpich") if os.path.isdir(f"{build}/{f}/tests")]
    names = set()
    for f in flavours:
        names |= {n for n in os.listdir(f"{build}/{f}/tests") if os.path.isfile(f"{build}/{f}/tests/{n}")
                  and "." not in n}
    return flavours, sorted(names - SEPARATE)


def identities(build, config):
    return [identity(build, f) for f in config.split(":")[1].split("+")]


def unfit(build, config, name):
    """Why program `name` cannot run on this config's sites, or None."""
    return broken(identities(build, config), name)


def job(build, config, name):
    sites, flavour = config.split(":")[:2]
    return [f"{build}/bin/pacxrun", "-n", sites, "--mpi", flavour, "--", f"{build}/{{mpi}}/tests/{name}"]


def run(build, config, name, deadline):
    progress = config.split(":")[2:]
    return verdict_of(job(build, config, name), dict(os.environ, PACX_PROGRESS=progress[0]) if progress else None, deadline, SAYS.get(name))


class Standstill:
    """Whether a processor of this machine stood still, as virtual ones do for a minute now and then: a thread on each sees it."""
    def __init__(self):
        self.last = 0.0  # when one went on
        for cpu in os.sched_getaffinity(0):
            threading.Thread(target=self.watch, args=(cpu,), daemon=True).start()

    def watch(self, cpu):
        os.sched_setaffinity(0, {cpu})  # of this thread
        while True:
            before = time.monotonic()
            time.sleep(0.5)
            if time.monotonic() - before > 5:
                self.last = time.monotonic()


def output_of(cmd, env, deadline):
    """(output, status) of a command; status None: it had not ended at the deadline."""
    p = subprocess.Popen(cmd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace")
    try:
        return p.communicate(timeout=deadline)[0], p.returncode
    except subprocess.TimeoutExpired:
        p.terminate()
        try:
            out, _ = p.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            p.kill()
            out, _ = p.communicate()
        return out, None


def unasked(out, says):
    """What PACX has said beside what `says` matches (None: nothing)."""
    return [s for s in OURS.findall(out) if not EXPECTED.search(s) and not (says and says.search(s))]


def verdict_of(cmd, env, deadline, says):
    """Run one, in which PACX may say what `says` matches (None: nothing); (good, text, seconds); good is None when the program skips itself."""
    start = time.monotonic()
    out, status = output_of(cmd, env, deadline)
    if status is None:
        return False, f"not finished after {deadline} s\n{out}", deadline
    seconds = time.monotonic() - start
    verdict = re.findall(r"(\d+) checks, (\d+) failed", out)
    skipped = re.search(r"^.*skipped.*$", out, re.M)
    if status == 0 and skipped and not verdict:
        return None, skipped[0], seconds
    good = status == 0 and len(verdict) == 1 and int(verdict[0][0]) > 0 and int(verdict[0][1]) == 0
    said = unasked(out, says)
    if good and said:
        return False, "PACX has said something:\n" + "\n".join(said), seconds
    return good, f"exit status {status}\n{out}", seconds


def suite(build, config, names, deadline):
    """All of names in one job: None if it went well, else what was wrong with it."""
    out, status = output_of(job(build, config, "suite") + names, None, deadline)
    verdict = {n: (int(c), int(f)) for n, c, f in re.findall(r"^(\w+): (\d+) checks, (\d+) failed$", out, re.M)}
    if status == 0 and not unasked(out, None) and all(verdict.get(n, (0, 1))[0] > 0 and verdict[n][1] == 0 for n in names):
        return None
    return f"exit status {status}\n{out}"


def report(label, good, text, seconds):
    """Say how a run has ended; true when it failed."""
    if good is None:
        print(f"skip {label}: {text}")
    elif good:
        print(f"ok {label}")
    else:
        print("\n".join("  " + line for line in text.splitlines()[-25:]))
        print(f"not ok {label}")
    print(f"  # {seconds:.1f} s", flush=True)
    return good is False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", action="append", help="config (may be repeated)")
    parser.add_argument("--deadline", type=float, default=60)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    flavours, names = programs(args.build)
    configs = [c for c in args.only or CONFIGS if all(f in flavours for f in c.split(":")[1].split("+"))]
    runs = []
    for c in configs:
        way = c.split(":")[2:]
        runs += [(c, n) for n in args.names or (sorted(PROGRESS[way[0]]) if way else names)]
    print(f"1..{len(runs)}")
    still = Standstill()
    together, wrong, failures = set(), {}, set()
    for config in () if args.names else [c for c in configs if c.count(":") == 1]:
        mine = {(config, n) for n in members(args.build, flavours[0])
                if not unfit(args.build, config, n) and not any((i, n) in ALONE for i in identities(args.build, config))}
        began = time.monotonic()
        text = suite(args.build, config, sorted(n for _, n in mine), 8 * args.deadline)
        print(f"  # suite@{config.replace(':', '/')}: {len(mine)} programs, {time.monotonic() - began:.1f} s", flush=True)
        if text is None:
            together |= mine
        elif still.last <= began:
            wrong[config] = text
    for config, name in runs:
        why = unfit(args.build, config, name)
        if (config, name) in together:
            good, text, seconds = True, "", 0
        elif why:
            good, text, seconds = None, why, 0
        else:
            began = time.monotonic()
            good, text, seconds = run(args.build, config, name, args.deadline)
            if good is False and still.last > began:
                print(f"  {name}: once more, as the machine stood still")
                good, text, seconds = run(args.build, config, name, args.deadline)
        label = f"{name}@{config.replace(':', '/')}"
        if report(label, good, text, seconds):
            failures.add(config)
    for config in sorted(wrong.keys() - failures):
        report(f"suite@{config.replace(':', '/')}", False, wrong[config], 0)
    return 1 if failures or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
