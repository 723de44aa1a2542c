/* terms.c: see terms.h. */
#include "terms.h"

#include <stdlib.h>

#include "basic.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "groups.h"
#include "model.h"
#include "native.h"

/* Does it make no difference to any bit how the operands are grouped? */
static bool exact(MPI_Datatype t, MPI_Op op)
{
	if (op == MPI_SUM || op == MPI_PROD)
		return !px_basic_floating(t);
	return px_op_code(op) != 0;
}

static bool one_site(const struct px_comm *c, int lo, int n)
{
	for (int r = lo + 1; r < lo + n; r++)
		if (px_part_of(c, r) != px_part_of(c, lo))
			return false;
	return true;
}

/* The terms of the tree of ranks [lo, lo + n), and how they are folded, where there is room for them. Returns the one that becomes its value. */
static int tree(const struct px_comm *c, struct px_terms *x, int *folds, int lo, int n)
{
	int left, right, half = px_terms_left(n);

	if (one_site(c, lo, n)) {
		if (x->term)
			x->term[x->n] = (struct px_term){ lo, n };
		return x->n++;
	}
	left = tree(c, x, folds, lo, half);
	right = tree(c, x, folds, lo + half, n - half);
	if (x->fold)
		x->fold[*folds] = (struct px_fold){ left, right, -1 };
	++*folds;
	return right;
}

/* One term of each site: those of neighbours that are of one group first, the last one with the one before it, and so on; then the rest. */
static int chain(const struct px_comm *c, const struct px_groups *g, struct px_terms *x)
{
	int folds = 0, last = -1;

	for (int p = 0; p < c->nparts; p++) {
		if (p + 1 < c->nparts && px_group_head(g, p) == px_group_head(g, p + 1))
			continue;
		for (int q = p - 1; q > last; q--)
			x->fold[folds++] = (struct px_fold){ q, p, -1 };
		last = p;
	}
	for (int p = c->nparts - 2; p >= 0; p--)
		if (px_group_head(g, p) != px_group_head(g, p + 1))
			x->fold[folds++] = (struct px_fold){ p, c->nparts - 1, -1 };
	return folds;
}

/* owner[i]: whose term i is, -1 = nobody's; n owners. */
static void share(struct px_shares *s, const int *owner, int terms, int n)
{
	for (int p = 0, k = 0; p < n; p++) {
		for (int i = 0; i < terms; i++)
			if (owner[i] == p)
				s->of[k++] = i;
		s->first[p + 1] = k;
	}
}

/* Which site, and which group, has which; owner: room for all terms. */
static void share_out(const struct px_comm *c, const struct px_groups *g, struct px_terms *x, int *owner)
{
	for (int i = 0; i < x->n; i++)
		owner[i] = x->by_site ? i : px_part_of(c, x->term[i].lo);
	share(&x->site, owner, x->n, c->nparts);
	for (int i = 0; i < x->n; i++)
		owner[i] = px_group_head(g, owner[i]);
	/* owner[i] is now that of the value that is in place i. */
	for (int k = 0; k < x->n - 1; k++) {
		struct px_fold *f = &x->fold[k];

		f->inside = owner[f->a] == owner[f->b] ? owner[f->b] : -1;
		owner[f->b] = f->inside;
	}
	for (int i = 0; i < x->n; i++)
		owner[i] = px_group_head(g, x->by_site ? i : px_part_of(c, x->term[i].lo));
	for (int k = 0; k < x->n - 1; k++)
		if (x->fold[k].inside >= 0)
			owner[x->fold[k].a] = -1;
	share(&x->group, owner, x->n, c->nparts);
	for (int p = 0; p < c->nparts; p++)
		if (x->group.first[p + 1] - x->group.first[p] > x->most)
			x->most = x->group.first[p + 1] - x->group.first[p];
}

static struct px_terms *terms_new(const struct px_comm *c, const struct px_groups *g, bool by_site)
{
	struct px_terms count = { .by_site = by_site }, *x;
	int folds = 0, *owner;
	size_t n;

	if (by_site)
		count.n = c->nparts;
	else
		tree(c, &count, &folds, 0, c->size);
	n = (size_t)count.n;
	x = calloc(1, sizeof *x + n * (sizeof *x->term + sizeof *x->fold + 2 * sizeof(int)) +
			      2 * (size_t)(c->nparts + 1) * sizeof(int));
	owner = malloc(n * sizeof *owner);
	if (!x || !owner) {
		free(x);
		free(owner);
		return NULL;
	}
	x->by_site = by_site;
	x->term = (struct px_term *)(x + 1);
	x->fold = (struct px_fold *)(x->term + n);
	x->site.of = (int *)(x->fold + n);
	x->site.first = x->site.of + n;
	x->group.of = x->site.first + c->nparts + 1;
	x->group.first = x->group.of + n;
	folds = 0;
	if (by_site)
		x->n = chain(c, g, x) + 1;
	else
		tree(c, x, &folds, 0, c->size);
	share_out(c, g, x, owner);
	free(owner);
	return x;
}

