#!/bin/sh
# check_layers: arrows between rooms run one way. Prints each include that runs up, and each foreign header where it does not belong;
# exit 1 if there is one. A room is a folder of libpacx/ or daemon/.
set -eu
cd "$(dirname "$0")/.."
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

# room: the rooms it may include; what those may include, it may, too.
rooms='
libpacx/base:
libpacx/wire: libpacx/base
libpacx/native: libpacx/wire
libpacx/data: libpacx/native
libpacx/p2p: libpacx/data
libpacx/coll: libpacx/p2p
libpacx/comm: libpacx/coll
libpacx/io: libpacx/comm
libpacx/rma: libpacx/comm
libpacx/start: libpacx/io libpacx/rma
libpacx/fortran: libpacx/start
daemon/base: libpacx/wire
daemon/hostfile: daemon/base
daemon/net: daemon/hostfile
daemon/link: daemon/net
daemon/pacxd: daemon/link libpacx/native
daemon/pacxctl: daemon/link
daemon/pacxrun: daemon/net
'
files=$(ls libpacx/*/*.[ch] daemon/*/*.[ch])

# shellcheck disable=SC2086
echo "$rooms" | awk -v files="$files" '
	function room(path) { sub(/\/[^\/]*$/, "", path); return path }
	function base(path) { sub(/.*\//, "", path); return path }
	function below(a, b,    i, n, at) { # may a include b?
		if (a == b)
			return 1
		n = split(may[a], at, " ")
		for (i = 1; i <= n; i++)
			if (below(at[i], b))
				return 1
		return 0
	}
	NF { key = $1; sub(/:$/, "", key); known[key] = 1; $1 = ""; may[key] = $0 }
	END {
		n = split(files, path, /[ \n]+/)
		for (i = 1; i <= n; i++)
			of[base(path[i])] = room(path[i])
		for (i = 1; i <= n; i++) {
			here = room(path[i])
			if (!(here in known))
				print path[i] ": its room is not in the table of check_layers"
			for (line = 1; (getline text < path[i]) > 0; line++)
				if (text ~ /^#include "/) {
					split(text, part, "\"")
					there = of[base(part[2])]
					if (there != "" && !below(here, there))
						print path[i] ":" line ": " text "   (" here " may not include " there ")"
				}
			close(path[i])
		}
	}' >>"$bad"

forbid() { # forbid WHERE PATTERN WHY: headers that are not ours
	# shellcheck disable=SC2086
	grep -nE "^#include [\"<]($2)[\">]" $1 2>/dev/null | sed "s|\$|   ($3)|" >>"$bad" || true
}

forbid "libpacx/base/*.[ch] libpacx/wire/*.[ch]" '.*mpi\.h|sys/socket\.h|netinet/.*' 'the two lowest rooms know no MPI and no sockets'
forbid "libpacx/*/*.[ch]" 'uv\.h|yaml\.h|openssl/.*' 'libuv, libyaml and TLS live in daemon/'
forbid "daemon/base/*.[ch] daemon/hostfile/*.[ch] daemon/net/*.[ch] daemon/link/*.[ch] daemon/pacxrun/*.[ch] daemon/pacxctl/*.[ch]" 'mpi\.h' 'only pacxd knows the native MPI'
# Nothing but vendor.* and generated code names PMPI.
grep -nE '\bPMPI_' libpacx/*/*.c daemon/*/*.c | grep -vE '^libpacx/native/vendor\.c|^[^:]*:[0-9]+:\s*(/?\*|//)' | grep -vE '/\*.*PMPI_.*\*/|"[^"]*PMPI_|PMPI_##' | sed 's|$|   (only vendor names PMPI)|' >>"$bad" || true
# Basenames are unique, so that a name names one file.
echo "$files" | sed 's|.*/||' | sort | uniq -d | sed 's|$|   (this basename stands twice)|' >>"$bad"

if [ -s "$bad" ]; then
	cat "$bad"
	exit 1
fi
