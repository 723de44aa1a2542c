#!/bin/sh
# An mpi4py script with pickled and buffer objects on two and three sites.
set -eu
. tests/apps/lib.sh
need /usr/bin/python3 python3
/usr/bin/python3 -c 'import mpi4py, numpy' 2>/dev/null || { echo "mpi4py or numpy is not there: apt-get install python3-mpi4py python3-numpy"; exit 77; }
for sites in 2+2 1+2+2; do
	run "py-$sites" -n $sites --mpi openmpi -- /usr/bin/python3 tests/mpi/mpi4py_basic.py
	expect "py-$sites" "[1-9][0-9]* checks, 0 failed"
done
