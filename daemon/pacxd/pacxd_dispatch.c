/* pacxd_dispatch.c: pacxd: the relay daemon's name for users. The daemon itself is an MPI program, one per vendor MPI;
 * this finds out under which one it was started and becomes ../lib/pacx/pacxd-NAME beside it. The role relay needs
 * no MPI and runs here.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "relay.h"

#ifndef PX_VERSION_TEXT
#define PX_VERSION_TEXT "unknown"
#endif

/* flavor_find: PACX_MPI decides; else the launcher's own variables. Open MPI is asked first because hydra's
 * PMI_RANK may be inherited from an outer job, OMPI_COMM_WORLD_RANK is not set by anybody else. */
static const char *flavor_find(void)
{
	const char *named = getenv("PACX_MPI");

	if (named && *named && strcmp(named, "auto") != 0)
		return named;
	if (getenv("OMPI_COMM_WORLD_RANK"))
		return "openmpi";
	if (getenv("PMI_RANK"))
		return "mpich";
	return NULL;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX + NAME_MAX + 32];
	const char *flavor = flavor_find();
	ssize_t n;
	char *slash;

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("pacxd %s\n", PX_VERSION_TEXT);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--relay") == 0)
		return pxd_relay_main(argc, argv);
	if (!flavor) {
		fprintf(stderr,
			"pacxd: not started by mpirun: neither OMPI_COMM_WORLD_RANK (Open MPI) nor PMI_RANK "
			"(MPICH) is set.\nStart it as ranks of a site's job, mpirun -np N program : -np 2 "
			"pacxd, or "
			"let pacxrun do that; see pacxd(8).\n");
		return 2;
	}
	if (strlen(flavor) > NAME_MAX - 8 || strchr(flavor, '/')) {
		fprintf(stderr,
			"pacxd: PACX_MPI: found '%.64s', expected openmpi, mpich, auto or another name that "
			"pacxctl mpis shows\n",
			flavor);
		return 2;
	}
	n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	if (n <= 0) {
		fprintf(stderr, "pacxd: cannot find where it is installed (/proc/self/exe): %s\n",
			strerror(errno));
		return 2;
	}
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return 2;
	snprintf(slash, sizeof path - (size_t)(slash - path), "/../lib/pacx/pacxd-%s", flavor);
	unsetenv("LD_PRELOAD"); /* of the application: daemons call the native MPI */
	execv(path, argv);
	fprintf(stderr, "pacxd: cannot run %s: %s%s\n", path, strerror(errno),
		errno == ENOENT ? "; pacxctl mpis shows for which MPIs PACX is built here" : "");
	return errno == ENOENT ? 127 : 126;
}
