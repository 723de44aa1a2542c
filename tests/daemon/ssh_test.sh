#!/bin/sh
# Sites behind a real sshd on loopback, as root and as an ordinary user: the environment, odd arguments, standard
# input, exit status, signals, and with {guard} no orphans when ssh is killed. Needs root (it makes a user for the time of the test).
set -u
export PACX_RECORDS=no # most of what is started here is no MPI program
. tests/daemon/lines.sh
[ "$(id -u)" = 0 ] || { echo "needs root to run an sshd for another user"; exit 77; }
[ -x /usr/sbin/sshd ] && command -v ssh >/dev/null || { echo "no sshd"; exit 77; }
D=$(mktemp -d /tmp/pacx-ssh-XXXXXX)
BUILD=$D/build
USER_MADE=pacxt$$
failed=0
sshd=
finish() {
	[ -n "$sshd" ] && kill "$sshd" 2>/dev/null
	for p in $(pgrep -u "$USER_MADE"); do kill -9 "$p"; done
	# Sessions of the user may need a moment to be gone.
	for i in 1 2 3 4 5 6 7 8 9 10; do
		userdel -r "$USER_MADE" >/dev/null 2>&1
		id "$USER_MADE" >/dev/null 2>&1 || break
		sleep 0.3
	done
	rm -rf "$D" "/tmp/pacx-ssh-job.$$"
}
trap finish EXIT
trap 'exit 1' INT TERM
check() { # NAME GOT EXPECTED
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		printf '  got:\n%s\n  expected:\n%s\nnot ok %s\n' "$2" "$3" "$1"
		failed=1
	fi
}

useradd -p '*' -m -s /bin/sh "$USER_MADE" || { echo "cannot make a user"; exit 77; }
chmod 755 "$D"
# A copy, as this tree may be where root alone may look, below /root.
mkdir "$BUILD" && cp -R "${PACX_BUILD:-build}/bin" "${PACX_BUILD:-build}/lib" "$BUILD" && chmod -R a+rX "$BUILD" || exit 1
ssh-keygen -q -t ed25519 -N '' -f "$D/host" && ssh-keygen -q -t ed25519 -N '' -f "$D/key" || exit 1
mkdir "$D/user" && cp "$D/key" "$D/user/key" && cp "$D/key.pub" "$D/authorized" && chmod 644 "$D/authorized"
read -r PORT P1 P2 <<END
$(python3 "$(dirname "$0")/ports.py" 3)
END
mkdir -p /run/sshd
cat >"$D/sshd_config" <<END
Port $PORT
ListenAddress 127.0.0.1
HostKey $D/host
AuthorizedKeysFile $D/authorized
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
PidFile none
END
/usr/sbin/sshd -D -f "$D/sshd_config" -E "$D/sshd.log" &
sshd=$!
cat >"$D/ssh_config" <<END
Host *
  Port $PORT
  IdentityFile $D/user/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
for i in $(seq 100); do
	ssh -F "$D/ssh_config" 127.0.0.1 true 2>/dev/null && break
	sleep 0.1
done
cat >"$D/show" <<'END'
#!/bin/sh
echo "$PACX_SITE $PACX_BASE $PACX_FORM $(id -un) ${LD_PRELOAD##*/} $(printf '%s' "$PACX_PLAN" | cut -c1-9)"
echo "$X"
printf '<%s>' "$@"
echo
cat
exit 6
END
chmod 755 "$D/show"
job() { # SECOND-START [OPTION...]: hostfile of two sites, the first local
	cat >"$D/hosts.yml" <<END
sites:
  - {name: here, host: 127.0.0.1, port: $P1, ranks: 1, mpi: openmpi, start: "true {app}"}
  - name: there
    host: 127.0.0.1
    port: $P2
    ranks: 2
    mpi: openmpi
    env: {X: "x  y'\$z"}
    start: |
      $1
$LINKS
END
}
SSH="ssh -F $D/ssh_config"
ARGS="a  b|it's|\"q\"|\$HOME|\`id\`|*|new
line|"
run() {
	"$BUILD/bin/pacxrun" -f "$D/hosts.yml" -- "$D/show" "a  b" "it's" '"q"' '$HOME' '`id`' '*' 'new
line' '' 2>"$D/err"
	echo "status $?"
}
shown() { # USER
	printf "there 1 single %s libpacx-openmpi.so {sites: [\nx  y'\$z\n" "$1"
	printf '<%s>' "a  b" "it's" '"q"' '$HOME' '`id`' '*' 'new
line' ''
	printf '\nstatus 6\n'
}
# Once with a key, which {key} reads before the program does, once without, when {key} is nothing.
LINKS=
for who in root "$USER_MADE"; do
	job "$SSH $who@127.0.0.1 {key} {app}"
	check "ssh_$who" "$(run)" "$(shown "$who")"
	job "$SSH $who@127.0.0.1 'cd / && {key} {app}'"
	check "ssh_in_quotes_$who" "$(run)" "$(shown "$who")"
	job "$SSH $who@127.0.0.1 {guard} {key} {app}"
	check "ssh_guard_$who" "$(run)" "$(shown "$who")"
	job "$SSH root@127.0.0.1 $SSH $who@127.0.0.1 {key} {app}"
	check "ssh_through_ssh_$who" "$(run)" "$(shown "$who")"
	LINKS='links: [{default: , security: none}]'
