#!/bin/sh
# One message of more than 2 GiB between sites, contiguous and not, each vendor pair.
set -eu
. tests/apps/lib.sh
for pair in openmpi+mpich mpich+openmpi; do
	run "huge-$pair" -n 1+1 --mpi $pair -- "$B/{mpi}/tests/huge" 2200000000
	expect "huge-$pair" "huge: [1-9][0-9]* checks, 0 failed"
done
