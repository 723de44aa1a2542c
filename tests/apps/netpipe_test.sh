#!/bin/sh
# NetPIPE between two sites, same vendor and one on each side, with its integrity check and as a measurement.
set -eu
. tests/apps/lib.sh
need NPopenmpi netpipe-openmpi
need NPmpich2 netpipe-mpich2
ln -s "$(command -v NPopenmpi)" "$tmp/np.openmpi"
ln -s "$(command -v NPmpich2)" "$tmp/np.mpich"
for pair in openmpi+openmpi mpich+mpich openmpi+mpich mpich+openmpi; do
	run "integrity-$pair" -n 1+1 --mpi $pair -- "$tmp/np.{mpi}" -i -u 262144 -o "$tmp/np.out"
	refuse "integrity-$pair" "[Ii]ntegrity check failed"
	expect "integrity-$pair" "bytes.*times.*[Ii]ntegrity check passed|Integrity check passed" 10
	run "measure-$pair" -n 1+1 --mpi $pair -- "$tmp/np.{mpi}" -u 1048576 -n 20 -o "$tmp/np.out"
	expect "measure-$pair" "1048576 bytes .*Mbps" 1
done
