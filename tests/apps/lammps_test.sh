#!/bin/sh
# LAMMPS's melt on two and three sites gives the thermo table of a plain run with the same decomposition.
set -eu
. tests/apps/lib.sh
need lmp lammps
for i in 1 2; do
	mpirun.openmpi --oversubscribe --bind-to none -np 4 lmp -in tests/apps/in.melt -log none </dev/null >"$tmp/plain$i"
done
run two -n 2+2 --mpi openmpi -- lmp -in tests/apps/in.melt -log none
tests/apps/thermo.py "$tmp/plain1" "$tmp/plain2" "$tmp/two"
run three -n 1+2+1 --mpi openmpi -- lmp -in tests/apps/in.melt -log none
tests/apps/thermo.py "$tmp/plain1" "$tmp/plain2" "$tmp/three"
# The input through standard input, which every LAMMPS user does.
"$B/bin/pacxrun" -n 2+2 --mpi openmpi -- lmp -log none <tests/apps/in.melt >"$tmp/stdin"
tests/apps/thermo.py "$tmp/plain1" "$tmp/plain2" "$tmp/stdin"
