#!/bin/sh
# Sites that are started by hand, in any order: with the lines of --env, with nothing but PACX_HOSTFILE and
# PACX_SITE, and with pacxrun --site. The ranks of both must find themselves in one world.
set -u
BUILD=$(cd "${PACX_BUILD:-build}" && pwd) || exit 1
mpi=openmpi
command -v mpicc.$mpi >/dev/null || mpi=mpich
command -v mpicc.$mpi >/dev/null || { echo "no MPI"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
over=
[ $mpi = openmpi ] && over="--oversubscribe --bind-to none"
. tests/daemon/lines.sh
D=$(mktemp -d /tmp/pacx-byhand-XXXXXX)
trap 'rm -rf "$D"' EXIT
cat >"$D/size.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int rank, size, sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("%d/%d %d\n", rank, size, sum);
	return MPI_Finalize();
}
END
mpicc.$mpi -o "$D/size" "$D/size.c" || exit 1
set -- $(python3 "$(dirname "$0")/ports.py" 2)
"$BUILD/bin/pacxctl" keygen "$D/key" || exit 1
cat >"$D/hosts.yml" <<END
sites:
  - {name: left, host: 127.0.0.1, port: $1, ranks: 2, mpi: $mpi, start: manual, key: $D/key}
  - {name: right, host: 127.0.0.1, port: $2, ranks: 1, mpi: $mpi, key: $D/key}
deadlines: {start: 40s}
END
launch() { # N: the site's own mpirun
	if mpmd $mpi; then
		mpirun.$mpi $over -np "$1" env LD_PRELOAD="$BUILD/lib/libpacx-$mpi.so" "$D/size" : -np 2 "$BUILD/bin/pacxd" </dev/null
	else
		export PACX_FORM=single
		mpirun.$mpi $over -np "$(($1 + 2))" env LD_PRELOAD="$BUILD/lib/libpacx-$mpi.so" "$D/size" </dev/null
	fi
}
left_env() { (eval "$("$BUILD/bin/pacxrun" -f "$D/hosts.yml" --site left --env)" && launch 2); }
left_hostfile() { (export PACX_HOSTFILE="$D/hosts.yml" PACX_SITE=left && launch 2); }
right_hostfile() { (export PACX_HOSTFILE="$D/hosts.yml" PACX_SITE=right && launch 1); }
right_pacxrun() { "$BUILD/bin/pacxrun" -f "$D/hosts.yml" --site right -- "$D/size" </dev/null; }
all_pacxrun() { "$BUILD/bin/pacxrun" -f "$D/hosts.yml" -- "$D/size" </dev/null; }
want=$(printf '0/3 3\n1/3 3\n2/3 3')
failed=0
for pair in "left_env right_pacxrun" "right_hostfile left_hostfile" "right_pacxrun left_hostfile" "all_pacxrun left_env"; do
	set -- $pair
	$1 >"$D/1" 2>"$D/1e" &
	first=$!
	sleep 1 # no synchronisation: the order of the start is what is tested
	$2 >"$D/2" 2>"$D/2e"
	rc2=$?
	wait $first
	rc1=$?
	if [ "$(sort "$D/1" "$D/2")" = "$want" ] && [ "$rc1$rc2" = 00 ]; then
		echo "ok $1 then $2"
	else
		echo "not ok $1 then $2 (status $rc1 and $rc2)"
		cat "$D/1" "$D/1e" "$D/2" "$D/2e"
		failed=1
	fi
done
exit $failed
