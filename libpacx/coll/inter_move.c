/* inter_move.c: the collectives on intercommunicators that move data: barrier, bcast, gather(v), scatter(v), allgather(v), alltoall(v,w).
 * See inter_coll.h.
 */
#include "bind.h"
#include "coll.h"
#include "datatype.h"
#include "inter_coll.h"
#include "raise.h"

int px_inter_head(const struct px_comm *all, struct px_side group, int part)
{
	for (int i = 0; i < px_part_count(all, part); i++) {
		int r = px_member(all, part, i);

		if (r >= group.lo && r < group.hi)
			return r;
	}
	return -1;
}

/* From head to the other members of its group at its site. */
static void hand_on(
	struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, struct px_side group)
{
	struct px_comm *all = px_sched_comm(s);

	for (int i = 0; i < all->nlocal; i++) {
		int r = px_member(all, all->self, i);

		if (r > all->rank && r < group.hi)
			px_sched_send(s, buf, count, t, r);
	}
}

void px_inter_spread(struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, struct px_side to)
{
	struct px_comm *all = px_sched_comm(s);

	for (int p = 0; p < all->nparts; p++)
		if (px_inter_head(all, to, p) >= 0)
			px_sched_send(s, buf, count, t, px_inter_head(all, to, p));
}

void px_inter_take(
	struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int from, struct px_side to)
{
	struct px_comm *all = px_sched_comm(s);
	int head = px_inter_head(all, to, all->self);

	px_sched_recv(s, buf, count, t, all->rank == head ? from : head);
	px_sched_round(s);
	if (all->rank == head)
		hand_on(s, buf, count, t, to);
	px_sched_round(s);
}

int px_inter_root(struct px_comm *c, int root)
{
	if (root == MPI_ROOT || root == MPI_PROC_NULL || (root >= 0 && root < c->size))
		return MPI_SUCCESS;
	return px_raise(c, MPI_ERR_ROOT, "root %d, the remote group has %d", root, c->size);
}

static struct px_sched *build_barrier(struct px_comm *c)
{
	struct px_comm *all = c->inter->all;
	struct px_sched *s = px_sched_new(all, PX_COLL_BARRIER);
	MPI_Count *bytes = s ? px_sched_temp(s, (size_t)all->size * sizeof *bytes) : NULL;
	void *said = bytes ? px_sched_temp(s, (size_t)all->size) : NULL;

	for (int r = 0; bytes && r < all->size; r++)
		bytes[r] = 1;
	if (said)
		px_coll_allgather(s, px_sched_temp(s, 1), bytes, said);
	return s;
}

int px_inter_Barrier(struct px_comm *c)
{
	return px_sched_run(build_barrier(c), c->inter->all);
}

int px_inter_Ibarrier(struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(build_barrier(c), c->inter->all, req);
}

static struct px_sched *build_bcast(void *buf, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c->inter->all, PX_COLL_BCAST);

	if (!s || root == MPI_PROC_NULL)
		return s;
	if (count < 0 || !px_type_get(t))
		px_sched_fail_arg(s, -1, count);
	else if (root == MPI_ROOT)
		px_inter_spread(s, buf, count, t, px_inter_remote(c));
	else
		px_inter_take(s, buf, count, t, px_inter_remote(c).lo + root, px_inter_local(c));
	return s;
}

int px_inter_Bcast(void *buf, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c)
{
	int rc = px_inter_root(c, root);

	return rc != MPI_SUCCESS ? rc : px_sched_run(build_bcast(buf, count, t, root, c), c->inter->all);
}

int px_inter_Ibcast(void *buf, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c, MPI_Request *req)
{
	int rc = px_inter_root(c, root);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_bcast(buf, count, t, root, c), c->inter->all, req);
}

/* One side of a buffer with a block for each rank of the remote group. */
struct block {
	char *at;
	MPI_Count count;
	MPI_Datatype t;
};

/* In each form: NULL when the arguments are not valid, which then has failed the schedule; or when there is no memory. */
static struct block *blocks_new(struct px_sched *s, const struct px_comm *c)
{
	return px_sched_temp(s, (size_t)c->size * sizeof(struct block));
}

static struct block *regular(
	struct px_sched *s, const struct px_comm *c, const void *buf, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	struct block *b;

	if (!p || count < 0) {
		px_sched_fail_arg(s, -1, count);
		return NULL;
	}
	b = blocks_new(s, c);
	for (int r = 0; b && r < c->size; r++)
		b[r] = (struct block){ (char *)(uintptr_t)buf + count * r * p->extent, count, t };
	return b;
}

