#!/bin/sh
# Shortest paths and a pivoted QR factorisation, the applications of MagPIe's paper, on two to eight sites: results are right, every broadcast and
# allreduce costs one latency between sites, and nothing goes to a site twice.
. "$(dirname "$0")/lib.sh"
for v in openmpi mpich; do
	need mpicc.$v lib$v-dev
	for p in asp qr; do
		mpicc.$v -O1 -o "$tmp/$p.$v" tests/apps/$p.c -lm || exit 1
	done
done

counted() { # counted NAME SITES OPERATION CALLS MESSAGES: of each call, between all sites together
	python3 - "$tmp/$1.json" "$@" <<-'END' || exit 1
		import json, sys
		path, name, sites, op, calls, messages = sys.argv[1:]
		stats = [s[op] for s in json.load(open(path))["collectives"].values()]
		got = [sorted({s["calls"] for s in stats}), sum(s["messages"] for s in stats), max(s["latencies"] for s in stats)]
		expected = [[int(calls)], int(calls) * int(messages), 1]
		if got != expected:
		    sys.exit(f"{name} on {sites}: {op}: calls, messages, latencies {got}, expected {expected}")
	END
}

for way in "3+2 openmpi+mpich" "2+1+2 mpich+openmpi+mpich" "1+1+1+1+1+1+1+1 mpich"; do
	# shellcheck disable=SC2086
	set -- $way
	parts=$(echo "$1" | tr + '\n' | wc -l)
	for p in asp qr; do
		run $p-"$1" -n "$1" --mpi "$2" --stats "$tmp/$p-$1.json" -- "$tmp/$p.{mpi}"
		expect $p-"$1" ' 0 (distances|values) wrong'
	done
	counted asp-"$1" "$1" bcast 96 $((parts - 1))
	counted qr-"$1" "$1" bcast 40 $((parts - 1))
	counted qr-"$1" "$1" allreduce 40 $((parts * (parts - 1)))
done
