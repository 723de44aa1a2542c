#!/bin/sh
# Debian's parallel HDF5 over two and three sites: on a file that all see, and on one that is carried between sites. It gives the same
# bytes as natively.
. "$(dirname "$0")/lib.sh"
for v in openmpi mpich; do
	need mpicc.$v lib$v-dev
	need /usr/include/hdf5/$v/hdf5.h libhdf5-$v-dev
	# shellcheck disable=SC2046
	mpicc.$v -o "$tmp/hdf5.$v" tests/apps/hdf5.c $(pkg-config --cflags --libs hdf5-$v) || exit 1
done

run one -n 4 --mpi openmpi -- "$tmp/hdf5.{mpi}" "$tmp/one.h5"
expect one '4 ranks, 0 values wrong'
n=0
for way in "2+2 openmpi shared" "1+3 mpich shared" "2+1+1 openmpi+mpich+openmpi shared" "2+2 mpich+openmpi right" "2+2 openmpi+mpich left"; do
	# shellcheck disable=SC2086
	set -- $way
	n=$((n + 1))
	run $n -n "$1" --mpi "$2" --files "$3" -- "$tmp/hdf5.{mpi}" "$tmp/$n.h5"
	expect $n '4 ranks, 0 values wrong'
	cmp -s "$tmp/one.h5" "$tmp/$n.h5" || { echo "$way: the file differs from that of one site"; exit 1; }
done
