/* model.h: which algorithm an operation takes: one table of costs over the measured links (model.c).
 *
 * All ranks must choose alike: what is decided from (links, forced choices) is agreed on at the start, and nothing that only one rank knows may be added.
 */
#ifndef PX_MODEL_H
#define PX_MODEL_H

#include "schedule.h"

enum px_algorithm {
	PX_ALG_LEADER, /* the leader of a site, or the root, sends the whole to each other site; the steps follow one another */
	PX_ALG_SEGMENTS, /* the same in segments, whose steps overlap */
	PX_ALG_PIECES,   /* the sites exchange pieces; segments of the whole overlap, too */
	PX_ALG_COUNT
};

/* px_model_start: collective over the world, at the start: measures the links and agrees on them. MPI error code; PACX_COLL_* that name no
 * algorithm are an error that is logged. */
int px_model_start(void);

/* px_model_pick: for `bytes` bytes of packed data (of one operand), of which `terms` have to leave a site. */
enum px_algorithm px_model_pick(struct px_comm *c, enum px_coll op, MPI_Count bytes, int terms);

/* px_model_associative: PACX_ASSOCIATIVE of rank 0: as if pacx_set_associative had been called on every communicator. */
bool px_model_associative(void);

/* px_model_segments: into how many segments, of PX_ALG_SEGMENTS and _PIECES. */
int px_model_segments(MPI_Count bytes);

#endif
