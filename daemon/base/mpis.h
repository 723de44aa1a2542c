/* mpis.h: for which MPIs this installation of PACX has libraries and daemons.
 *
 * Each build has a file lib/pacx/NAME.mpi beside its daemon pacxd-NAME, which scripts/mpi_identity.py has written: lines
 * "key: value". The list owns what it has read. Used by pacxrun and pacxctl; starts nothing, prints nothing.
 */
#ifndef PXD_MPIS_H
#define PXD_MPIS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/hello.h"

struct pxd_mpi {
	char *name;            /* of libpacx-NAME.so and pacxd-NAME */
	char *identity;        /* vendor and version: openmpi-5.0.7 */
	enum px_flavor flavor; /* PX_MPI_OTHER: the standard ABI, which is no vendor's */
	bool abi;              /* that */
	char *soname;          /* of the vendor's library */
	char *library;         /* its file, links followed; "" = not known */
	char *compiler;        /* full path */
	char *launcher;        /* full path, or "" */
	bool preferred;        /* it is what the name of the flavour alone means */
};

struct pxd_mpis {
	struct pxd_mpi *list; /* in the order of names */
	int n;
};

/* pxd_prefix_find: where this program is installed: it is PREFIX/bin/NAME. 0 or PX_EIO. */
int pxd_prefix_find(char *prefix, size_t cap);
/* pxd_mpis_read: all builds below PREFIX/lib; none is no error. 0 or PX_ENOMEM. */
int pxd_mpis_read(const char *prefix, struct pxd_mpis *out);
void pxd_mpis_free(struct pxd_mpis *m);

/* What a site may name, NULL = there is none: by the name of the build or the identity (openmpi-abi and mpich-abi, too: the standard ABI,
 * over that vendor); by the MPI's directory, when only one
 * build is of it (its compiler is DIR/bin/...) or one of this flavour; by the file of the program's MPI library; what the
 * flavour alone means. */
const struct pxd_mpi *pxd_mpis_named(const struct pxd_mpis *m, const char *name);
const struct pxd_mpi *pxd_mpis_at(const struct pxd_mpis *m, const char *dir, enum px_flavor flavor);
const struct pxd_mpi *pxd_mpis_library(const struct pxd_mpis *m, const char *library);
const struct pxd_mpi *pxd_mpis_flavor(const struct pxd_mpis *m, enum px_flavor flavor);
/* pxd_mpis_abi: the build for the standard ABI. */
const struct pxd_mpi *pxd_mpis_abi(const struct pxd_mpis *m);

#endif
