/* model.h: which algorithm an operation takes: the table of costs (costs.h) over the measured links (model.c).
 *
 * All ranks must choose alike: what is decided from (links, forced choices) is agreed on at the start, and nothing that only one rank knows may be added.
 */
#ifndef PX_MODEL_H
#define PX_MODEL_H

#include "costs.h"
#include "schedule.h"

/* px_model_start: collective over the world, at the start: measures the links and agrees on them. MPI error code; PACX_COLL_* that name no
 * algorithm are an error that is logged. */
int px_model_start(void);

/* px_model_pick: for `bytes` bytes of packed data (of one operand), of which `terms` have to leave a site. */
enum px_algorithm px_model_pick(struct px_comm *c, enum px_coll op, MPI_Count bytes, int terms);

/* px_model_pick_allgather: where the site with most has `bytes` bytes, and all but the one with least have `others` times as much together. */
enum px_algorithm px_model_pick_allgather(struct px_comm *c, MPI_Count bytes, double others);

/* What links carry is agreed on again whenever a communicator is made of c by px_comm_confirm (comm_make.h), in its messages:
 * px_model_offer: the slowest link from this site to the others of c, as the daemons have seen it since; the largest offer of all members is
 * px_model_agreed: how c, and what is made of it and has the same sites (px_model_inherit), sees its links from now on. (Not MPI_Comm_idup: that ends
 * at each member when it likes, and may do so after the next agreement; and not MPI_Comm_create_group, in which not all members agree.) */
long long px_model_offer(struct px_comm *c);
void px_model_agreed(struct px_comm *c, long long most);
void px_model_inherit(struct px_comm *made, const struct px_comm *c);

/* px_model_associative: PACX_ASSOCIATIVE of rank 0: as if pacx_set_associative had been called on every communicator. */
bool px_model_associative(void);
/* px_model_join: instead of px_model_start, in a process that joins the world later (guest.h). */
void px_model_join(bool associative);

#endif
