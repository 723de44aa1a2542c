/* inter_reduce.c: the reductions on intercommunicators: each group gets the result of the other one. See inter_coll.h.
 *
 * Design. A group's operands are applied in the order of its ranks: at the head of each site first where the operator commutes or
 * the group's ranks follow the sites, else all in one place. The result is made at one process only, so all that
 * get it get the same bits.
 */
#include "bind.h"
#include "coll.h"
#include "datatype.h"
#include "inter_coll.h"
#include "raise.h"
#include "vendor.h"

/* Operands in order: out = part[0] op part[1] op ...; parts are overwritten. */
struct fold {
	void **part;
	int n;
	void *out;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

static int fold(struct px_sched *s, void *arg)
{
	struct fold *f = arg;
	int rc = px_coll_fold(f->part, f->n, f->count, f->t, f->op);

	(void)s;
	return rc == MPI_SUCCESS ? px_copy(f->part[f->n - 1], f->out, f->count, f->t) : rc;
}

/* Receive an operand from each of ranks[n] and fold them to out. */
static void collect(
	struct px_sched *s, const int *ranks, int n, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	struct fold *f = px_sched_temp(s, sizeof *f);

	if (!f)
		return;
	*f = (struct fold){ px_sched_temp(s, (size_t)n * sizeof *f->part), n, out, count, t, op };
	for (int i = 0; f->part && i < n; i++) {
		f->part[i] = px_sched_temp_typed(s, count, t);
		px_sched_recv(s, f->part[i], count, t, ranks[i]);
	}
	px_sched_round(s);
	px_sched_call(s, fold, f);
	px_sched_round(s);
}

static bool by_site(const struct px_comm *all, struct px_side group, MPI_Op op)
{
	int commutes = 0;

	if (px_n.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes)
		return true;
	for (int r = group.lo + 1; r < group.hi; r++)
		if (px_part_of(all, r) < px_part_of(all, r - 1))
			return false;
	return true;
}

/* The members of the group at one site (part), or all (-1); or the heads of the group at all sites (-2). */
static int *members(struct px_sched *s, struct px_side group, int part, int *n)
{
	struct px_comm *all = px_sched_comm(s);
	int *v = px_sched_temp(s, (size_t)all->size * sizeof *v);

	*n = 0;
	for (int p = 0; v && part == -2 && p < all->nparts; p++)
		if (px_inter_head(all, group, p) >= 0)
			v[(*n)++] = px_inter_head(all, group, p);
	for (int r = group.lo; v && part != -2 && r < group.hi; r++)
		if (part == -1 || px_part_of(all, r) == part)
			v[(*n)++] = r;
	return v;
}

/* The operands of a group to `to`, a rank of `all` in either group. Called by all members of the group, and `to`. */
static void reduce(struct px_sched *s, struct px_side group, const void *in, void *out, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int to)
{
	struct px_comm *all = px_sched_comm(s);
	bool sites = by_site(all, group, op), member = all->rank >= group.lo && all->rank < group.hi;
	int head = member ? px_inter_head(all, group, all->self) : -1, n, *from;
	void *mine;

	if (member)
		px_sched_send(s, in, count, t, sites ? head : to);
	if (sites && all->rank == head) {
		mine = px_sched_temp_typed(s, count, t);
		from = members(s, group, all->self, &n);
		if (!mine || !from)
			return;
		collect(s, from, n, mine, count, t, op);
		px_sched_send(s, mine, count, t, to);
	}
	if (all->rank == to && (from = members(s, group, sites ? -2 : -1, &n)))
		collect(s, from, n, out, count, t, op);
	px_sched_round(s);
}

static struct px_sched *build_reduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root, struct px_comm *c)
{
	struct px_comm *all = c->inter->all;
	struct px_sched *s = px_sched_new(all, PX_COLL_REDUCE);

	if (!s || root == MPI_PROC_NULL)
		return s;
	if (root == MPI_ROOT)
		reduce(s, px_inter_remote(c), NULL, out, count, t, op, all->rank);
	else
		reduce(s, px_inter_local(c), in, NULL, count, t, op, px_inter_remote(c).lo + root);
	return s;
}

