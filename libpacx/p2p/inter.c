/* inter.c: see inter.h. Its constructors are in comm/inter_make.c, its collectives in coll/inter_*.c. */
#include "inter.h"

#include <stdlib.h>

#include "channel.h"
#include "comm_find.h"
#include "err.h"
#include "raise.h"
#include "state.h"
#include "vendor.h"

static struct px_side group(const struct px_comm *c, bool second)
{
	const struct px_inter *i = c->inter;

	return second ? (struct px_side){ i->first, i->all->size } : (struct px_side){ 0, i->first };
}

struct px_side px_inter_local(const struct px_comm *c)
{
	return group(c, c->inter->second);
}

struct px_side px_inter_remote(const struct px_comm *c)
{
	return group(c, !c->inter->second);
}

struct px_comm *px_inter_new(MPI_Comm face, struct px_comm *all, int first)
{
	struct px_comm *c = calloc(1, sizeof *c);
	bool second = all->rank >= first;

	if (!c)
		return NULL;
	c->native = c->face = face;
	c->ctx = all->ctx | 2; /* px_ctx_candidate leaves room for it */
	c->refs = 1;
	px_comm_take(c, all->ranks, second ? 0 : first, second ? first : all->size - first);
	c->rank = second ? all->rank - first : all->rank;
	c->inter = malloc(sizeof *c->inter);
	if (!c->inter)
		goto fail;
	*c->inter = (struct px_inter){ all, first, second, second ? all->size - first : first };
	px_match_init(&c->p2p, c);
	px_match_init(&c->coll, c);
	c->coll.exact = true;
	if (px_channel_ctx_add(c->ctx, &c->p2p) < 0)
		goto fail;
	if (px_comm_insert(face, c) < 0) {
		px_channel_ctx_del(c->ctx);
		goto fail;
	}
	all->face = face;
	return c;
fail:
	px_comm_release(c);
	return NULL;
}

int px_not_inter(struct px_comm *c)
{
	return px_raise(c, MPI_ERR_COMM, "the communicator is an intercommunicator");
}

/* Ranks `x` of a's processes and `y` of b's. */
static int compare(const struct px_comm *a, struct px_side x, const struct px_comm *b, struct px_side y)
{
	int result = MPI_CONGRUENT;

	if (x.hi - x.lo != y.hi - y.lo)
		return MPI_UNEQUAL;
	for (int i = 0; i < x.hi - x.lo; i++) {
		int k = px_rank_of(b, px_grank(a, x.lo + i));

		if (k < y.lo || k >= y.hi)
			return MPI_UNEQUAL;
		if (k != y.lo + i)
			result = MPI_SIMILAR;
	}
	return result;
}

int px_inter_compare(const struct px_comm *a, const struct px_comm *b)
{
	int near, far;

	if (!a->inter || !b->inter)
		return MPI_UNEQUAL;
	near = compare(a->inter->all, px_inter_local(a), b->inter->all, px_inter_local(b));
	far = compare(a->inter->all, px_inter_remote(a), b->inter->all, px_inter_remote(b));
	if (near == MPI_UNEQUAL || far == MPI_UNEQUAL)
		return MPI_UNEQUAL;
	return near == MPI_SIMILAR || far == MPI_SIMILAR ? MPI_SIMILAR : MPI_CONGRUENT;
}
