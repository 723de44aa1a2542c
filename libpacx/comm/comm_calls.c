/* comm_calls.c: what a program asks of a communicator that spans sites and no other rank has to answer: its size, this rank's
 * place, whether two are alike; and its end.
 */
#include "bind.h"
#include "comm.h"
#include "comm_find.h"
#include "inter.h"
#include "lock.h"
#include "raise.h"
#include "vendor.h"

int px_Comm_size(struct px_comm *c, int *size)
{
	*size = c->inter ? c->inter->size : c->size;
	return MPI_SUCCESS;
}

int px_Comm_rank(struct px_comm *c, int *rank)
{
	*rank = c->rank;
	return MPI_SUCCESS;
}

int px_Comm_test_inter(struct px_comm *c, int *flag)
{
	*flag = c->inter != NULL;
	return MPI_SUCCESS;
}

int px_Comm_remote_size(struct px_comm *c, int *size)
{
	if (!c->inter)
		return px_raise(c, MPI_ERR_COMM, "the communicator is not an intercommunicator");
	*size = c->size;
	return MPI_SUCCESS;
}

int px_Comm_free(MPI_Comm *comm)
{
	struct px_comm *c = px_comm_find(*comm);
	int rc;

	if (!c) {
		px_blocking(rc, px_n.Comm_free(comm));
		return rc;
	}
	if (c->native == px_world_native)
		return px_raise(c, MPI_ERR_COMM, "MPI_COMM_WORLD cannot be freed");
	rc = px_comm_free(c);
	if (rc == MPI_SUCCESS)
		*comm = MPI_COMM_NULL;
	return rc;
}

int px_Comm_disconnect(MPI_Comm *comm)
{
	struct px_comm *c = px_comm_find(*comm);
	int rc;

	if (!c) {
		px_blocking(rc, px_n.Comm_disconnect(comm));
		return rc;
	}
	return px_Comm_free(comm);
}

int px_Comm_compare(MPI_Comm a, MPI_Comm b, int *result)
{
	struct px_comm *x = px_comm_find(a), *y = px_comm_find(b);

	if (!x || !y) {
		int rc = px_n.Comm_compare(a, b, result); /* which also checks the handles */

		if (rc == MPI_SUCCESS && (x || y))
			*result = MPI_UNEQUAL; /* one spans sites and the other does not */
		return rc;
	}
	if (a == b) {
		*result = MPI_IDENT;
	} else if (x->inter || y->inter) {
		*result = px_inter_compare(x, y);
	} else if (x->size != y->size) {
		*result = MPI_UNEQUAL;
	} else {
		*result = MPI_CONGRUENT;
		for (int r = 0; x->ranks != y->ranks && r < x->size; r++) {
			if (px_rank_of(y, px_grank(x, r)) < 0) {
				*result = MPI_UNEQUAL;
				break;
			}
			if (px_grank(y, r) != px_grank(x, r))
				*result = MPI_SIMILAR;
		}
	}
	return MPI_SUCCESS;
}
