#!/usr/bin/env python3
"""errors_test.py: what is printed when an MPI error ends the job; speaks the protocol of tests/run.

Each case of tests/mpi/fatal.c must end the job with one line of the rank's site and one of each other site, which name the
function, the argument and its value, and with the class of the vendor as status.
"""
import re
import subprocess
import tempfile

import sites
from sites import BUILD, ROOT, flavors

# case -> what rank 0 is told, after its own name; the last rank of 2+2 is 3
TEXTS = {
    0: "MPI_Recv: a message of 16 bytes from rank 3 with tag 7, the receive has room for 4",
    1: "MPI_Recv: a message of 16 bytes from rank 3 with tag 7, the receive has room for 4",
    2: "MPI_Wait: a message of 16 bytes from rank 3 with tag 7, the receive has room for 8",
    3: "MPI_Waitall: request 1: a message of 16 bytes from rank 3 with tag 7, the receive has room for 8",
    10: "MPI_Send: rank 999, the communicator has 4",
    11: "MPI_Recv: tag -44, the largest is NUMBER (MPI_TAG_UB)",
    12: "MPI_Irecv: count -1",
    13: "MPI_Bcast: the datatype is null or not valid",
    14: "MPI_Reduce: root 77, the communicator has 4",
    15: "MPI_Allgatherv: counts[1] is -5",
    16: "MPI_Cart_create: dims[1] is -3",
    17: "MPI_Cart_rank: the communicator has no Cartesian topology",
}
CLASSES = {0: "TRUNCATE", 1: "TRUNCATE", 2: "TRUNCATE", 3: "IN_STATUS", 10: "RANK", 11: "TAG", 12: "COUNT", 13: "TYPE", 14: "ROOT",
           15: "COUNT", 16: "DIMS", 17: "TOPOLOGY"}
NAME = "perhaps a count of MPI_MAX_PROCESSOR_NAME, 256 with Open MPI and 128 with MPICH"


def header(flavor):
    """The constants of a vendor's mpi.h, by the preprocessor."""
    names = ["MPI_ERR_" + c for c in sorted(set(CLASSES.values()))] + constants()
    text = "#include <mpi.h>\n" + "\n".join(f'"{n}" = {n}' for n in names)
    out = subprocess.run([f"mpicc.{flavor}", "-E", "-P", "-x", "c", "-"], input=text, text=True, stdout=subprocess.PIPE, check=True)
    return {n: int(v) for n, v in re.findall(r'"(MPI_\w+)" = \(?(\d+)\)?', out.stdout)}


def table():
    """Rows of the table in the documentation: constant, Open MPI, MPICH."""
    with open(f"{ROOT}/libpacx/CONSTANTS.md") as f:
        return re.findall(r"^\| `(MPI_\w+)` \| (\d+) \| (\d+) \|", f.read(), re.M)


def constants():
    return [row[0] for row in table()]


def fatal(mpi, case):
    p = subprocess.run([f"{BUILD}/bin/pacxrun", "-n", "2+2", "--mpi", mpi, "--", f"{BUILD}/{{mpi}}/tests/fatal", str(case)],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True)
    if "still here" in p.stdout or p.returncode == 0:
        raise AssertionError(f"status {p.returncode}\n{p.stdout}")
    if "call_errhandler" in p.stdout:
        raise AssertionError(p.stdout)
    return p


def each_error_names_function_argument_and_value(mpi, cases):
    classes = header(mpi.split("+")[0])
    for case in cases:
        p = fatal(mpi, case)
        text = re.escape(TEXTS[case]).replace("NUMBER", r"\d{9,10}")  # the vendor's
        here = re.findall(rf"^pacxd\[left\] out: rank 0: {text}: all sites end$", p.stdout, re.M)
        there = re.findall(rf"^pacxd\[right\] in: site left ended the job: rank 0: {text}$", p.stdout, re.M)
        if len(here) != 1 or len(there) != 1 or len(re.findall(text, p.stdout)) != 2:
            raise AssertionError(f"case {case}: expected {text} once at each site\n{p.stdout}")
        want = classes["MPI_ERR_" + CLASSES[case]]
        if p.returncode not in (want, 9):  # hydra returns 9 instead of a rank's own status now and then
            raise AssertionError(f"case {case}: status {p.returncode}, expected {want}\n{p.stdout}")


