/* pacx.h: what a program may ask PACX, if it wants to. No program has to include it.
 *
 * A program that includes this file needs no library more when it is linked, and runs without PACX, too: then there is one site, which
 * holds all ranks. Each function looks for libpacx in the running process when it is called first. All may be called by any thread
 * between MPI_Init and MPI_Finalize; before and after, the answers are those of a program without PACX.
 *
 * Sites are numbered from 0 in the order of the hostfile; ranks are those of MPI_COMM_WORLD.
 */
#ifndef PACX_H
#define PACX_H

#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

#define PACX_VERSION_MAJOR 0
#define PACX_VERSION_MINOR 1
#define PACX_VERSION_PATCH 0

#ifdef PACX_LIBRARY /* libpacx itself */

const char *pacx_version(void);
int pacx_sites(void);
int pacx_site_of(int rank);
const char *pacx_site_name(int site);
MPI_Comm pacx_comm_local(void);
int pacx_set_associative(MPI_Comm comm, int flag);
int pacx_set_accuracy(MPI_Comm comm, double bound);

#else

#define PACX_CALL(type, name, parameters, arguments, otherwise)                                              \
	do {                                                                                                 \
		union {                                                                                      \
			void *p;                                                                             \
			type(*f) parameters;                                                                 \
		} found;                                                                                     \
		found.p = dlsym(NULL, name); /* the global scope, where a preloaded library is */            \
		return found.p ? found.f arguments : (otherwise);                                            \
	} while (0)

/* pacx_version: of the libpacx that runs this program, such as "0.1.0"; NULL without PACX. */
static inline const char *pacx_version(void)
{
	PACX_CALL(const char *, "pacx_version", (void), (), NULL);
}

/* pacx_sites: how many sites make up MPI_COMM_WORLD; at least 1. */
static inline int pacx_sites(void)
{
	PACX_CALL(int, "pacx_sites", (void), (), 1);
}

/* pacx_site_of: the site of a rank of MPI_COMM_WORLD; -1 if there is no such rank. */
static inline int pacx_site_of(int rank)
{
	int up = 0, size = 0;

	if (dlsym(NULL, "pacx_site_of"))
		PACX_CALL(int, "pacx_site_of", (int), (rank), 0);
	if (MPI_Initialized(&up) == MPI_SUCCESS && up)
		MPI_Comm_size(MPI_COMM_WORLD, &size);
	return rank >= 0 && rank < size ? 0 : -1;
}

/* pacx_site_name: as the hostfile says; lives as long as the program. NULL if there is no such site. */
static inline const char *pacx_site_name(int site)
{
	PACX_CALL(const char *, "pacx_site_name", (int), (site), site == 0 ? "local" : NULL);
}

/* pacx_comm_local: the ranks of the caller's site, in the order of MPI_COMM_WORLD. Not to be freed. */
static inline MPI_Comm pacx_comm_local(void)
{
	PACX_CALL(MPI_Comm, "pacx_comm_local", (void), (), MPI_COMM_WORLD);
}

/* pacx_set_associative: collective over comm. flag = 1: reductions on comm may group the operands of an operator as they like (the
 * operator is associative to this program, floating-point sums included), so that a site sends one value where it may have to send
 * several; 0, the default: by a binary tree over the ranks, whatever the split over sites (pacx(3)). A communicator made from comm begins with 0.
 * Returns MPI_SUCCESS or an MPI error code. */
static inline int pacx_set_associative(MPI_Comm comm, int flag)
{
	PACX_CALL(int, "pacx_set_associative", (MPI_Comm, int), (comm, flag), MPI_SUCCESS);
}

/* pacx_set_accuracy: from now on, numbers that the caller sends on comm with MPI's sends, in datatypes of floats or of doubles only, may
 * arrive changed if that makes them arrive earlier: bound > 0: by at most that; bound < 0: by at most -bound times the largest magnitude
 * in the same piece of 256 KiB or more of the message; 0, the default: not at all. All else, collectives included, stays exact, as do messages within a site,
 * NaNs, infinities and what is sent with them. A communicator made from comm begins with 0. Returns MPI_SUCCESS or an MPI error
 * code. */
static inline int pacx_set_accuracy(MPI_Comm comm, double bound)
{
	PACX_CALL(int, "pacx_set_accuracy", (MPI_Comm, double), (comm, bound), MPI_SUCCESS);
}

#undef PACX_CALL
#endif

/* The name that it had in PACX-MPI. */
#define MPI_COMM_LOCAL pacx_comm_local()

#endif