static const struct px_terms *terms_get(struct px_sched *s, bool by_site)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_groups *g = px_groups_of(s);

	if (g && !c->terms[by_site])
		c->terms[by_site] = terms_new(c, g, by_site);
	if (!c->terms[by_site])
		px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
	return c->terms[by_site];
}

const struct px_terms *px_terms_of(struct px_sched *s, MPI_Datatype t, MPI_Op op)
{
	const struct px_comm *c = px_sched_comm(s);

	return terms_get(
		s, px_coll_by_site(c, op) && (c->associative || px_model_associative() || exact(t, op)));
}

const struct px_terms *px_terms_tree(struct px_sched *s)
{
	return terms_get(s, false);
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

/* This rank's way up a term, lo to lo + n - 1, of which it is one. Its value so far, when step *done is complete; NULL: another rank has taken it over. */
static const void *climb(struct px_sched *s, struct apply *what, int lo, int n, int *done)
{
	int r = px_sched_comm(s)->rank, half = px_terms_left(n), got;
	void *theirs;

	if (n == 1)
		return what->in;
	if (r >= lo + half) {
		if (climb(s, what, lo + half, n - half, done)) {
			px_sched_when(s, *done);
			*done = px_sched_send(s, what->in, what->count, what->t, lo);
		}
		return NULL;
	}
	if (!climb(s, what, lo, half, done) || !(theirs = px_sched_temp_typed(s, what->count, what->t)))
		return NULL;
	got = px_sched_recv(s, theirs, what->count, what->t, lo + half);
	what->inout = theirs;
	*done = add_apply(s, what, got, *done);
	what->in = theirs;
	return theirs;
}

/* The terms of the tree, to the head. */
static int by_tree(struct px_sched *s, const struct px_terms *x, struct apply *what, int head, void **part)
{
	struct px_comm *c = px_sched_comm(s);
	const void *in = what->in, *mine = NULL;
	int done = -1;

	for (int k = x->site.first[c->self]; k < x->site.first[c->self + 1]; k++) {
		struct px_term m = x->term[x->site.of[k]];

		if (c->rank >= m.lo && c->rank < m.lo + m.n)
			mine = climb(s, what, m.lo, m.n, &done);
	}
	if (c->rank != head) {
		if (mine) {
			px_sched_when(s, done);
			done = px_sched_send(s, mine, what->count, what->t, head);
		}
		return done;
	}
	for (int k = x->site.first[c->self]; k < x->site.first[c->self + 1] && px_sched_ok(s); k++) {
		int i = x->site.of[k], r = x->term[i].lo, got;

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

/* The operands of one term, and how its head combines them. */
struct halves {
	void **v; /* [n] */
	int n;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

/* v[n - 1] = the value of v[0] to v[n - 1]. */
static int combine(const struct halves *h, void **v, int n)
{
	int half = px_terms_left(n), rc;

	if (n == 1)
		return MPI_SUCCESS;
	rc = combine(h, v, half);
	if (rc == MPI_SUCCESS)
		rc = combine(h, v + half, n - half);
	return rc == MPI_SUCCESS ? px_coll_apply(v[half - 1], v[n - 1], h->count, h->t, h->op) : rc;
}

static int combine_all(struct px_sched *s, void *arg)
{
	const struct halves *h = arg;

	(void)s;
	return combine(h, h->v, h->n);
}

/* Every operand to the head. */
static int by_head(struct px_sched *s, const struct px_terms *x, struct apply *what, int head, void **part)
{
	const struct px_comm *c = px_sched_comm(s);
	int done = -1;

	if (c->rank != head)
		return px_sched_send(s, what->in, what->count, what->t, head);
	what->copy = true;
	for (int k = x->site.first[c->self]; k < x->site.first[c->self + 1]; k++) {
		struct px_term m = x->term[x->site.of[k]];
		struct halves *h = px_sched_temp(s, sizeof *h);
		int there = -1;

		if (!h)
			break;
		*h = (struct halves){ px_sched_temp(s, (size_t)m.n * sizeof *h->v), m.n, what->count, what->t,
			what->op };
		for (int i = 0; i < m.n && px_sched_ok(s); i++) {
			h->v[i] = what->inout = px_sched_temp_typed(s, what->count, what->t);
			there = px_sched_join(s, there,
				m.lo + i == head ? add_apply(s, what, -1, -1)
						 : px_sched_recv(s, h->v[i], what->count, what->t, m.lo + i));
		}
		if (!px_sched_ok(s))
			break;
		part[x->site.of[k]] = h->v[m.n - 1];
		px_sched_when(s, there);
		done = px_sched_join(s, done, px_sched_call(s, combine_all, h));
	}
	return done;
}

int px_terms_here(struct px_sched *s, const struct px_terms *x, const void *in, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int head, bool alone, void **part)
{
	struct px_comm *c = px_sched_comm(s);
	void *mine = NULL;

	if (!x->by_site)
		return (alone ? by_head : by_tree)(
			s, x, &(struct apply){ in, NULL, count, t, op, false }, head, part);
	if (c->rank == head)
		part[c->self] = mine = px_sched_temp_typed(s, count, t);
	return px_sched_native(s, &(struct px_call){ .kind = PX_CALL_REDUCE,
					  .s = in,
					  .r = mine,
					  .count = count,
					  .type = t,
					  .op = op,
					  .root = px_lrank(c, head),
					  .large = !px_fits(count) });
}

/* Terms, of each some elements, to be put side by side. */
struct packing {
	void *from, *to;
	const struct px_range *range;
	int n;
	MPI_Datatype t;
};

static int pack(struct px_sched *s, void *arg)
{
	struct packing *p = arg;
	MPI_Aint extent = (MPI_Aint)px_type_get(p->t)->extent;
	char *to = p->to;
	int rc = MPI_SUCCESS;

	(void)s;
	for (int k = 0; k < p->n && rc == MPI_SUCCESS; k++) {
		rc = px_copy((char *)p->from + p->range[k].first * extent, to, p->range[k].count, p->t);
		to += p->range[k].count * extent;
	}
	return rc;
}

struct px_bundle px_terms_bundle(struct px_sched *s, const struct px_shares *x, int share, void **part,
	const struct px_range *range, int n, MPI_Datatype t, int after)
{
	const int *of = x->of + x->first[share];
	int terms = x->first[share + 1] - x->first[share];
	MPI_Aint extent = (MPI_Aint)px_type_get(t)->extent;
	struct px_bundle b = { .ready = after };
	MPI_Count each = 0;

	for (int k = 0; k < n; k++)
		each += range[k].count;
	b.count = each * terms;
	if (terms == 1 && n == 1) {
		b.buf = (char *)part[of[0]] + range->first * extent;
		return b;
	}
	b.buf = px_sched_temp_typed(s, b.count, t);
	for (int k = 0; k < terms && px_sched_ok(s); k++) {
		struct packing *p = px_sched_temp(s, sizeof *p);

		if (!p)
			break;
		*p = (struct packing){ part[of[k]], (char *)b.buf + k * each * extent, range, n, t };
		px_sched_when(s, b.ready);
		b.ready = px_sched_call(s, pack, p);
	}
	return b;
}

int px_terms_take(struct px_sched *s, const struct px_shares *x, int share, void **part, MPI_Count count,
	MPI_Datatype t, int from)
{
	int terms = x->first[share + 1] - x->first[share];
	char *all = px_sched_temp_typed(s, terms * count, t);

	for (int k = 0; all && k < terms; k++)
		part[x->of[x->first[share] + k]] = all + k * count * (MPI_Aint)px_type_get(t)->extent;
	return all ? px_sched_recv(s, all, terms * count, t, from) : -1;
}

struct folding {
	const struct px_terms *x;
	bool (*mine)(const struct px_fold *k, int group); /* which folds */
	int group;
	void **part;
	void *out; /* of the result; NULL: it stays in part[] */
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

static bool any_fold(const struct px_fold *k, int group)
{
	(void)k;
	(void)group;
	return true;
}

static bool fold_of(const struct px_fold *k, int group)
{
	return k->inside == group;
}

static int fold(struct px_sched *s, void *arg)
{
	struct folding *f = arg;
	int rc = MPI_SUCCESS;

	(void)s;
	for (int i = 0; i < f->x->n - 1 && rc == MPI_SUCCESS; i++) {
		const struct px_fold *k = &f->x->fold[i];

		if (f->mine(k, f->group))
			rc = px_coll_apply(f->part[k->a], f->part[k->b], f->count, f->t, f->op);
	}
	return rc == MPI_SUCCESS && f->out ? px_copy(f->part[f->x->n - 1], f->out, f->count, f->t) : rc;
}

static int add_folding(struct px_sched *s, const struct folding *what, int after)
{
	struct folding *f = px_sched_temp(s, sizeof *f);

	if (!f)
		return -1;
	*f = *what;
	px_sched_when(s, after);
	return px_sched_call(s, fold, f);
}

int px_terms_fold(struct px_sched *s, const struct px_terms *x, bool rest, void **part, void *out,
	MPI_Count count, MPI_Datatype t, MPI_Op op, int after)
{
	return add_folding(
		s, &(struct folding){ x, rest ? fold_of : any_fold, -1, part, out, count, t, op }, after);
}

int px_terms_fold_inside(struct px_sched *s, const struct px_terms *x, int group, void **part,
	MPI_Count count, MPI_Datatype t, MPI_Op op, int after)
{
	return add_folding(s, &(struct folding){ x, fold_of, group, part, NULL, count, t, op }, after);
}
