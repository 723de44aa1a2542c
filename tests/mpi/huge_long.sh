#!/bin/sh
# One message of more than 2 GiB between sites, contiguous and not, each vendor pair.
# And one element of a datatype of more than 2^31 bytes, broadcasts, reductions, every collective that moves data (large.c).
set -eu
. tests/apps/lib.sh
for pair in openmpi+mpich mpich+openmpi; do
	run "huge-$pair" -n 1+1 --mpi $pair -- "$B/{mpi}/tests/huge" 2200000000
	expect "huge-$pair" "huge: [1-9][0-9]* checks, 0 failed"
done
run large-2+1 -n 2+1 --mpi openmpi+mpich -- "$B/{mpi}/tests/large" 3300000000
expect large-2+1 "large: [1-9][0-9]* checks, 0 failed"
# Without TLS, for time. No reductions at 2+1: they take 2.2 GB several times at each rank.
for pair in openmpi mpich openmpi+mpich; do
	run "large-$pair" -n 1+1 --mpi $pair --link 'security: none' -- "$B/{mpi}/tests/large" 2200000000
	expect "large-$pair" "large: [1-9][0-9]* checks, 0 failed"
done
run large-mpich-2+1 -n 2+1 --mpi mpich+openmpi --link 'security: none' -- "$B/{mpi}/tests/large" 2200000000 \
	-allreduce -allreduce_c -scan -reduce_scatter -reduce_scatter_block
expect large-mpich-2+1 "large: [1-9][0-9]* checks, 0 failed"
# MPI_Ibcast of MPICH 4.0.2 fails at this size; without a hook in blocking calls broadcasts inside sites are nonblocking ones.
export PACX_PROGRESS=poll
run large-poll -n 2+1 --mpi mpich --link 'security: none' -- "$B/{mpi}/tests/large" 2200000000 bcast
expect large-poll "large: [1-9][0-9]* checks, 0 failed"
