/* inter.c: see inter.h. Its constructors are in comm/inter_make.c, its collectives in coll/inter_*.c. */
#include "inter.h"

#include <stdlib.h>
#include <string.h>

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

/* The tables of px_comm say where the remote group is. */
static void tables_fill(struct px_comm *c)
{
	const struct px_comm *all = c->inter->all;
	struct px_side far = px_inter_remote(c);

	memset(c->rank_of, -1, (size_t)px.world->nranks * sizeof *c->rank_of);
	for (int i = 0; i < c->nlocal; i++) {
		int r = all->rank_of_local[i];

		c->rank_of_local[i] = r >= far.lo && r < far.hi ? r - far.lo : -1;
	}
	for (int r = far.lo; r < far.hi; r++) {
		c->grank[r - far.lo] = all->grank[r];
		c->lrank_of[r - far.lo] = all->lrank_of[r];
		c->rank_of[all->grank[r]] = r - far.lo;
	}
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
	c->size = second ? first : all->size - first;
	c->rank = second ? all->rank - first : all->rank;
	c->nlocal = all->nlocal;
	c->lrank = all->lrank;
	c->grank = malloc((size_t)c->size * sizeof *c->grank);
	c->lrank_of = malloc((size_t)c->size * sizeof *c->lrank_of);
	c->rank_of_local = malloc((size_t)c->nlocal * sizeof *c->rank_of_local);
	c->rank_of = malloc((size_t)px.world->nranks * sizeof *c->rank_of);
	c->inter = malloc(sizeof *c->inter);
	if (!c->grank || !c->lrank_of || !c->rank_of_local || !c->rank_of || !c->inter)
		goto fail;
	*c->inter = (struct px_inter){ all, first, second, second ? all->size - first : first };
	tables_fill(c);
	px_match_init(&c->p2p, c);
	px_match_init(&c->coll, c);
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

/* Two lists of global ranks. */
static int compare(const int *a, int na, const int *b, int nb)
{
	int result = MPI_CONGRUENT;

	if (na != nb)
		return MPI_UNEQUAL;
	for (int i = 0; i < na; i++) {
		int k = 0;

		while (k < nb && b[k] != a[i])
			k++;
		if (k == nb)
			return MPI_UNEQUAL;
		if (k != i)
			result = MPI_SIMILAR;
	}
	return result;
}

int px_inter_compare(const struct px_comm *a, const struct px_comm *b)
{
	struct px_side x, y;
	int near, far;

	if (!a->inter || !b->inter)
		return MPI_UNEQUAL;
	x = px_inter_local(a);
	y = px_inter_local(b);
	near = compare(a->inter->all->grank + x.lo, x.hi - x.lo, b->inter->all->grank + y.lo, y.hi - y.lo);
	far = compare(a->grank, a->size, b->grank, b->size);
	if (near == MPI_UNEQUAL || far == MPI_UNEQUAL)
		return MPI_UNEQUAL;
	return near == MPI_SIMILAR || far == MPI_SIMILAR ? MPI_SIMILAR : MPI_CONGRUENT;
}
