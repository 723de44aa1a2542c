/* ranks.h: an ordered list of global ranks, as runs: what communicators and groups are made of.
 *
 * Owns the lists of this process. They never change, are counted, and shared by all who have the same one: a world of a million ranks at 64
 * sites takes 64 runs, and so do all duplicates of it together. A run is (first, count, stride) within one site; a list without any
 * order costs a few bytes per member, and a table of the range of its ranks at each site, nothing of the world's size.
 * Pure: no MPI. The caller has the lock (lock.h) when lists come and go; looking up needs none.
 */
#ifndef PX_RANKS_H
#define PX_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include "world.h"

struct px_ranks_run {
	int pos;    /* position of its first member in the list */
	int count;  /* members, in a row */
	int grank;  /* global rank of the first one; -1: they are not in this world */
	int stride; /* between global ranks */
	int part;   /* index of their site in part[]; -1 with grank -1 */
	int before; /* members of the same part before it */
};

/* The members of one site. */
struct px_ranks_part {
	int site, count;
	int first, nruns; /* its runs are of[first] ... */
	int low, high;    /* global ranks of its members are between */
	int *at;          /* [high - low + 1] positions, -1 = no member; NULL: there are few runs */
};

struct px_ranks {
	struct px_ranks *next;
	const struct px_world *world;
	int refs, size, nruns;
	int nparts;   /* sites with members, in site order */
	bool blocked; /* the members of every site are consecutive, and sites follow in their order */
	struct px_ranks_run *run;   /* [nruns] in the order of the list */
	struct px_ranks_part *part; /* [nparts] */
	int *of;                    /* [nruns] indices of runs, by part */
};

/* px_ranks_new: these global ranks (-1: of no process of this world), in this order; px_ranks_world: all. NULL: out of memory. */
struct px_ranks *px_ranks_new(const struct px_world *w, int size, const int *grank);
struct px_ranks *px_ranks_world(const struct px_world *w);
struct px_ranks *px_ranks_hold(struct px_ranks *l);
void px_ranks_drop(struct px_ranks *l); /* NULL is fine */

/* px_ranks_find: position of a global rank, -1 = not in the list. */
int px_ranks_find(const struct px_ranks *l, int grank);
/* px_ranks_member: position of the i-th member of a part. */
int px_ranks_member(const struct px_ranks *l, int part, int i);
/* px_ranks_write: the global ranks of positions from, from + 1, ... (n of them). */
void px_ranks_write(const struct px_ranks *l, int from, int n, int *grank);
/* px_ranks_bytes: memory that the list takes. */
size_t px_ranks_bytes(const struct px_ranks *l);

/* px_ranks_run_of: the run of a position, which is in the list. */
static inline const struct px_ranks_run *px_ranks_run_of(const struct px_ranks *l, int pos)
{
	int low = 0, high = l->nruns - 1;

	while (low < high) {
		int mid = (low + high + 1) / 2;

		if (l->run[mid].pos <= pos)
			low = mid;
		else
			high = mid - 1;
	}
	return &l->run[low];
}

/* px_ranks_at: the global rank at a position. */
static inline int px_ranks_at(const struct px_ranks *l, int pos)
{
	const struct px_ranks_run *r = px_ranks_run_of(l, pos);

	return r->grank + (pos - r->pos) * r->stride;
}

/* px_ranks_nth: how many members of the same part are before this position. */
static inline int px_ranks_nth(const struct px_ranks *l, int pos)
{
	const struct px_ranks_run *r = px_ranks_run_of(l, pos);

	return r->before + (pos - r->pos);
}

#endif