static struct block *vector(struct px_sched *s, const struct px_comm *c, const void *buf,
	const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	struct block *b;

	if (!p) {
		px_sched_fail_arg(s, -1, 0);
		return NULL;
	}
	b = blocks_new(s, c);
	for (int r = 0; b && r < c->size; r++) {
		if (counts[r] < 0) {
			px_sched_fail_arg(s, r, counts[r]);
			return NULL;
		}
		b[r] = (struct block){ (char *)(uintptr_t)buf + displs[r] * p->extent, counts[r], t };
	}
	return b;
}

static struct block *general(struct px_sched *s, const struct px_comm *c, const void *buf,
	const MPI_Count counts[], const MPI_Aint displs[], const MPI_Datatype types[])
{
	struct block *b = blocks_new(s, c);

	for (int r = 0; b && r < c->size; r++) {
		if (counts[r] < 0 || !px_type_get(types[r])) {
			px_sched_fail_arg(s, r, counts[r]);
			return NULL;
		}
		b[r] = (struct block){ (char *)(uintptr_t)buf + displs[r], counts[r], types[r] };
	}
	return b;
}

static void send_blocks(struct px_sched *s, const struct px_comm *c, const struct block *b)
{
	struct px_side far = px_inter_remote(c);

	for (int r = 0; b && r < c->size; r++)
		px_sched_send(s, b[r].at, b[r].count, b[r].t, far.lo + r);
}

static void recv_blocks(struct px_sched *s, const struct px_comm *c, const struct block *b)
{
	struct px_side far = px_inter_remote(c);

	for (int r = 0; b && r < c->size; r++)
		px_sched_recv(s, b[r].at, b[r].count, b[r].t, far.lo + r);
}

/* One message between the root (MPI_ROOT there) and each rank of the other group. */
static bool valid(struct px_sched *s, MPI_Count count, MPI_Datatype t)
{
	if (count < 0 || !px_type_get(t))
		px_sched_fail_arg(s, -1, count);
	return px_sched_ok(s);
}

static struct px_sched *build_gather(const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count rcount, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt, int root,
	struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c->inter->all, counts ? PX_COLL_GATHERV : PX_COLL_GATHER);

	if (!s || root == MPI_PROC_NULL)
		return s;
	if (root == MPI_ROOT)
		recv_blocks(s, c,
			counts ? vector(s, c, out, counts, displs, rt) : regular(s, c, out, rcount, rt));
	else if (valid(s, count, t))
		px_sched_send(s, in, count, t, px_inter_remote(c).lo + root);
	return s;
}

static struct px_sched *build_scatter(const void *in, MPI_Count scount, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype t, void *out, MPI_Count count, MPI_Datatype rt, int root,
	struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c->inter->all, counts ? PX_COLL_SCATTERV : PX_COLL_SCATTER);

	if (!s || root == MPI_PROC_NULL)
		return s;
	if (root == MPI_ROOT)
		send_blocks(
			s, c, counts ? vector(s, c, in, counts, displs, t) : regular(s, c, in, scount, t));
	else if (valid(s, count, rt))
		px_sched_recv(s, out, count, rt, px_inter_remote(c).lo + root);
	return s;
}

/* Each sends its block once to each site with members of the other group, whose head there hands all blocks on. */
static struct px_sched *build_allgather(const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count rcount, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt,
	struct px_comm *c)
{
	struct px_comm *all = c->inter->all;
	struct px_side near = px_inter_local(c), far = px_inter_remote(c);
	int head = px_inter_head(all, near, all->self);
	struct px_sched *s = px_sched_new(all, counts ? PX_COLL_ALLGATHERV : PX_COLL_ALLGATHER);
	struct block *b;

	if (!s || !valid(s, count, t))
		return s;
	b = counts ? vector(s, c, out, counts, displs, rt) : regular(s, c, out, rcount, rt);
	if (!b)
		return s;
	for (int p = 0; p < all->nparts; p++)
		if (px_inter_head(all, far, p) >= 0)
			px_sched_send(s, in, count, t, px_inter_head(all, far, p));
	for (int r = 0; r < c->size; r++)
		px_sched_recv(s, b[r].at, b[r].count, b[r].t, all->rank == head ? far.lo + r : head);
	if (all->rank != head)
		return s;
	px_sched_round(s);
	for (int r = 0; r < c->size; r++)
		hand_on(s, b[r].at, b[r].count, b[r].t, near);
	return s;
}

static struct px_sched *exchange(
	struct px_sched *s, struct px_comm *c, const struct block *out, const struct block *in)
{
	if (px_sched_ok(s)) {
		recv_blocks(s, c, in);
		send_blocks(s, c, out);
	}
	return s;
}