def vendors_constants_are_hinted_at():
    for mpi, case, function, ranks in (("mpich+openmpi", 20, "MPI_Gather", "[23]"), ("openmpi+mpich", 21, "MPI_Allgather", "")):
        p = fatal(mpi, case)
        # Whichever message of the other site comes first is named.
        if NAME not in p.stdout or function + ": " not in p.stdout or ranks and not re.search(f"came from rank {ranks} ", p.stdout):
            raise AssertionError(p.stdout)
    p = fatal("openmpi+mpich", 0)
    if NAME in p.stdout:
        raise AssertionError("a hint at other numbers\n" + p.stdout)


def documented_constants_are_those_of_the_vendors():
    for column, flavor in ((1, "openmpi"), (2, "mpich")):
        have = header(flavor)
        for row in table():
            if have[row[0]] != int(row[column]):
                raise AssertionError(f"{row[0]} is {have[row[0]]} with {flavor}, CONSTANTS.md says {row[column]}")
    with open(f"{ROOT}/libpacx/p2p/raise.c") as f:
        rows = re.findall(r"ROW\((MPI_\w+), (\d+), (\d+)\)", f.read())
    if rows != [r for r in table() if r[1] != r[2]]:
        raise AssertionError(f"raise.c has {rows}, CONSTANTS.md {table()}")


# Not in tests/mpi/nullcomm.c: plain Open MPI 4.1 crashes, or ends the program, in each of them.
NULL_COMM = r"""
#include <mpi.h>
#include <stdio.h>
#define LINE(call) (MPI_Error_class(call, &class), right += class == MPI_ERR_COMM)
int main(int argc, char **argv)
{
	int flag, b[8], right = 0, class;
	MPI_Message m;
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	LINE(MPI_Probe(0, 0, MPI_COMM_NULL, MPI_STATUS_IGNORE));
	LINE(MPI_Iprobe(0, 0, MPI_COMM_NULL, &flag, MPI_STATUS_IGNORE));
	LINE(MPI_Mprobe(0, 0, MPI_COMM_NULL, &m, MPI_STATUS_IGNORE));
	LINE(MPI_Improbe(0, 0, MPI_COMM_NULL, &flag, &m, MPI_STATUS_IGNORE));
	LINE(MPI_Allgather(b, 1, MPI_INT, b + 4, 1, MPI_INT, MPI_COMM_NULL));
	printf("%d right\n", right);
	return MPI_Finalize();
}
"""


def a_null_communicator_that_open_mpi_does_not_survive():
    with tempfile.TemporaryDirectory() as folder:
        sites.programs(folder, NULL_COMM)
        for f in flavors():
            p = subprocess.run([f"{BUILD}/bin/pacxrun", "-n", "1+1", "--mpi", f, "--", f"{folder}/prog.{{mpi}}"], stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=60, text=True)
            assert (p.returncode, p.stdout) == (0, "5 right\n" * 2), p


def main():
    have = flavors()
    tests = [("each_error_names_function_argument_and_value_" + f,
              lambda f=f: each_error_names_function_argument_and_value(f + "+" + have[-1], TEXTS if f == have[0] else (0, 3, 10)))
             for f in have]
    if len(have) == 2:
        tests += [(t.__name__, t) for t in (vendors_constants_are_hinted_at, documented_constants_are_those_of_the_vendors)]
    sites.run([*tests, (a_null_communicator_that_open_mpi_does_not_survive.__name__, a_null_communicator_that_open_mpi_does_not_survive)])


if __name__ == "__main__":
    main()
