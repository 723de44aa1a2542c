#!/bin/sh
# Both start forms and both places of the daemons, on both vendors: the same right answers.
set -eu
. tests/apps/lib.sh
. tests/daemon/lines.sh
forms="mpmd single"
mpmd openmpi || { echo "skip mpmd: the launcher of this Open MPI dies of two programs in one line"; forms=single; }
for form in $forms; do
	for place in first last; do
		for pair in openmpi+mpich mpich+openmpi; do
			run "$form-$place-$pair" -n 2+2 --mpi $pair --form $form --daemons $place -- "$B/{mpi}/tests/p2p_modes" 70000
			expect "$form-$place-$pair" "p2p_modes: [1-9][0-9]* checks, 0 failed"
			echo hello >"$tmp/in"
			out=$("$B/bin/pacxrun" -n 1+1 --mpi $pair --form $form --daemons $place -- "$B/{mpi}/tests/stdin_rank0" <"$tmp/in")
			echo "$out" | grep -q "stdin_rank0: [1-9][0-9]* checks, 0 failed" || { echo "$form $place $pair: $out"; exit 1; }
		done
	done
done
