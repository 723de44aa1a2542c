/* groups.c: see groups.h. */
#include "groups.h"

#include <stdlib.h>

#include "comm.h"
#include "state.h"

static struct px_groups *groups_new(const struct px_comm *c)
{
	struct px_groups *g = calloc(1, sizeof *g + (size_t)c->nparts * sizeof *g->head);
	bool several = false;

	if (!g)
		return NULL;
	for (int p = 0; p < c->nparts; p++) {
		int group = px.world->group[px_world_site(px.world, px_grank(c, px_leader(c, p)))];

		for (int q = 0; q <= p; q++) {
			int other = px.world->group[px_world_site(px.world, px_grank(c, px_leader(c, q)))];

			if (other != group)
				continue;
			g->head[p] = q;
			g->any = g->any || q != p;
			break;
		}
		several = several || g->head[p] > 0;
	}
	g->any = g->any && several;
	return g;
}

const struct px_groups *px_groups_get(struct px_comm *c)
{
	if (!c->groups)
		c->groups = groups_new(c);
	return c->groups;
}

const struct px_groups *px_groups_of(struct px_sched *s)
{
	const struct px_groups *g = px_groups_get(px_sched_comm(s));

	if (!g)
		px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
	return g;
}
