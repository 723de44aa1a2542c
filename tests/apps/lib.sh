# lib.sh: what the application tests share; sourced. B = build folder, tmp = scratch folder, removed at the end.
# An application test is one test of tests/run: exit 0 passed, 77 skipped with a reason in the last line, else failed.
B=${PACX_BUILD:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 143' TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

need() { # need PROGRAM-OR-FILE PACKAGE
	command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || { echo "$1 is not there: apt-get install $2"; exit 77; }
}

run() { # run NAME pacxrun-arguments...: output in $tmp/NAME, shown when it fails
	name=$1
	shift
	"$B/bin/pacxrun" "$@" </dev/null >"$tmp/$name" 2>&1 && return
	echo "pacxrun $* ended with status $?"
	tail -n 40 "$tmp/$name"
	exit 1
}

expect() { # expect NAME PATTERN [TIMES]: at least TIMES (1) lines of the output match
	n=$(grep -cE "$2" "$tmp/$1" || true)
	[ "$n" -ge "${3:-1}" ] && return
	echo "$1: $n lines match '$2', ${3:-1} expected"
	tail -n 40 "$tmp/$1"
	exit 1
}

refuse() { # refuse NAME PATTERN: no line of the output matches
	grep -qE "$2" "$tmp/$1" || return 0
	echo "$1: unexpected:"
	grep -E "$2" "$tmp/$1" | head
	exit 1
}
