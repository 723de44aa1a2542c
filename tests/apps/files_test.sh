#!/bin/sh
# MPI files that are not shared: carried to the first or another site, of either vendor; or one at each site, which has what
# the ranks there have written.
. "$(dirname "$0")/lib.sh"
need mpicc.openmpi libopenmpi-dev
need mpicc.mpich libmpich-dev

run left -n 2+1 --mpi openmpi+mpich --files left -- "$B/{mpi}/tests/files" "$tmp"
expect left ' checks, 0 failed'
run right -n 2+2 --mpi openmpi+mpich --files right -- "$B/{mpi}/tests/files" "$tmp"
expect right ' checks, 0 failed'
run slow -n 1+2+1 --mpi openmpi --files site2 --link 'emulate: {latency: 5ms}' -- "$B/{mpi}/tests/files" "$tmp"
expect slow ' checks, 0 failed'
run rep -n 2+2 --mpi openmpi+mpich --files right -- "$B/{mpi}/tests/files_rep" "$tmp"
expect rep ' checks, 0 failed'
# A component that calls MPI by its public names: romio321 in Open MPI 4.1, romio341 in 5.0.
OMPI_MCA_io=$(ompi_info --parsable | sed -n 's/^mca:io:\(romio[0-9]*\):.*/\1/p' | head -1)
export OMPI_MCA_io
run romio -n 2+1 --mpi openmpi --files right -- "$B/{mpi}/tests/files" "$tmp"
expect romio ' checks, 0 failed'
unset OMPI_MCA_io
mkdir "$tmp/at" "$tmp/at/left" "$tmp/at/right"
run local -n 2+2 --mpi openmpi+mpich --files local -- "$B/{mpi}/tests/files_local" "$tmp/at/{site}/data"
expect local ' checks, 0 failed'
python3 - "$tmp" <<'END' || exit 1
import array, sys
size, n = 4, 100
for site, ranks in ("left", {0, 1}), ("right", {2, 3}):
    got = array.array("i")
    got.frombytes(open(f"{sys.argv[1]}/at/{site}/data", "rb").read())
    # What nobody here has written is undefined: ROMIO's collective buffers leave anything there.
    mine = [i for i in range(size * (n + 1)) if i % size in ranks]
    if any(i >= len(got) or got[i] != i + 1 for i in mine):
        sys.exit(f"{site}: not what ranks {ranks} have written")
END
rm -r "$tmp/at/right"
run absent -n 2+2 --mpi mpich+openmpi --files local -- "$B/{mpi}/tests/files_local" "$tmp/at/{site}/data" absent
expect absent ' checks, 0 failed'
