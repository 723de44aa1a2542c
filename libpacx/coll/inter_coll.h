/* inter_coll.h: what the collectives on intercommunicators share.
 *
 * All of them are schedules of messages on `all` (inter.h), without native collectives: between sites each item crosses once where the
 * operation lets it, to the head of the receiving group at that site, the first of its members there, who hands it on.
 */
#ifndef PX_INTER_COLL_H
#define PX_INTER_COLL_H

#include "inter.h"
#include "schedule.h"

/* px_inter_head: the head of a group at a site (a part of `all`); -1: it has no member there. */
int px_inter_head(const struct px_comm *all, struct px_side group, int part);
/* px_inter_spread: from this rank, a member of one group, to all of the other, `to`; it ends no round: two groups that tell each other
 * something long must not both send first. px_inter_take: its counterpart at the members of `to`; ends its rounds. */
void px_inter_spread(struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, struct px_side to);
void px_inter_take(
	struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int from, struct px_side to);
/* px_inter_root: raise MPI_ERR_ROOT unless it is MPI_ROOT, MPI_PROC_NULL or a rank of the remote group. */
int px_inter_root(struct px_comm *c, int root);

#endif
