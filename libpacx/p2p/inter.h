/* inter.h: intercommunicators that span sites.
 *
 * Owns what is between the application's handle and two things below it. Point-to-point: a struct px_comm whose ranks are those of the
 * remote group, so that p2p/ needs to know nothing; its native communicator, the handle, has the members of both groups at this
 * site. All that is collective: `all`, an intracommunicator of both groups that the application never sees. Its errors go to the
 * handle's error handler (px_comm.face). An intercommunicator whose members are all at one site is the vendor's own.
 */
#ifndef PX_INTER_H
#define PX_INTER_H

#include <mpi.h>
#include <stdbool.h>

#include "comm.h"

struct px_inter {
	struct px_comm *all; /* the members of the first group, then those of the second */
	int first;           /* members of the first group */
	bool second;         /* this rank is in the second group */
	int size;            /* of the local group; px_comm.size is that of the remote group */
};

/* px_inter_new: the intercommunicator of two groups; face (taken over) is a native communicator of the members of `all` at this site, in
 * the same order. Takes over the reference to all. NULL: out of memory. */
struct px_comm *px_inter_new(MPI_Comm face, struct px_comm *all, int first);

/* Ranks of `all`: those of a group are lo..hi-1. */
struct px_side {
	int lo, hi;
};
struct px_side px_inter_local(const struct px_comm *c);
struct px_side px_inter_remote(const struct px_comm *c);

/* px_not_inter: raise that a function takes no intercommunicator. */
int px_not_inter(struct px_comm *c);

/* px_inter_compare: MPI_Comm_compare of two that are not the same handle. */
int px_inter_compare(const struct px_comm *a, const struct px_comm *b);

#endif
