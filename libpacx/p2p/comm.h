/* comm.h: the communicator object: a native communicator of the local members plus what the
 * native MPI does not know: global ranks, context id, sites.
 *
 * Only communicators that span sites have a px_comm; it is found by the handle of its
 * native communicator (comm_find.h), which is the handle the application holds (or, for
 * MPI_COMM_WORLD, px_world_native). Reference counted: the handle and each pending operation hold one.
 */
#ifndef PX_COMM_H
#define PX_COMM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "match.h"
#include "ranks.h"

struct px_topo;
struct px_inter;
struct px_terms;
struct px_groups;

struct px_comm {
	MPI_Comm native; /* the members at this site */
	uint64_t
		ctx; /* a multiple of 4; ctx | 1 is the context of collectives, ctx | 2 that of an intercommunicator's messages */
	int refs;
	int size, rank;
	int nlocal, lrank;
	struct px_ranks *ranks; /* the members; ask with px_grank and the like */
	int lo;                 /* position of comm rank 0 in it */
	int nparts, self;       /* sites with members, in site order; index of ours */
	bool associative;       /* pacx_set_associative */
	double accuracy;        /* pacx_set_accuracy: 0 = exact */
	double latency, rate,
		uplink; /* s, bytes/s of the slowest links between its sites and of what those of a site share (0 = no limit); rate 0 = not
				 looked up yet (coll/model.c) */
	bool blocked;   /* px_ranks.blocked */
	struct px_terms *terms
		[2]; /* the order of reductions (coll/terms.h), two forms, each one block on the heap; NULL = not needed yet */
	struct px_groups *groups; /* of sites (coll/groups.h), one block on the heap; NULL = not needed yet */
	struct px_match p2p, coll;
	struct px_match parts; /* partitioned messages, of ctx | 3; from the first of them on (parted) */
	bool parted;
	/* Fairness: from any source, whose message is taken first if this site and others have one: they take turns. What a probe has found stays
	 * first until the next receive. */
	bool local_first, probed;
	uint32_t seq;              /* collectives called so far */
	uint32_t dups, dups_done;  /* nonblocking native duplications called, and complete, so far */
	struct px_comm *next_dead; /* see px_comm_sweep */
	struct px_topo *topo;      /* Cartesian or graph topology (topo.h), one block on the heap; or NULL */
	struct px_inter *
		inter; /* an intercommunicator: ranks and tables are those of the remote group (inter.h); or NULL */
	MPI_Comm
		face; /* whose error handler hears of errors: native, or the intercommunicator that this one serves */
};

/* What is known of comm ranks. In an intercommunicator they are those of the remote group. */

/* px_grank: the global rank of a comm rank. */
static inline int px_grank(const struct px_comm *c, int rank)
{
	return px_ranks_at(c->ranks, c->lo + rank);
}

/* px_part_of: the index of a comm rank's site among those with members. */
static inline int px_part_of(const struct px_comm *c, int rank)
{
	return px_ranks_run_of(c->ranks, c->lo + rank)->part;
}

/* px_lrank: rank in native, -1 = at another site. */
static inline int px_lrank(const struct px_comm *c, int rank)
{
	const struct px_ranks_run *r = px_ranks_run_of(c->ranks, c->lo + rank);

	return r->part == c->self ? r->before + (c->lo + rank - r->pos) : -1;
}

/* px_rank_of: the comm rank of a global rank, -1 = no member. */
static inline int px_rank_of(const struct px_comm *c, int grank)
{
	int r = px_ranks_find(c->ranks, grank) - c->lo;

	return r >= 0 && r < c->size ? r : -1;
}

/* px_member: comm rank of the i-th member of a part, in rising order; not of intercommunicators. The first one is its leader. */
static inline int px_member(const struct px_comm *c, int part, int i)
{
	return px_ranks_member(c->ranks, part, i);
}

static inline int px_leader(const struct px_comm *c, int part)
{
	return px_member(c, part, 0);
}

static inline int px_part_count(const struct px_comm *c, int part)
{
	return c->ranks->part[part].count;
}

/* px_rank_of_local: comm rank of a rank in native; -1: in the other group of an intercommunicator. */
static inline int px_rank_of_local(const struct px_comm *c, int native)
{
	int r = px_ranks_member(c->ranks, c->self, native) - c->lo;

	return r >= 0 && r < c->size ? r : -1;
}

/* px_comm_took: a message of this site, or of another one, was received from any source. */
static inline void px_comm_took(struct px_comm *c, bool local)
{
	c->local_first = !local;
	c->probed = false;
}

/* px_comm_asked: a receive names its source. If a probe has found that one, it is the others' turn now. */
static inline void px_comm_asked(struct px_comm *c)
{
	if (c->probed)
		px_comm_took(c, c->local_first);
}

/* px_comm_new: communicator of these ranks (held as long), native = its members here (taken over), in the same order.
 * Registers contexts and the handle. NULL: out of memory. */
struct px_comm *px_comm_new(MPI_Comm native, uint64_t ctx, struct px_ranks *ranks);
/* px_comm_take: the fields that follow from its members, whom it holds: ranks, lo and size, nlocal, self. */
void px_comm_take(struct px_comm *c, struct px_ranks *ranks, int lo, int size);
void px_comm_hold(struct px_comm *c);
void px_comm_drop(struct px_comm *c);
/* px_comm_free: what MPI_Comm_free does: the last holder goes, or one of them. MPI error code, raised, if a function of the user's for an attribute
 * fails: then c stays. */
int px_comm_free(struct px_comm *c);
/* px_comm_release: free the memory of one that was never registered. */
void px_comm_release(struct px_comm *c);
/* px_comm_sweep: free those whose last holder went while other sites were being served (px_serving). */
void px_comm_sweep(void);

/* px_ctx_candidate: a context id never used before in this job, a multiple of 4, made without communication. */
uint64_t px_ctx_candidate(void);

#endif
