#!/bin/sh
# What programs do with windows: Debian's Global Arrays, and tests of its OpenCoarrays (coarray Fortran), over two sites.
. "$(dirname "$0")/lib.sh"
lib=/usr/lib/$(gcc -print-multiarch)
for v in openmpi mpich; do
	need mpicc.$v lib$v-dev
	need "$lib/libga-$v.a" libglobalarrays-dev
	need "$lib/libarmci-$v.a" libarmci-mpi-dev
	need "$lib/libscalapack-$v.so.2.2" scalapack-mpi-test
	need "$lib/open-coarrays/$v/bin" libcoarrays-$v-dev
	mpicc.$v -o "$tmp/ga.$v" tests/apps/ga.c -lga-$v -larmci-$v "$lib/libscalapack-$v.so.2.2" -llapack -lblas -lm -lgfortran || exit 1
done

for way in "2+2 openmpi" "2+2 mpich" "3+1 openmpi+mpich" "1+1+2 mpich+openmpi+openmpi"; do
	# shellcheck disable=SC2086
	set -- $way
	run "ga-$1-$2" -n "$1" --mpi "$2" -- "$tmp/ga.{mpi}"
	expect "ga-$1-$2" '4 ranks, 0 values wrong, counter right'
done
for v in openmpi mpich; do
	for t in allocatable_p2p_event_post atomics get_with_offset_1d get_with_vector_index increment_my_neighbor strided_get \
		syncall syncimages teams_subset; do
		run "$t-$v" -n 2+2 --mpi $v -- "$lib/open-coarrays/$v/bin/OpenCoarrays-2.10.1-tests/$t"
		expect "$t-$v" 'Test passed'
	done
done
