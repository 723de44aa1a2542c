/* terms.c: see terms.h. */
#include "terms.h"

#include "basic.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "model.h"
#include "native.h"

/* Does it make no difference to any bit how the operands are grouped? */
static bool exact(MPI_Datatype t, MPI_Op op)
{
	if (op == MPI_SUM || op == MPI_PROD)
		return !px_basic_floating(t);
	return px_op_code(op) != 0;
}

static bool one_site(const struct px_comm *c, int lo, int size)
{
	for (int r = lo + 1; r < lo + size && r < c->size; r++)
		if (px_part_of(c, r) != px_part_of(c, lo))
			return false;
	return true;
}

/* The terms below the node of ranks [lo, lo + size), and how they are folded. Returns the one that becomes its value. */
static int tree(const struct px_comm *c, struct px_terms *x, int *folds, int lo, int size)
{
	int left, right;

	if (one_site(c, lo, size)) {
		x->owner[x->n] = lo;
		return x->n++;
	}
	size /= 2;
	left = tree(c, x, folds, lo, size);
	if (lo + size >= c->size)
		return left;
	right = tree(c, x, folds, lo + size, size);
	x->fold[(*folds)++] = (struct px_fold){ left, right };
	return right;
}

struct px_terms *px_terms_new(struct px_sched *s, MPI_Datatype t, MPI_Op op, int root)
{
	struct px_comm *c = px_sched_comm(s);
	struct px_terms *x = px_sched_temp(s, sizeof *x);
	int folds = 0, size = 1;

	if (!x)
		return NULL;
	x->by_site = px_coll_by_site(c, op) && (c->associative || px_model_associative() || exact(t, op));
	x->owner = px_sched_temp(s, (size_t)c->size * sizeof *x->owner);
	x->fold = px_sched_temp(s, (size_t)c->size * sizeof *x->fold);
	if (!px_sched_ok(s))
		return NULL;
	if (x->by_site) {
		x->n = c->nparts;
		for (int p = 0; p < c->nparts; p++)
			x->owner[p] = px_coll_head(c, p, root);
		for (int p = c->nparts - 2; p >= 0; p--)
			x->fold[folds++] = (struct px_fold){ p, c->nparts - 1 };
		return x;
	}
	while (size < c->size)
		size *= 2;
	tree(c, x, &folds, 0, size);
	return x;
}

int px_terms_most(const struct px_comm *c, const struct px_terms *x)
{
	int most = 1;

	for (int p = 0; p < c->nparts; p++) {
		int n = 0;

		for (int i = 0; i < x->n; i++)
			n += px_part_of(c, x->owner[i]) == p;
		most = n > most ? n : most;
	}
	return most;
}

/* One application of the operator, or (copy) none. */
struct apply {
	const void *in;
	void *inout;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
	bool copy;
};

static int apply(struct px_sched *s, void *arg)
{
	struct apply *p = arg;

	(void)s;
	return p->copy ? px_copy(p->in, p->inout, p->count, p->t)
		       : px_coll_apply(p->in, p->inout, p->count, p->t, p->op);
}

static int add_apply(struct px_sched *s, const struct apply *what, int a, int b)
{
	struct apply *p = px_sched_temp(s, sizeof *p);

	if (!p)
		return -1;
	*p = *what;
	if (a >= 0 || b >= 0)
		px_sched_after(s, a, b);
	return px_sched_call(s, apply, p);
}

/* This rank's way up the tree inside the site. Its value, when step *done is complete: NULL: another rank has taken it over. */
static const void *climb(struct px_sched *s, struct apply *what, int *done)
{
	struct px_comm *c = px_sched_comm(s);
	int r = c->rank;

	for (int d = 1; d < c->size; d *= 2) {
		void *theirs;
		int got;

		if (r & d) {
			if (!one_site(c, r - d, 2 * d))
				break;
			px_sched_when(s, *done);
			*done = px_sched_send(s, what->in, what->count, what->t, r - d);
			return NULL;
		}
		if (r + d >= c->size)
			continue;
		if (!one_site(c, r, 2 * d))
			break;
		theirs = px_sched_temp_typed(s, what->count, what->t);
		if (!theirs)
			return NULL;
		got = px_sched_recv(s, theirs, what->count, what->t, r + d);
		what->inout = theirs;
		*done = add_apply(s, what, got, *done);
		what->in = theirs;
	}
	return what->in;
}

/* The terms of the tree, to the head. */
static int by_tree(struct px_sched *s, const struct px_terms *x, struct apply *what, int head, void **part)
{
	struct px_comm *c = px_sched_comm(s);
	const void *in = what->in, *mine;
	int done = -1;

	mine = climb(s, what, &done);
	if (c->rank != head) {
		if (mine) {
			px_sched_when(s, done);
			done = px_sched_send(s, mine, what->count, what->t, head);
		}
		return done;
	}
	for (int i = 0; i < x->n && px_sched_ok(s); i++) {
		int r = x->owner[i], got;

		if (px_part_of(c, r) != c->self)
			continue;
		if (r == head && mine != in) {
			part[i] = what->inout;
			continue;
		}
		part[i] = px_sched_temp_typed(s, what->count, what->t);
		if (r == head) {
			what->inout = part[i];
			what->copy = true;
			got = add_apply(s, what, -1, -1);
		} else {
			got = px_sched_recv(s, part[i], what->count, what->t, r);
		}
		done = px_sched_join(s, done, got);
	}
	return done;
}

int px_terms_here(struct px_sched *s, const struct px_terms *x, const void *in, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int head, void **part)
{
	struct px_comm *c = px_sched_comm(s);
	void *mine = NULL;

	if (!x->by_site)
		return by_tree(s, x, &(struct apply){ in, NULL, count, t, op, false }, head, part);
	if (c->rank == head)
		part[c->self] = mine = px_sched_temp_typed(s, count, t);
	return px_sched_native(s, &(struct px_call){ .kind = PX_CALL_REDUCE,
					  .s = in,
					  .r = mine,
					  .count = count,
					  .type = t,
					  .op = op,
					  .root = px_lrank(c, head) });
}

struct folding {
	const struct px_terms *x;
	void **part;
	void *out;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

static int fold(struct px_sched *s, void *arg)
{
	struct folding *f = arg;
	int rc = MPI_SUCCESS;

	(void)s;
	for (int i = 0; i < f->x->n - 1 && rc == MPI_SUCCESS; i++) {
		struct px_fold k = f->x->fold[i];

		rc = px_coll_apply(f->part[k.a], f->part[k.b], f->count, f->t, f->op);
	}
	return rc == MPI_SUCCESS ? px_copy(f->part[f->x->n - 1], f->out, f->count, f->t) : rc;
}

int px_terms_fold(struct px_sched *s, const struct px_terms *x, void **part, void *out, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int after)
{
	struct folding *f = px_sched_temp(s, sizeof *f);

	if (!f)
		return -1;
	*f = (struct folding){ x, part, out, count, t, op };
	px_sched_when(s, after);
	return px_sched_call(s, fold, f);
}
