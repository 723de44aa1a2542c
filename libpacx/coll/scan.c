/* scan.c: inclusive and exclusive scan, by one of two ways: one wide-area latency, and one message from each site to each with ranks behind its own.
 *
 * Where the grouping of the operands makes no difference and the ranks follow the sites: native scan inside a site, the totals of the sites
 * before come from their leaders. Otherwise by the tree that all reductions have (scan_tree.c).
 */
#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "raise.h"
#include "scan_tree.h"
#include "terms.h"
#include "vendor.h"

struct prefix {
	void **part; /* [n] operands before this rank's own, in order */
	int n;
	void *own; /* this rank's result so far; unused when `bare` */
	bool bare; /* the result is the operands alone (exclusive scan of the first rank of a site) */
	void *out;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

/* part[0] = part[0] op ... op part[n-1], at the leader, before it is spread. */
static int combine(struct px_sched *s, void *arg)
{
	struct prefix *x = arg;
	int rc = px_coll_fold(x->part, x->n, x->count, x->t, x->op);

	(void)s;
	return rc == MPI_SUCCESS ? px_copy(x->part[x->n - 1], x->part[0], x->count, x->t) : rc;
}

static int put_before(struct px_sched *s, void *arg)
{
	struct prefix *x = arg;

	(void)s;
	if (x->bare)
		return px_copy(x->part[0], x->out, x->count, x->t);
	return px_coll_apply(x->part[0], x->out, x->count, x->t, x->op);
}

static int copy_in(struct px_sched *s, void *arg)
{
	struct prefix *x = arg;

	(void)s;
	return px_copy(x->out, x->own, x->count, x->t);
}

static struct prefix *prefix_new(
	struct px_sched *s, int n, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	struct prefix *x = px_sched_temp(s, sizeof *x);

	if (!x)
		return NULL;
	*x = (struct prefix){ .n = n, .out = out, .count = count, .t = t, .op = op };
	x->part = px_sched_temp(s, (size_t)(n + 1) * sizeof *x->part);
	for (int i = 0; x->part && i < n; i++)
		x->part[i] = px_sched_temp_typed(s, count, t);
	return px_sched_ok(s) ? x : NULL;
}

static void scan_by_site(struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t,
	MPI_Op op, bool inclusive)
{
	struct px_comm *c = px_sched_comm(s);
	bool leader = c->lrank == 0;
	/* The leader of a site takes the totals of all sites before; others only the prefix it spreads. */
	struct prefix *x = prefix_new(s, leader && c->self > 0 ? c->self : 1, out, count, t, op);
	void *total = leader ? px_sched_temp_typed(s, count, t) : NULL;

	if (!x || !px_sched_ok(s))
		return;
	if (in == MPI_IN_PLACE) { /* both native calls below read the operand and one of them overwrites it */
		x->own = px_sched_temp_typed(s, count, t);
		if (!x->own)
			return;
		px_sched_call(s, copy_in, x);
		px_sched_round(s);
		in = x->own;
	}
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_REDUCE,
				   .s = in,
				   .r = total,
				   .count = count,
				   .type = t,
				   .op = op,
				   .root = 0 });
	px_sched_native(s, &(struct px_call){ .kind = inclusive ? PX_CALL_SCAN : PX_CALL_EXSCAN,
				   .s = in,
				   .r = out,
				   .count = count,
				   .type = t,
				   .op = op });
	px_sched_round(s);
	if (leader) {
		for (int p = c->self + 1; p < c->nparts; p++)
			px_sched_send(s, total, count, t, px_leader(c, p));
		for (int p = 0; p < c->self; p++)
			px_sched_recv(s, x->part[p], count, t, px_leader(c, p));
		px_sched_round(s);
		if (c->self > 0)
			px_sched_call(s, combine, x);
		px_sched_round(s);
	}
	if (c->self > 0) {
		px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
					   .r = x->part[0],
					   .count = count,
					   .type = t,
					   .root = 0 });
		px_sched_round(s);
		x->bare = !inclusive && leader;
		px_sched_call(s, put_before, x);
	}
}

static struct px_sched *build(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, bool inclusive)
{
	struct px_sched *s = px_sched_new(c, inclusive ? PX_COLL_SCAN : PX_COLL_EXSCAN);

	const struct px_terms *x = s ? px_terms_of(s, t, op) : NULL;

	if (x && x->by_site && c->blocked)
		scan_by_site(s, in, out, count, t, op, inclusive);
	else if (x)
		px_coll_scan_tree(s, in == MPI_IN_PLACE ? out : in, out, count, t, op, inclusive);
	return s;
}

static int check(
	const void *in, const void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = px_coll_check(c, count, t, op);

	return rc == MPI_SUCCESS && count > 0 ? px_coll_apart(c, in, out) : rc;
}

int px_Scan(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check(in, out, count, t, op, c);

	return rc != MPI_SUCCESS ? rc : px_sched_run(build(in, out, count, t, op, c, true), c);
}

int px_Iscan(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c,
	MPI_Request *req)
{
	int rc = check(in, out, count, t, op, c);

	return rc != MPI_SUCCESS ? rc : px_sched_start(build(in, out, count, t, op, c, true), c, req);
}

int px_Exscan(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check(in, out, count, t, op, c);

	return rc != MPI_SUCCESS ? rc : px_sched_run(build(in, out, count, t, op, c, false), c);
}

int px_Iexscan(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c,
	MPI_Request *req)
{
	int rc = check(in, out, count, t, op, c);

	return rc != MPI_SUCCESS ? rc : px_sched_start(build(in, out, count, t, op, c, false), c, req);
}