done

# A real MPI job: both sites behind ssh, at an ordinary user's, in both forms of start.
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
	printf("%d/%d %d %s\n", rank, size, sum, argv[1]);
	return MPI_Finalize();
}
END
for mpi in openmpi mpich; do
	command -v mpicc.$mpi >/dev/null && [ -e "$BUILD/lib/libpacx-$mpi.so" ] || continue
	mpicc.$mpi -o "$D/size.$mpi" "$D/size.c" || exit 1
	over=
	[ $mpi = openmpi ] && over="--oversubscribe --bind-to none --mca btl ^tcp" # tcp: Open MPI 5 warns of it on some machines
	cat >"$D/hosts.yml" <<END
sites:
  - {name: a, host: 127.0.0.1, port: $P1, ranks: 2, mpi: $mpi, start: "$SSH $USER_MADE@127.0.0.1 {guard} mpirun.$mpi $over $(both $mpi)"}
  - {name: b, host: 127.0.0.1, port: $P2, ranks: 1, mpi: $mpi, start: "$SSH $USER_MADE@127.0.0.1 'cd / && mpirun.$mpi $over -np {procs} {app}'"}
deadlines: {start: 40s}
END
	check "ssh_mpi_$mpi" "$(timeout 60 "$BUILD/bin/pacxrun" -f "$D/hosts.yml" -- "$D/size.$mpi" "it's a: \$x" </dev/null 2>&1 | sort)" \
		"$(for i in 0 1 2; do echo "$i/3 3 it's a: \$x"; done)"
done

# Signals: ssh hands none on, so {guard} there gets them; without one pacxrun says why they do not arrive.
cat >"$D/signalled.c" <<'END'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t got;
static void came(int sig) { got = sig; }
int main(int argc, char **argv)
{
	int rank, size, mine, all = 0;
	signal(SIGUSR1, came);
	signal(SIGUSR2, came);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0) {
		printf("up\n");
		fflush(stdout);
	}
	for (; all < size; usleep(5000)) {
		mine = got != 0;
		MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	printf("%d got %s\n", rank, got == SIGUSR2 ? "USR2" : "another");
	return MPI_Finalize();
}
END
await() { # PATTERN FILE
	for i in $(seq 600); do
		grep -q "$1" "$2" && return
		sleep 0.1
	done
}
for mpi in openmpi mpich; do
	command -v mpicc.$mpi >/dev/null && [ -e "$BUILD/lib/libpacx-$mpi.so" ] || continue
	over=
	[ $mpi = openmpi ] && over="--oversubscribe --bind-to none --mca btl ^tcp" # tcp: Open MPI 5 warns of it on some machines
	mpicc.$mpi -o "$D/signalled.$mpi" "$D/signalled.c" || failed=1
	cat >"$D/hosts.yml" <<END
sites:
  - {name: left, host: 127.0.0.1, port: $P1, ranks: 2, mpi: $mpi, start: "$SSH $USER_MADE@127.0.0.1 {key} {guard} mpirun.$mpi $over $(both $mpi)"}
  - {name: right, host: 127.0.0.1, port: $P2, ranks: 1, mpi: $mpi, start: "true && $SSH $USER_MADE@127.0.0.1 'cd / && {key} {guard} mpirun.$mpi $over $(both $mpi)'"}
