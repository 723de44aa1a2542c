#!/bin/sh
# Any-source receives with local and remote senders racing, mixed sizes: 100,800 messages per vendor pair, every byte checked.
set -eu
. tests/apps/lib.sh
for pair in openmpi+openmpi mpich+mpich openmpi+mpich mpich+openmpi; do
	run "races-$pair" -n 3+3 --mpi $pair -- "$B/{mpi}/tests/p2p_any" ${MESSAGES:-2800}
	expect "races-$pair" "p2p_any: [1-9][0-9]* checks, 0 failed"
	echo "$pair: $(grep checks "$tmp/races-$pair")"
done
