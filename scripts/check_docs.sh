#!/bin/sh
# check_docs: the documents agree with the code: options of pacxrun, hostfile keys, make targets and files that README names,
# the coverage page, man page syntax. usage: check_docs.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
B=${1:-build}
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

"$B/bin/pacxrun" --help | grep -oE '(^|[ ,])--[a-z]+' | tr -d ' ,' | sort -u | while read -r opt; do
	grep -qE "Fl -?${opt#--}|Fl \\\\-\\\\-${opt#--}|${opt}" daemon/pacxrun/pacxrun.1 || echo "pacxrun.1 does not describe $opt"
done >>"$bad"
"$B/bin/pacxctl" --help | grep -oE '(^|[ ,])--[a-z]+|^ +pacxctl [a-z]+|^usage: pacxctl [a-z]+' | sed 's/.* //;s/^--//' | sort -u | while read -r word; do
	grep -qwE "$word" daemon/pacxctl/pacxctl.1 || echo "pacxctl.1 does not describe $word"
done >>"$bad"
for key in job sites files name host port bind ranks mpi exe args env daemons start links between default deadlines \
	gateways listen buffer key streams compress security tcp congestion source_port dial proxy relay reconnect emulate latency rate; do
	grep -qw "$key" hostfiles/pacx-hostfile.5 || echo "pacx-hostfile.5 does not describe $key"
done >>"$bad"
grep -oE '(^|[ `(])(libpacx|daemon|scripts|hostfiles|tests)/[a-zA-Z0-9_/.*-]*[a-zA-Z0-9*]' README.md CONTRIBUTING.md daemon/*.md | sed 's/^[^:]*:[ `(]*//' | sort -u | while read -r f; do
	# shellcheck disable=SC2086
	ls $f >/dev/null 2>&1 || echo "README, CONTRIBUTING or a page in daemon/ names $f, which does not exist"
done >>"$bad"
scripts/check_api.py --table >"$bad.code"
cmp -s libpacx/COVERAGE.md "$bad.code" || echo "libpacx/COVERAGE.md is not what scripts/check_api.py --table prints: run it again" >>"$bad"
rm -f "$bad.code"
if command -v mandoc >/dev/null 2>&1; then
	mandoc -Tlint -Wwarning include/*.3 daemon/*/*.1 daemon/*/*.8 hostfiles/*.5 >>"$bad" 2>&1 || true
fi
for f in hostfiles/*.yml hostfiles/*.pacx; do
	"$B/bin/pacxrun" --check -f "$f" -- true >/dev/null 2>"$bad.err" || { echo "$f does not pass pacxrun --check:"; cat "$bad.err"; } >>"$bad"
	rm -f "$bad.err"
done

if [ -s "$bad" ]; then
	cat "$bad"
	exit 1
fi
