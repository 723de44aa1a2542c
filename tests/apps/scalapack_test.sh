#!/bin/sh
# ScaLAPACK's own test programs of both flavours on two and three sites: every residual check must pass.
set -eu
. tests/apps/lib.sh
S=/usr/lib/x86_64-linux-gnu/scalapack
need $S/openmpi-tests/xdlu scalapack-mpi-test
programs=${PROGRAMS:-"xdpbllt xdbrd"}
for f in openmpi mpich; do
	for p in $programs; do
		[ -x $S/$f-tests/$p ] || continue
		for sites in 2+2 1+2+1; do
			# The tests read their .dat files from the current folder.
			(cd $S/$f-tests && B=$(cd "$OLDPWD" && realpath "$B") && "$B/bin/pacxrun" -n $sites --mpi $f -- ./$p </dev/null) >"$tmp/out" 2>&1 || {
				echo "$p ($f, $sites) ended with status $?"
				tail -n 30 "$tmp/out"
				exit 1
			}
			cp "$tmp/out" "$tmp/$p-$f-$sites"
			expect "$p-$f-$sites" "[1-9][0-9]* tests completed and passed residual checks|[1-9][0-9]* tests completed without checking"
			expect "$p-$f-$sites" " 0 tests completed and failed residual checks"
		done
	done
done