int px_inter_Reduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root, struct px_comm *c)
{
	int rc = px_inter_root(c, root);

	if (rc == MPI_SUCCESS && root != MPI_PROC_NULL)
		rc = px_coll_check(c, count, t, op);
	return rc != MPI_SUCCESS ? rc
				 : px_sched_run(build_reduce(in, out, count, t, op, root, c), c->inter->all);
}

int px_inter_Ireduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root,
	struct px_comm *c, MPI_Request *req)
{
	int rc = px_inter_root(c, root);

	if (rc == MPI_SUCCESS && root != MPI_PROC_NULL)
		rc = px_coll_check(c, count, t, op);
	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_start(build_reduce(in, out, count, t, op, root, c), c->inter->all, req);
}

static struct px_sched *build_allreduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	struct px_comm *all = c->inter->all;
	struct px_side near = px_inter_local(c), far = px_inter_remote(c);
	struct px_sched *s = px_sched_new(all, PX_COLL_ALLREDUCE);
	void *ours = s ? px_sched_temp_typed(s, count, t) : NULL;

	if (!ours)
		return s;
	reduce(s, near, in, ours, count, t, op, near.lo);
	if (all->rank == near.lo)
		px_inter_spread(s, ours, count, t, far);
	px_inter_take(s, out, count, t, far.lo, near);
	return s;
}

int px_inter_Allreduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = px_coll_check(c, count, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_run(build_allreduce(in, out, count, t, op, c), c->inter->all);
}

int px_inter_Iallreduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = px_coll_check(c, count, t, op);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_start(build_allreduce(in, out, count, t, op, c), c->inter->all, req);
}

/* The first of each group gets the other group's result and deals it out: counts[] of the local group, or `each`. */
static struct px_sched *build_reduce_scatter(const void *in, void *out, const MPI_Count counts[],
	MPI_Count each, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	struct px_comm *all = c->inter->all;
	struct px_side near = px_inter_local(c), far = px_inter_remote(c);
	struct px_sched *s =
		px_sched_new(all, counts ? PX_COLL_REDUCE_SCATTER : PX_COLL_REDUCE_SCATTER_BLOCK);
	MPI_Count total = 0, extent = px_type_get(t)->extent;
	char *ours, *theirs;

	for (int r = 0; r < c->inter->size; r++)
		total += counts ? counts[r] : each;
	if (!s)
		return s;
	ours = px_sched_temp_typed(s, total, t);
	theirs = px_sched_temp_typed(s, all->rank == near.lo ? total : 0, t);
	if (!ours || !theirs)
		return s;
	reduce(s, near, in, ours, total, t, op, near.lo);
	if (all->rank == near.lo) {
		px_sched_send(s, ours, total, t, far.lo);
		px_sched_recv(s, theirs, total, t, far.lo);
		px_sched_round(s);
		for (int r = 0; r < c->inter->size; r++) {
			MPI_Count n = counts ? counts[r] : each;

			px_sched_send(s, theirs, n, t, near.lo + r);
			theirs += n * extent;
		}
	}
	px_sched_recv(s, out, counts ? counts[c->rank] : each, t, near.lo);
	return s;
}

static int check_counts(struct px_comm *c, const MPI_Count counts[], MPI_Datatype t, MPI_Op op)
{
	for (int r = 0; r < c->inter->size; r++)
		if (counts[r] < 0)
			return px_raise(c, MPI_ERR_COUNT, "counts[%d] is %lld", r, (long long)counts[r]);
	return px_coll_check(c, 0, t, op);
}

int px_inter_Reduce_scatter(
	const void *in, void *out, const MPI_Count counts[], MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check_counts(c, counts, t, op);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_run(build_reduce_scatter(in, out, counts, 0, t, op, c), c->inter->all);
}

int px_inter_Ireduce_scatter(const void *in, void *out, const MPI_Count counts[], MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = check_counts(c, counts, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_reduce_scatter(in, out, counts, 0, t, op, c),
					   c->inter->all, req);
}

int px_inter_Reduce_scatter_block(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = px_coll_check(c, count, t, op);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_run(build_reduce_scatter(in, out, NULL, count, t, op, c), c->inter->all);
}

int px_inter_Ireduce_scatter_block(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = px_coll_check(c, count, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_reduce_scatter(in, out, NULL, count, t, op, c),
					   c->inter->all, req);
}
