#!/bin/sh
# One message of more than 2 GiB between sites, contiguous and not, each vendor pair.
# And one element of a datatype of more than 2^31 bytes, broadcasts, reductions, every collective that moves data (large.c).
set -eu
. tests/apps/lib.sh
for pair in openmpi+mpich mpich+openmpi; do
	run "huge-$pair" -n 1+1 --mpi $pair -- "$B/{mpi}/tests/huge" 2200000000
	expect "huge-$pair" "huge: [1-9][0-9]* checks, 0 failed"
done
for pair in openmpi mpich openmpi+mpich; do
	run "large-$pair" -n 1+1 --mpi $pair -- "$B/{mpi}/tests/large" 2200000000
	expect "large-$pair" "large: [1-9][0-9]* checks, 0 failed"
done
run large-2+1 -n 2+1 --mpi openmpi+mpich -- "$B/{mpi}/tests/large" 3300000000
expect large-2+1 "large: [1-9][0-9]* checks, 0 failed"
