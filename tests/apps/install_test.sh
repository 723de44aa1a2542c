#!/bin/sh
# install_test: what `make install` leaves behind works from where it lies: the programs couple two sites, pacx.h and pacx.pc serve a
# program of each vendor, and that program runs without PACX, too.
set -eu
cd "$(dirname "$0")/../.."
. tests/apps/lib.sh
need pkg-config pkg-config
make -s install B="$B" DESTDIR="$tmp/root" PREFIX=/opt/pacx >"$tmp/install" 2>&1 || { cat "$tmp/install"; exit 1; }
cat >"$tmp/where.c" <<'END'
#include <pacx.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int rank, n;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_LOCAL, &n);
	printf("rank %d site %d %s of %d with %d\n", rank, pacx_site_of(rank), pacx_site_name(pacx_site_of(rank)), pacx_sites(), n);
	return MPI_Finalize();
}
END
flags=$(PKG_CONFIG_PATH=$tmp/root/opt/pacx/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tmp/root pkg-config --cflags pacx)
for mpi in openmpi mpich; do
	command -v mpicc.$mpi >/dev/null || continue
	# shellcheck disable=SC2086
	mpicc.$mpi $flags -Wall -Wextra -Werror -o "$tmp/where" "$tmp/where.c"
	"$tmp/root/opt/pacx/bin/pacxrun" -n 1+2 --mpi $mpi -- "$tmp/where" </dev/null >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
	expect out '^rank 0 site 0 .* of 2 with 1$'
	expect out '^rank [12] site 1 .* of 2 with 2$' 2
	mpirun.$mpi -np 1 "$tmp/where" </dev/null >"$tmp/plain" 2>&1 || { cat "$tmp/plain"; exit 1; }
	expect plain '^rank 0 site 0 local of 1 with 1$'
done