static struct px_sched *build_alltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count rcount, MPI_Datatype rt, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c->inter->all, PX_COLL_ALLTOALL);

	return s ? exchange(s, c, regular(s, c, in, count, t), regular(s, c, out, rcount, rt)) : NULL;
}

static struct px_sched *build_alltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	MPI_Datatype t, void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt,
	struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c->inter->all, PX_COLL_ALLTOALLV);

	return s ? exchange(s, c, vector(s, c, in, scounts, sdispls, t),
			   vector(s, c, out, rcounts, rdispls, rt))
		 : NULL;
}

static struct px_sched *build_alltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c->inter->all, PX_COLL_ALLTOALLW);

	return s ? exchange(s, c, general(s, c, in, scounts, sdispls, st),
			   general(s, c, out, rcounts, rdispls, rt))
		 : NULL;
}

/* All four forms of each; req NULL: blocking. */
static int begin_gather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt, int root, struct px_comm *c,
	MPI_Request *req)
{
	int rc = px_inter_root(c, root);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_go(build_gather(in, count, t, out, rcount, counts, displs, rt, root, c),
				 c->inter->all, req);
}

static int begin_scatter(const void *in, MPI_Count scount, const MPI_Count counts[], const MPI_Aint displs[],
	MPI_Datatype t, void *out, MPI_Count count, MPI_Datatype rt, int root, struct px_comm *c,
	MPI_Request *req)
{
	int rc = px_inter_root(c, root);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_go(build_scatter(in, scount, counts, displs, t, out, count, rt, root, c),
				 c->inter->all, req);
}

int px_inter_Gather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, int root, struct px_comm *c)
{
	return begin_gather(in, count, t, out, rcount, NULL, NULL, rt, root, c, NULL);
}

int px_inter_Igather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	return begin_gather(in, count, t, out, rcount, NULL, NULL, rt, root, c, req);
}

int px_inter_Gatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, int root, struct px_comm *c)
{
	return begin_gather(in, count, t, out, 0, counts, displs, rt, root, c, NULL);
}

int px_inter_Igatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	return begin_gather(in, count, t, out, 0, counts, displs, rt, root, c, req);
}

int px_inter_Scatter(const void *in, MPI_Count scount, MPI_Datatype t, void *out, MPI_Count count,
	MPI_Datatype rt, int root, struct px_comm *c)
{
	return begin_scatter(in, scount, NULL, NULL, t, out, count, rt, root, c, NULL);
}

int px_inter_Iscatter(const void *in, MPI_Count scount, MPI_Datatype t, void *out, MPI_Count count,
	MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	return begin_scatter(in, scount, NULL, NULL, t, out, count, rt, root, c, req);
}

int px_inter_Scatterv(const void *in, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t,
	void *out, MPI_Count count, MPI_Datatype rt, int root, struct px_comm *c)
{
	return begin_scatter(in, 0, counts, displs, t, out, count, rt, root, c, NULL);
}

int px_inter_Iscatterv(const void *in, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t,
	void *out, MPI_Count count, MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	return begin_scatter(in, 0, counts, displs, t, out, count, rt, root, c, req);
}

int px_inter_Allgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	return px_sched_run(build_allgather(in, count, t, out, rcount, NULL, NULL, rt, c), c->inter->all);
}

int px_inter_Iallgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(
		build_allgather(in, count, t, out, rcount, NULL, NULL, rt, c), c->inter->all, req);
}

int px_inter_Allgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c)
{
	return px_sched_run(build_allgather(in, count, t, out, 0, counts, displs, rt, c), c->inter->all);
}

int px_inter_Iallgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(
		build_allgather(in, count, t, out, 0, counts, displs, rt, c), c->inter->all, req);
}

int px_inter_Alltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	return px_sched_run(build_alltoall(in, count, t, out, rcount, rt, c), c->inter->all);
}

int px_inter_Ialltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(build_alltoall(in, count, t, out, rcount, rt, c), c->inter->all, req);
}

int px_inter_Alltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[], MPI_Datatype t,
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt, struct px_comm *c)
{
	return px_sched_run(
		build_alltoallv(in, scounts, sdispls, t, out, rcounts, rdispls, rt, c), c->inter->all);
}

int px_inter_Ialltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[], MPI_Datatype t,
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt, struct px_comm *c,
	MPI_Request *req)
{
	return px_sched_start(
		build_alltoallv(in, scounts, sdispls, t, out, rcounts, rdispls, rt, c), c->inter->all, req);
}

int px_inter_Alltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c)
{
	return px_sched_run(
		build_alltoallw(in, scounts, sdispls, st, out, rcounts, rdispls, rt, c), c->inter->all);
}

int px_inter_Ialltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(
		build_alltoallw(in, scounts, sdispls, st, out, rcounts, rdispls, rt, c), c->inter->all, req);
}
