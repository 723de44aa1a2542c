#!/bin/sh
# check_layers: a file includes only lower floors (HOUSE rule). Prints each violation; exit 1 if there is one.
#   0 libpacx/base       libc only
#   1 libpacx/wire       floor 0; no sockets, no MPI
#   2 vendor, attach, datatype, typemap, match, channel, lock, find     native MPI, floors 0-1
#   3 comm, group, request, schedule, topo       4 operations, coll/, io/ and rma/       5 init, attr, bind
#   daemon/ uses floors 0-2 (of 2 only vendor and attach); libuv and libyaml only there
set -eu
cd "$(dirname "$0")/.."
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

forbid() { # forbid WHERE PATTERN WHY
	grep -nE "^#include [\"<]($2)[\">]" $1 2>/dev/null | sed "s|\$|   ($3)|" >>"$bad" || true
}

forbid "libpacx/base/*.[ch]" '(wire/)?(frame|hello|world|parser)\.h|.*mpi\.h|vendor.*|uv\.h|yaml\.h|sys/socket\.h' 'floor 0 includes libc only'
forbid "libpacx/wire/*.[ch]" '.*mpi\.h|vendor.*|attach\.h|uv\.h|yaml\.h|sys/socket\.h|netinet/.*' 'floor 1 knows no MPI and no sockets'
forbid "libpacx/native/*.[ch]" \
	'(comm|group|request|schedule|topo|p2p|coll|coll/coll|attr|bind|channel|match)\.h' 'floor 2 includes nothing above it'
forbid "libpacx/comm/*.h libpacx/comm/comm.c libpacx/p2p/request.h libpacx/coll/schedule.h" '(coll/)?coll\.h|io/.*|rma/.*|p2p\.h|attr\.h' 'floor 3 includes no operations'
forbid "libpacx/*/*.[ch]" 'uv\.h|yaml\.h|openssl/.*|(daemon/)?hostfile\.h' 'libuv, libyaml and TLS live in daemon/'
forbid "daemon/*/*.[ch]" '(libpacx/)?(comm|comm_find|group|request|schedule|topo|p2p|coll|channel|match|attr|bind|datatype)\.h' 'a daemon knows nothing of communicators'
# Only the two roles and what belongs to them know both sides; pacxrun knows no MPI at all.
forbid "daemon/pacxrun/*.[ch] daemon/pacxctl/*.[ch] daemon/hostfile/*.[ch] daemon/base/*.[ch] daemon/net/conn*.[ch] daemon/net/listen.[ch]" \
	'mpi\.h|vendor\.h|attach\.h' 'only the roles know the native MPI'
# Nothing but vendor.* and generated code names PMPI.
grep -nE '\bPMPI_' libpacx/*/*.c daemon/*/*.c | grep -vE '^libpacx/native/vendor\.c|^[^:]*:[0-9]+:\s*(/?\*|//)' | grep -vE '/\*.*PMPI_.*\*/|"[^"]*PMPI_|PMPI_##' | sed 's|$|   (only vendor names PMPI)|' >>"$bad" || true
# Basenames are unique, so that a name names one file.
git ls-files 'libpacx/**/*.[ch]' 'daemon/**/*.[ch]' | xargs -n1 basename | sort | uniq -d | sed 's|$|   (this basename stands twice)|' >>"$bad"

if [ -s "$bad" ]; then
	cat "$bad"
	exit 1
fi
