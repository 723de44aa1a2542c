#!/bin/sh
# Processes that ranks start. Not in `make check`, and tried again: of 20 runs of Open MPI 4.1.4 alone, on a loaded machine, one did not
# come to an end.
set -eu
. tests/apps/lib.sh
try() { # try NAME pacxrun-arguments...
	name=$1
	shift
	for nth in 1 2 3; do
		if timeout "$limit" "$B/bin/pacxrun" "$@" </dev/null >"$tmp/$name" 2>&1; then
			break
		fi
		echo "$name: try $nth ended with another status, or not within $limit s:"
		tail -n 5 "$tmp/$name"
	done
	expect "$name" "spawn: [1-9][0-9]* checks, 0 failed"
}
limit=60
for pair in openmpi+mpich openmpi+openmpi; do
	try "spawn-$pair" -n 2+2 --mpi $pair -- "$B/{mpi}/tests/spawn"
done
# From all of MPI_COMM_WORLD, at the site that is named: the root's own MPI starts nothing.
try spawn-site -n 2+2 --mpi openmpi+mpich -- "$B/{mpi}/tests/spawn" left "$B/openmpi/tests/spawn"
try spawn-three -n 1+1+2 --mpi openmpi+openmpi+openmpi -- "$B/{mpi}/tests/spawn"
# More bytes than an int counts, between a child and the parent at the other site.
limit=600
try spawn-huge -n 1+1 --mpi openmpi+openmpi --link 'security: none' -- "$B/{mpi}/tests/spawn" left "$B/openmpi/tests/spawn" 2200000000
limit=60
export PACX_PROGRESS=poll
try spawn-poll -n 2+2 --mpi openmpi+openmpi -- "$B/{mpi}/tests/spawn"