END
	env -u PACX_RECORDS timeout 100 "$BUILD/bin/pacxrun" -f "$D/hosts.yml" -- "$D/signalled.$mpi" </dev/null >"$D/out" 2>"$D/err" &
	pacxrun=$!
	await up "$D/out"
	kill -USR2 "$(pgrep -P $pacxrun -x pacxrun)"
	wait $pacxrun
	check "ssh_signals_$mpi" "$? $(sort "$D/out") $(grep -v "Forwarding signal" "$D/err")" "0 0 got USR2
1 got USR2
2 got USR2
up "
done
cat >"$D/hosts.yml" <<END
sites:
  - {name: there, host: 127.0.0.1, port: $P1, ranks: 2, mpi: openmpi, start: "exec $SSH $USER_MADE@127.0.0.1 sh -c \"'echo up; sleep 3; : {env}'\""}
END
"$BUILD/bin/pacxrun" -f "$D/hosts.yml" </dev/null >"$D/out" 2>"$D/err" &
pacxrun=$!
await up "$D/out"
kill -USR1 $pacxrun
wait $pacxrun
check ssh_signal_without_guard "$? $(cat "$D/err")" \
	"0 pacxrun: site 'there' does not get the signal User defined signal 1: it is behind a remote shell and its start command has no {guard}, which would take it"

# The first site behind ssh gets standard input.
cat >"$D/hosts.yml" <<END
sites:
  - {name: there, host: 127.0.0.1, port: $P1, ranks: 2, mpi: openmpi, start: "$SSH $USER_MADE@127.0.0.1 cat && : {env}"}
END
check ssh_stdin "$(seq 50000 | "$BUILD/bin/pacxrun" -f "$D/hosts.yml" | md5sum)" "$(seq 50000 | md5sum)"

# pacxrun run by the ordinary user himself.
mkdir "/tmp/pacx-ssh-job.$$" && cp "$D/hosts.yml" "$D/ssh_config" "$D/user/key" "/tmp/pacx-ssh-job.$$" &&
	sed -i "s#$D/user/key#/tmp/pacx-ssh-job.$$/key#" "/tmp/pacx-ssh-job.$$/ssh_config" &&
	sed -i "s#$D/ssh_config#/tmp/pacx-ssh-job.$$/ssh_config#; s# cat &&# id -un \&\&#" "/tmp/pacx-ssh-job.$$/hosts.yml" &&
	chown -R "$USER_MADE" "/tmp/pacx-ssh-job.$$"
check pacxrun_of_a_user "$(cd / && su "$USER_MADE" -c "'$BUILD/bin/pacxrun' -f /tmp/pacx-ssh-job.$$/hosts.yml" 2>&1)" "$USER_MADE"

printf '#!/bin/sh\necho up\nsetsid sleep 77\nsleep 77\n' >"$D/sleeper"
chmod 755 "$D/sleeper"
# Whatever dies, nothing of a guarded remote site stays: here the local ssh, then pacxrun.
for victim in ssh pacxrun; do
	cat >"$D/hosts.yml" <<END
sites:
  - {name: there, host: 127.0.0.1, port: $P1, ranks: 2, mpi: openmpi, start: "exec $SSH $USER_MADE@127.0.0.1 {guard} $D/sleeper {env}"}
END
	"$BUILD/bin/pacxrun" -f "$D/hosts.yml" >"$D/out" 2>"$D/err" </dev/null &
	pacxrun=$!
	for i in $(seq 100); do
		[ -s "$D/out" ] && pgrep -u "$USER_MADE" -x sleep >/dev/null && break
		sleep 0.1
	done
	if [ $victim = ssh ]; then
		kill -9 "$(pgrep -x ssh -P "$(pgrep -P $pacxrun)")"
	else
		kill -9 $pacxrun
	fi
	wait $pacxrun 2>/dev/null
	for i in $(seq 80); do
		pgrep -u "$USER_MADE" -x sleep >/dev/null || break
		sleep 0.1
	done
	check "no_remote_orphans_when_${victim}_is_killed" "$(pgrep -u "$USER_MADE" -x sleep)" ""
done
[ $failed = 0 ] && echo "all passed"
exit $failed
