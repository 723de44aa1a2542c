/* groups.h: groups of sites that are near each other (`group:` of the hostfile): what goes to several sites of a group crosses to it once,
 * and is passed on inside; what comes from several is gathered first.
 *
 * A site in no group is a group of its own; so are all where there is one group only. The head of a group is its first part, or, in an
 * operation with a root, the part of the root.
 */
#ifndef PX_GROUPS_H
#define PX_GROUPS_H

#include "schedule.h"

struct px_groups {
	bool any;   /* has a group more than one part? */
	int head[]; /* [nparts], unless !any: the first part of its group */
};

/* px_groups_get: those of a communicator, which owns them. NULL: out of memory. */
const struct px_groups *px_groups_get(struct px_comm *c);
/* px_groups_of: of that of s. NULL: s has failed. */
const struct px_groups *px_groups_of(struct px_sched *s);

/* px_group_head: the first part of a part's group. */
static inline int px_group_head(const struct px_groups *g, int part)
{
	return g->any ? g->head[part] : part;
}

/* px_group_up: the part from which `part` has what comes from part `root`, and to which it gives what `root` gets; `root` has none: -1. */
static inline int px_group_up(const struct px_groups *g, int part, int root)
{
	int head = px_group_head(g, part);

	return part == root ? -1 : head == px_group_head(g, root) || head == part ? root : head;
}

#endif
