/* inter_plan.h: an intercommunicator to be: who is in both groups, in the order in which `all` (inter.h) has them, and the native
 * communicators of this site that it is made of.
 *
 * Whatever the constructor, it first learns who is in both groups; then each site makes its native communicators; then all members
 * learn whether that has succeeded everywhere, and only then the objects are made. When both groups are at one site the result is a
 * native intercommunicator.
 */
#ifndef PX_INTER_PLAN_H
#define PX_INTER_PLAN_H

#include <mpi.h>
#include <stdint.h>

struct px_comm;

struct px_plan {
	int n, first; /* members of both groups; of the first one */
	int *grank;   /* [n], on the heap */
	uint64_t ctx;
	MPI_Comm native; /* the members at this site in this order, or MPI_COMM_NULL */
	MPI_Comm face;   /* what the application will hold */
};

void px_plan_init(struct px_plan *p);
/* px_plan_rank: this process in the order of both groups; -1: in none. */
int px_plan_rank(const struct px_plan *p);
/* px_plan_native: p->native from a communicator of the whole site, by its members alone. MPI error code. */
int px_plan_native(struct px_plan *p);
/* px_plan_face: p->native is made: the face from it. MPI error code. */
int px_plan_face(struct px_plan *p);
/* px_plan_carry_out: everybody has made the native communicators: *out from them. The errors of the new one go where those of `like` go, a
 * native handle; those of making it are raised on raise_on. Ends the plan. */
int px_plan_carry_out(struct px_plan *p, struct px_comm *raise_on, MPI_Comm like, MPI_Comm *out);
/* px_plan_drop: the constructor has failed with rc somewhere, or this process gets nothing. Ends the plan; returns rc. */
int px_plan_drop(struct px_plan *p, int rc);

#endif
