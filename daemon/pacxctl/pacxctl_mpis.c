/* pacxctl_mpis.c: pacxctl mpis: for which MPIs this installation is built, and which MPIs of PATH it has nothing for. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "mpis.h"
#include "pacxctl.h"

static void print_build(const struct pxd_mpi *m)
{
	if (m->abi) {
		printf("%s   also openmpi-abi, mpich-abi\n", m->identity);
		printf("  serves programs linked with %s, whose MPI it is\n", m->soname);
	} else {
		printf("%s%s%s\n", m->identity, m->preferred ? "   also " : "",
			m->preferred ? (m->flavor == PX_MPI_OPENMPI ? "openmpi" : "mpich") : "");
		printf("  serves programs linked with %s%s\n", *m->library ? m->library : m->soname,
			m->flavor == PX_MPI_MPICH ? ", and others of its ABI (libmpi.so.12)" : "");
	}
	if (!m->abi && *m->library && access(m->library, R_OK) != 0)
		printf("  that library is gone: build PACX anew\n");
	printf("  built with %s\n", m->compiler);
	if (m->abi)
		printf("  started by the launcher of the program's MPI\n");
	else if (*m->launcher)
		printf("  started by %s\n", m->launcher);
	else
		printf("  has no launcher beside its compiler: give start: in the hostfile\n");
}

/* known: is the compiler command of this path one of a build's? */
static bool known(const struct pxd_mpis *m, const char *path)
{
	char real[PATH_MAX], have[PATH_MAX];

	if (!realpath(path, real))
		return true; /* it leads nowhere */
	for (int i = 0; i < m->n; i++)
		if (realpath(m->list[i].compiler, have) && strcmp(real, have) == 0)
			return true;
	return false;
}

/* print_unserved: each MPI in PATH that no build is for. */
static void print_unserved(const struct pxd_mpis *m)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");

		if (snprintf(file, sizeof file, "%.*s/mpicc", (int)n, p) < (int)sizeof file &&
			access(file, X_OK) == 0 && !known(m, file))
			printf("%s is an MPI that PACX is not built for; `make MPI=%s` in PACX's source does "
			       "that\n",
				file, file);
		p += n + (p[n] == ':');
	}
}

int pxd_ctl_mpis(int argc, char **argv)
{
	struct pxd_mpis m;
	char prefix[PATH_MAX];

	if (argc != 1) {
		fprintf(stderr, "pacxctl: %s takes no arguments; see pacxctl --help\n", argv[0]);
		return PXD_CTL_USAGE;
	}
	if (pxd_prefix_find(prefix, sizeof prefix) < 0 || pxd_mpis_read(prefix, &m) < 0) {
		fprintf(stderr, "pacxctl: cannot find where it is installed (/proc/self/exe)\n");
		return PXD_CTL_WRONG;
	}
	for (int i = 0; i < m.n; i++)
		print_build(&m.list[i]);
	if (!m.n)
		printf("PACX in %s is built for no MPI\n", prefix);
	print_unserved(&m);
	pxd_mpis_free(&m);
	return 0;
}
