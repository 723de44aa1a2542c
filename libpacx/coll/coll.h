/* coll.h: the builders that add one operation's steps to a schedule, for those who compose them.
 *
 * Sites are the parts of the communicator; the leader of a part is its lowest rank, native rank 0.
 * Buffers are addressed as in MPI; MPI_IN_PLACE is resolved by the callers.
 */
#ifndef PX_COLL_H
#define PX_COLL_H

#include "schedule.h"

/* px_coll_bcast: from comm rank root. One wide-area message to each other site. */
void px_coll_bcast(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int root);

/* px_coll_allgather: every rank has bytes[rank] bytes at mine; all get all, in rank order, at all.
 * bytes[] is the same everywhere and must live as long as the schedule. */
void px_coll_allgather(struct px_sched *s, const void *mine, const MPI_Count *bytes, void *all);

/* px_coll_side_by_side: by_rank[] of the local members, and where their blocks lie one behind the other: for the native calls. False: s has failed. */
bool px_coll_side_by_side(
	struct px_sched *s, const MPI_Count by_rank[], const MPI_Count **counts, const MPI_Aint **displs);

/* px_coll_alltoall_by_site: MPI_Alltoall, one message from site to site. */
void px_coll_alltoall_by_site(struct px_sched *s, const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count rcount, MPI_Datatype rt);

/* px_comm_agree: collective over c: all contribute `bytes` bytes, all get all, in rank order. MPI error code. */
int px_comm_agree(struct px_comm *c, const void *mine, int bytes, void *all);

/* px_comm_max: collective over c: v[0..n) become the largest of all members. MPI error code. */
int px_comm_max(struct px_comm *c, long long *v, int n);

/* px_coll_allreduce, px_coll_reduce: rank order is kept unless op commutes; the same bits at all ranks. */
void px_coll_reduce(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root);
void px_coll_allreduce(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op);

/* px_coll_by_site: may the operands of each site be combined first? */
bool px_coll_by_site(const struct px_comm *c, MPI_Op op);

/* What is wrong with arguments; raised. MPI error code.
 * px_coll_check: of a reduction. px_coll_op: does the vendor apply op to elements of t? px_coll_apart: are two buffers px_coll_aliased?
 * px_coll_apart_reduced: those of a reduce at its root, or allreduce, of which Open MPI minds, too. */
int px_coll_check(struct px_comm *c, MPI_Count count, MPI_Datatype t, MPI_Op op);
int px_coll_op(struct px_comm *c, MPI_Datatype t, MPI_Op op);
int px_coll_apart(struct px_comm *c, const void *in, const void *out);
int px_coll_apart_reduced(struct px_comm *c, const void *in, const void *out, bool all);
/* px_coll_apart_own: the same of count elements of t at mine and the rank's own block among those of all ranks, of `own` elements of in_all at
 * element `at`; regular: all blocks have one count. */
int px_coll_apart_own(struct px_comm *c, const void *mine, MPI_Count count, MPI_Datatype t, const void *all,
	MPI_Count at, MPI_Count own, bool regular, MPI_Datatype in_all);

/* px_coll_aliased: are in and out one buffer, and does the vendor mind (MPICH)? px_coll_alias: what to say then. */
bool px_coll_aliased(const void *in, const void *out);
extern const char px_coll_alias[];

/* px_coll_apply: inout = in op inout. MPI error code. */
int px_coll_apply(const void *in, void *inout, MPI_Count count, MPI_Datatype t, MPI_Op op);

/* px_coll_fold: part[n-1] = part[0] op ... op part[n-1], in this order. MPI error code. */
int px_coll_fold(void **part, int n, MPI_Count count, MPI_Datatype t, MPI_Op op);

/* px_copy: count elements of t from one buffer to another. MPI error code. */
int px_copy(const void *from, void *to, MPI_Count count, MPI_Datatype t);

/* px_coll_root: raise MPI_ERR_ROOT unless 0 <= root < size. */
int px_coll_root(struct px_comm *c, int root);

/* px_coll_strict: px_sched_exact where the vendor, too, takes a broadcast of fewer bytes than a rank expects for an error: MPICH does, and to
 * Open MPI it is none, which programs rely on. */
void px_coll_strict(struct px_sched *s, int step);

/* px_coll_head: comm rank of a part's head in an operation rooted at comm rank root: the root itself in its own part, else the leader. */
int px_coll_head(const struct px_comm *c, int part, int root);

/* px_coll_lane: comm rank of a part's head of segment k, where all take turns. */
int px_coll_lane(const struct px_comm *c, int part, int k);

#endif
