/* groups.c: see groups.h. */
#include "groups.h"

#include <stdlib.h>

#include "comm.h"
#include "state.h"

/* In the world map. */
static int group_of(const struct px_comm *c, int part)
{
	return px.world->group[c->ranks->part[part].site];
}

static struct px_groups *groups_new(const struct px_comm *c)
{
	struct px_groups *g = calloc(1, sizeof *g + (size_t)c->nparts * sizeof *g->head);
	bool several = false;

	if (!g)
		return NULL;
	for (int p = 0; p < c->nparts; p++) {
		int q = 0;

		while (group_of(c, q) != group_of(c, p))
			q++;
		g->head[p] = q;
		g->any = g->any || q != p;
		several = several || q > 0;
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
