/* match.h: posted receives and unexpected messages of one context. Pure: no MPI calls.
 *
 * Holds only what concerns other sites (and internal messages of collectives). Both lists
 * are in order of posting and of arrival; MPI's matching rules follow from searching them from the front.
 */
#ifndef PX_MATCH_H
#define PX_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

struct px_req;
struct px_comm;

/* A message whose envelope has come and that no receive has taken. */
struct px_msg {
	struct px_msg *next;
	struct px_frame f;
	int from;       /* rank on the relay communicator that holds the payload */
	int src;        /* comm rank of the sender */
	uint8_t data[]; /* inline payload */
};

struct px_match {
	struct px_comm *c;
	bool exact; /* a context of the library's own: no wildcards, a tag may have the value of one */
	struct px_req *posted, *posted_last; /* linked by px_req.next and .prev */
	struct px_msg *arrived, **arrived_end;
};

void px_match_init(struct px_match *m, struct px_comm *c);
void px_match_post(struct px_match *m, struct px_req *r);
void px_match_unpost(struct px_match *m, struct px_req *r);
void px_match_arrive(struct px_match *m, struct px_msg *u);
/* px_match_find: first arrived message for (src, tag), wildcards allowed unless m is exact; take removes it. NULL: none. */
struct px_msg *px_match_find(struct px_match *m, int src, int tag, bool take);
/* px_match_pop: the first arrived message of all, removed. NULL: none. */
struct px_msg *px_match_pop(struct px_match *m);
/* px_match_next: the first posted receive at or behind r that takes (src, tag); NULL: none. */
struct px_req *px_match_next(struct px_req *r, int src, int tag);

#endif
