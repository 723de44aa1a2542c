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

/* The members of one site in one communicator. */
struct px_part {
	int count;
	int *ranks; /* [count] comm ranks in rising order; ranks[0] is the leader */
};

struct px_topo;
struct px_inter;

struct px_comm {
	MPI_Comm native; /* the members at this site */
	uint64_t
		ctx; /* a multiple of 4; ctx | 1 is the context of collectives, ctx | 2 that of an intercommunicator's messages */
	int refs;
	int size, rank;
	int nlocal, lrank;
	int *grank;         /* [size] comm rank -> global rank */
	int *lrank_of;      /* [size] comm rank -> rank in native, -1 = at another site */
	int *rank_of;       /* [world size] global rank -> comm rank, -1 = no member */
	int *rank_of_local; /* [nlocal] rank in native -> comm rank */
	int nparts, self;   /* sites with members, in site order; index of ours */
	struct px_part *part;
	int *part_of;     /* [size] comm rank -> index in part */
	bool associative; /* pacx_set_associative */
	double accuracy;  /* pacx_set_accuracy: 0 = exact */
	bool blocked;     /* the ranks of every site are consecutive and sites follow in rank order */
	struct px_match p2p, coll;
	uint32_t seq;              /* collectives called so far */
	uint32_t dups, dups_done;  /* nonblocking native duplications called, and complete, so far */
	struct px_comm *next_dead; /* see px_comm_sweep */
	struct px_topo *topo;      /* Cartesian or graph topology (topo.h), one block on the heap; or NULL */
	struct px_inter *
		inter; /* an intercommunicator: ranks and tables are those of the remote group (inter.h); or NULL */
	MPI_Comm
		face; /* whose error handler hears of errors: native, or the intercommunicator that this one serves */
};

/* px_comm_new: communicator over `size` global ranks (copied), native = its members here (taken over),
 * whose native ranks must be in the order of grank[]. Registers contexts and the handle. NULL: out of memory. */
struct px_comm *px_comm_new(MPI_Comm native, uint64_t ctx, int size, const int *grank);
void px_comm_hold(struct px_comm *c);
void px_comm_drop(struct px_comm *c);
/* px_comm_release: free the memory of one that was never registered. */
void px_comm_release(struct px_comm *c);
/* px_comm_sweep: free those whose last holder went while other sites were being served (px_serving). */
void px_comm_sweep(void);

/* px_comm_spans: do these global ranks live at more than one site? */
bool px_comm_spans(int size, const int *grank);

/* px_ctx_candidate: a context id never used before in this job, a multiple of 4, made without communication. */
uint64_t px_ctx_candidate(void);

#endif
