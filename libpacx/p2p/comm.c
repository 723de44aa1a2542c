/* comm.c: see comm.h. Its constructors are in comm/. */
#include "comm.h"

#include <stdlib.h>

#include "channel.h"
#include "comm_find.h"
#include "err.h"
#include "inter.h"
#include "lock.h"
#include "request.h"
#include "state.h"
#include "vendor.h"

static uint64_t next_ctx;

uint64_t px_ctx_candidate(void)
{
	/* This rank's number in the upper half makes ids of different ranks differ; 2^30 ids per rank. */
	next_ctx += 4;
	return ((uint64_t)px.grank + 1) << 32 | next_ctx;
}

void px_comm_release(struct px_comm *c)
{
	px_ranks_drop(c->ranks);
	free(c->inter);
	free(c->topo);
	free(c->terms[0]);
	free(c->terms[1]);
	free(c->groups);
	free(c);
}

void px_comm_take(struct px_comm *c, struct px_ranks *ranks, int lo, int size)
{
	c->ranks = px_ranks_hold(ranks);
	c->lo = lo;
	c->size = size;
	while (c->self < ranks->nparts && ranks->part[c->self].site != px.site)
		c->self++;
	c->nlocal = ranks->part[c->self].count;
	c->lrank = px_ranks_nth(ranks, px_ranks_find(ranks, px.grank));
}

struct px_comm *px_comm_new(MPI_Comm native, uint64_t ctx, struct px_ranks *ranks)
{
	struct px_comm *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->native = c->face = native;
	c->ctx = ctx;
	c->refs = 1;
	px_comm_take(c, ranks, 0, ranks->size);
	c->rank = px_rank_of(c, px.grank);
	c->nparts = ranks->nparts;
	c->blocked = ranks->blocked;
	px_match_init(&c->p2p, c);
	px_match_init(&c->coll, c);
	c->coll.exact = true;
	if (px_channel_ctx_add(ctx, &c->p2p) < 0)
		goto fail;
	if (px_channel_ctx_add(ctx | 1, &c->coll) < 0)
		goto fail_ctx;
	if (px_comm_insert(native, c) < 0)
		goto fail_coll;
	return c;

fail_coll:
	px_channel_ctx_del(ctx | 1);
fail_ctx:
	px_channel_ctx_del(ctx);
fail:
	px_comm_release(c);
	return NULL;
}

void px_comm_hold(struct px_comm *c)
{
	c->refs++;
}

/* Calls the user's functions for its attributes, to which c is still what it was. MPI error code, raised; then c may
 * stay. */
static int native_free(struct px_comm *c, bool may_stay)
{
	MPI_Comm native = c->native;
	struct px_going going;
	int rc;

	px_comm_leave(&going, native, c);
	px_blocking(rc, px_n.Comm_free(&native));
	px_comm_left(&going, may_stay && rc != MPI_SUCCESS);
	return rc;
}

static void comm_end(struct px_comm *c)
{
	struct px_comm *all = c->inter ? c->inter->all : NULL;

	px_channel_ctx_del(c->ctx);
	px_channel_ctx_del(c->ctx | 1);
	px_channel_drain(&c->p2p);
	if (c->parted) {
		px_channel_ctx_del(c->ctx | 3);
		px_channel_drain(&c->parts);
	}
	px_comm_release(c);
	if (all) {
		all->face = all->native;
		px_comm_drop(all); /* collectives may be pending */
	}
}

int px_comm_free(struct px_comm *c)
{
	int rc;

	if (c->refs > 1 || px_serving) {
		px_comm_drop(c);
		return MPI_SUCCESS;
	}
	rc = native_free(c, true);
	if (rc == MPI_SUCCESS)
		comm_end(c);
	return rc;
}

/* Nobody holds c any more, and nobody hears of errors. */
static void comm_bury(struct px_comm *c)
{
	native_free(c, false);
	comm_end(c);
}

static struct px_comm *dead; /* linked by next_dead */

void px_comm_drop(struct px_comm *c)
{
	if (--c->refs > 0)
		return;
	if (!px_serving) {
		comm_bury(c);
		return;
	}
	c->next_dead = dead;
	dead = c;
}

void px_comm_sweep(void)
{
	while (dead) {
		struct px_comm *c = dead;

		dead = c->next_dead;
		comm_bury(c);
	}
}
