#!/bin/sh
# Hundreds of communicators alive, thousands made and freed, and the end of MPICH's room for them.
set -eu
. tests/apps/lib.sh
for pair in mpich+mpich openmpi+mpich; do
	run "many-$pair" -n 2+2 --mpi $pair -- "$B/{mpi}/tests/many" 500 3000 2500
	expect "many-$pair" "many: [1-9][0-9]* checks, 0 failed"
done
