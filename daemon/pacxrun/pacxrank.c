/* pacxrank: the first thing that a rank's process is, before it becomes the application or, in a single-executable site, a daemon.
 *
 *     pacxrank PROGRAM [ARGUMENT ...]
 *
 * pacxrun puts it into {app}. The launcher hands the job's key to all that it starts, for the daemons; here a rank that becomes
 * one becomes it with the key, and the application is executed without: it never has it, nor does /proc show it there. Stays the
 * same process, keeps nothing, prints nothing but errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pump.h"

static int number_of(const char *name, int otherwise)
{
	const char *v = getenv(name);

	return v && *v ? atoi(v) : otherwise;
}

static bool is(const char *name, const char *value)
{
	const char *v = getenv(name);

	return v && strcmp(v, value) == 0;
}

/* rank_of_site: our number among the application ranks of the site; negative = a daemon's place. */
static int rank_of_site(void)
{
	const char *mpi = getenv("PACX_MPI"); /* openmpi, mpich, openmpi-5.0.7, ... */
	bool openmpi = !mpi || strncmp(mpi, "openmpi", 7) == 0;
	int rank = number_of(openmpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK", -1);
	int size = number_of(openmpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE", -1);
	int daemons = 2 * number_of("PACX_GATEWAYS", 1);

	if (rank < 0 || size < 0) /* libpacx will say that this launcher tells no rank */
		return INT_MAX;
	if (is("PACX_DAEMONS", "first"))
		return rank - daemons;
	return is("PACX_FORM", "single") && rank >= size - daemons ? -1 : rank;
}

/* daemon_become: does not return. */
static void daemon_become(void)
{
	const char *mpi = getenv("PACX_MPI");
	char path[PATH_MAX];
	char *argv[] = { "pacxd", NULL }, *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 80);

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, 80, "pacxd-%.64s", mpi ? mpi : "openmpi");
	unsetenv("LD_PRELOAD"); /* what the user preloads is for the application */
	execv(path, argv);
	fprintf(stderr, "pacxrank: this rank should be a daemon, but %s cannot be executed: %s\n", path,
		strerror(errno));
	_exit(1);
}

/* stdin_from: global rank 0 gets its standard input from pacxrun where the launcher is no good for that: from a FIFO, or ("-") from the
 * launcher, but in pieces that it can stand. */
static void stdin_from(const char *path)
{
	int fd;

	if (strcmp(path, "-") == 0) {
		unsetenv("PACX_STDIN");
		if (pxd_pump_start(getenv("PACX_SITE") ? getenv("PACX_SITE") : "") < 0)
			fprintf(stderr, "pacxrank: standard input: %s\n", strerror(errno));
		return;
	}
	fd = open(path, O_RDONLY);
	if (fd < 0 || dup2(fd, 0) < 0) {
		fprintf(stderr, "pacxrank: standard input from %s: %s\n", path, strerror(errno));
		return;
	}
	if (fd > 0)
		close(fd);
	unsetenv("PACX_STDIN"); /* libpacx need not open it */
}

/* stdin_none: all ranks but global rank 0 read the end of their input at once; hydra's would wait at a pipe that nobody closes. */
static void stdin_none(void)
{
	int fd = open("/dev/null", O_RDONLY);

	if (fd > 0) {
		dup2(fd, 0);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int rank = rank_of_site();

	if (argc < 2) {
		fprintf(stderr, "usage: pacxrank PROGRAM [ARGUMENT ...]\n");
		return 2;
	}
	if (rank < 0 && is("PACX_FORM", "single"))
		daemon_become();
	unsetenv("PACX_KEY");
	if (rank != INT_MAX && (rank != 0 || !is("PACX_BASE", "0")))
		stdin_none();
	else if (rank == 0 && getenv("PACX_STDIN"))
		stdin_from(getenv("PACX_STDIN"));
	execvp(argv[1], argv + 1);
	if (errno == E2BIG)
		fprintf(stderr,
			"pacxrank: cannot run %s: its arguments and environment are too long; put the "
			"arguments "
			"into a file\n",
			argv[1]);
	else
		fprintf(stderr, "pacxrank: cannot run %s: %s\n", argv[1], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
