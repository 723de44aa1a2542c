#!/bin/sh
# Debian's h5py (which is built for Open MPI) over two and three sites: on a file that all see, and on one that is carried between sites. It
# gives the same bytes as natively.
. "$(dirname "$0")/lib.sh"
need mpirun.openmpi openmpi-bin
need /usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi python3-h5py-mpi

mpirun.openmpi --oversubscribe -np 4 /usr/bin/python3 tests/apps/h5py_rows.py "$tmp/native.h5" </dev/null >"$tmp/native" 2>&1
expect native '^4 ranks, 0 values wrong'
n=0
for way in "2+2 shared" "1+3 right" "3+1 left" "2+1+1 shared" "1+2+1 site3"; do
	# shellcheck disable=SC2086
	set -- $way
	n=$((n + 1))
	run $n -n "$1" --mpi openmpi --files "$2" -- /usr/bin/python3 tests/apps/h5py_rows.py "$tmp/$n.h5"
	expect $n '^4 ranks, 0 values wrong'
	cmp "$tmp/native.h5" "$tmp/$n.h5" || { echo "$way: the file differs from the native one"; exit 1; }
done
