/* comm.c: see comm.h. Its constructors are in comm/. */
#include "comm.h"

#include <stdlib.h>
#include <string.h>

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

bool px_comm_spans(int size, const int *grank)
{
	for (int i = 0; i < size; i++)
		if (px_world_site(px.world, grank[i]) != px_world_site(px.world, grank[0]))
			return true;
	return false;
}

void px_comm_release(struct px_comm *c)
{
	if (c->part)
		for (int i = 0; i < c->nparts; i++)
			free(c->part[i].ranks);
	free(c->part);
	free(c->part_of);
	free(c->grank);
	free(c->lrank_of);
	free(c->rank_of);
	free(c->rank_of_local);
	free(c->inter);
	free(c->topo);
	free(c);
}

/* The sites with members, in site order. */
static int parts_make(struct px_comm *c)
{
	int nsites = px.world->nsites;
	int *count = calloc((size_t)nsites, sizeof *count);
	int *at = calloc((size_t)nsites, sizeof *at);

	c->part = calloc((size_t)nsites, sizeof *c->part);
	if (!count || !at || !c->part)
		goto fail;
	for (int r = 0; r < c->size; r++)
		count[px_world_site(px.world, c->grank[r])]++;
	for (int s = 0; s < nsites; s++) {
		struct px_part *p = &c->part[c->nparts];

		if (count[s] == 0)
			continue;
		at[s] = c->nparts;
		if (s == px.site)
			c->self = c->nparts;
		c->nparts++;
		p->ranks = malloc((size_t)count[s] * sizeof *p->ranks);
		if (!p->ranks)
			goto fail;
	}
	for (int r = 0; r < c->size; r++) {
		struct px_part *p = &c->part[at[px_world_site(px.world, c->grank[r])]];

		c->part_of[r] = (int)(p - c->part);
		p->ranks[p->count++] = r;
	}
	c->blocked = true;
	for (int r = 1; r < c->size; r++)
		c->blocked &= c->part_of[r] >= c->part_of[r - 1];
	free(count);
	free(at);
	return PX_OK;
fail:
	free(count);
	free(at);
	return PX_ENOMEM;
}

struct px_comm *px_comm_new(MPI_Comm native, uint64_t ctx, int size, const int *grank)
{
	struct px_comm *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->native = c->face = native;
	c->ctx = ctx;
	c->size = size;
	c->refs = 1;
	c->rank = -1;
	c->grank = malloc((size_t)size * sizeof *c->grank);
	c->lrank_of = malloc((size_t)size * sizeof *c->lrank_of);
	c->part_of = malloc((size_t)size * sizeof *c->part_of);
	c->rank_of_local = malloc((size_t)size * sizeof *c->rank_of_local);
	c->rank_of = malloc((size_t)px.world->nranks * sizeof *c->rank_of);
	if (!c->grank || !c->lrank_of || !c->part_of || !c->rank_of_local || !c->rank_of)
		goto fail;
	memset(c->rank_of, -1, (size_t)px.world->nranks * sizeof *c->rank_of);
	for (int r = 0; r < size; r++) {
		c->grank[r] = grank[r];
		c->rank_of[grank[r]] = r;
		c->lrank_of[r] = -1;
		if (px_is_local(grank[r])) {
			c->rank_of_local[c->nlocal] = r;
			c->lrank_of[r] = c->nlocal++;
		}
		if (grank[r] == px.grank) {
			c->rank = r;
			c->lrank = c->lrank_of[r];
		}
	}
	if (parts_make(c) < 0)
		goto fail;
	px_match_init(&c->p2p, c);
	px_match_init(&c->coll, c);
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

static void comm_end(struct px_comm *c)
{
	MPI_Comm native = c->native;
	struct px_comm *all = c->inter ? c->inter->all : NULL;
	int rc;

	px_channel_ctx_del(c->ctx);
	px_channel_ctx_del(c->ctx | 1);
	px_channel_drain(&c->p2p);
	px_comm_remove(native);
	px_comm_release(c);
	if (all)
		all->face = all->native;
	px_blocking(rc, px_n.Comm_free(&native)); /* calls the user's functions for its attributes */
	(void)rc;
	if (all)
		px_comm_drop(all); /* collectives may be pending */
}

static struct px_comm *dead; /* linked by next_dead */

void px_comm_drop(struct px_comm *c)
{
	if (--c->refs > 0)
		return;
	if (!px_serving) {
		comm_end(c);
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
		comm_end(c);
	}
}
