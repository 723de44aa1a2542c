#!/bin/sh
# 64 sites of one rank, 4,032 links: they start, race each other's any-source receives, and end, within two minutes.
set -eu
. tests/apps/lib.sh
sites=1 mpis=openmpi
while [ ${#sites} -lt 127 ]; do
	sites=$sites+1
	case $mpis in *openmpi) mpis=$mpis+mpich ;; *) mpis=$mpis+openmpi ;; esac
done
for mpi in openmpi mpich $mpis; do
	start=$(date +%s)
	run 64-sites -n $sites --mpi "$mpi" -- "$B/{mpi}/tests/p2p_any" 2
	expect 64-sites "p2p_any: 53248 checks, 0 failed"
	took=$(($(date +%s) - start))
	echo "64 sites: $took s"
	[ $took -lt 120 ]
done
