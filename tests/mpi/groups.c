/*
 * groups - every group function against a model: a group is an array of world ranks.  Random groups from a fixed seed.
 */
#include "check.h"

enum { MOST = 64 };

struct model {
	MPI_Group g;
	int n, r[MOST];
};

static MPI_Group world;
static int limit; /* groups are made of the first `limit` world ranks */
static uint64_t counter;

static int dice(int n)
{
	return (int)(chk_mix(99, counter++) % (uint64_t)n);
}

static int find(const struct model *m, int rank)
{
	for (int i = 0; i < m->n; i++)
		if (m->r[i] == rank)
			return i;
	return -1;
}

/* Whatever MPI says about the group must agree with the model. */
static void agree(const struct model *m)
{
	int n, r, all[MOST], to[MOST];

	MPI_Group_size(m->g, &n);
	if (!CHECK_EQ(n, m->n))
		return;
	MPI_Group_rank(m->g, &r);
	CHECK_EQ(r, find(m, chk_rank) < 0 ? MPI_UNDEFINED : find(m, chk_rank));
	for (int i = 0; i < n; i++)
		all[i] = i;
	MPI_Group_translate_ranks(m->g, n, all, world, to);
	for (int i = 0; i < n; i++)
		CHECK_EQ(to[i], m->r[i]);
	for (int i = 0; i < limit; i++)
		all[i] = i;
	MPI_Group_translate_ranks(world, limit, all, m->g, to);
	for (int i = 0; i < limit; i++)
		CHECK_EQ(to[i], find(m, i) < 0 ? MPI_UNDEFINED : find(m, i));
}

static void make_random(struct model *m)
{
	int p[MOST];

	for (int i = 0; i < limit; i++)
		p[i] = i;
	for (int i = limit - 1; i > 0; i--) {
		int j = dice(i + 1), t = p[i];
		p[i] = p[j];
		p[j] = t;
	}
	m->n = dice(limit + 1);
	memcpy(m->r, p, sizeof p);
	MPI_Group_incl(world, m->n, m->r, &m->g);
	agree(m);
}

static void drop(struct model *m)
{
	if (m->g != MPI_GROUP_EMPTY) {
		MPI_Group_free(&m->g);
		CHECK(m->g == MPI_GROUP_NULL);
	}
}

static void set_operations(const struct model *a, const struct model *b)
{
	struct model u = { .n = 0 }, i = { .n = 0 }, d = { .n = 0 };
	int c, want, same;

	for (int k = 0; k < a->n; k++) {
		u.r[u.n++] = a->r[k];
		if (find(b, a->r[k]) >= 0)
			i.r[i.n++] = a->r[k];
		else
			d.r[d.n++] = a->r[k];
	}
	for (int k = 0; k < b->n; k++)
		if (find(a, b->r[k]) < 0)
			u.r[u.n++] = b->r[k];
	MPI_Group_union(a->g, b->g, &u.g);
	MPI_Group_intersection(a->g, b->g, &i.g);
	MPI_Group_difference(a->g, b->g, &d.g);
	agree(&u);
	agree(&i);
	agree(&d);
	MPI_Group_compare(a->g, b->g, &c);
	same = a->n == b->n && !memcmp(a->r, b->r, sizeof(int) * (size_t)a->n);
	want = same ? MPI_IDENT : a->n == b->n && i.n == a->n ? MPI_SIMILAR : MPI_UNEQUAL;
	CHECK_EQ(c, want);
	drop(&u);
	drop(&i);
	drop(&d);
}

/* incl and excl of a random subset, and of ranges with strides of both signs. */
static void subsets(const struct model *a)
{
	struct model in = { .n = 0 }, ex = { .n = 0 };
	int pick[MOST], n = 0, used[MOST] = { 0 }, range[3][3], k = 0, t[MOST], to[MOST];

	for (int i = 0; i < a->n; i++)
		if (dice(2)) {
			pick[n++] = i;
			used[i] = 1;
		}
	for (int i = n - 1; i >= 0; i--)
		in.r[in.n++] = a->r[pick[n - 1 - i]];
	for (int i = 0; i < a->n; i++)
		if (!used[i])
			ex.r[ex.n++] = a->r[i];
	MPI_Group_incl(a->g, n, pick, &in.g);
	MPI_Group_excl(a->g, n, pick, &ex.g);
	agree(&in);
	agree(&ex);
	for (int i = 0; i < in.n; i++)
		t[i] = i;
	if (in.n)
		MPI_Group_translate_ranks(in.g, in.n, t, ex.g, to);
	for (int i = 0; i < in.n; i++)
		CHECK_EQ(to[i], MPI_UNDEFINED);
	drop(&in);
	drop(&ex);

	if (a->n < 2)
		return;
	/* the range goes down from the end in twos, the second takes the element it leaves out first */
	memset(used, 0, sizeof used);
	in.n = ex.n = 0;
	range[k][0] = a->n - 1, range[k][1] = 0, range[k][2] = -2, k++;
	for (int i = a->n - 1; i >= 0; i -= 2) {
		in.r[in.n++] = a->r[i];
		used[i] = 1;
	}
	range[k][0] = a->n - 2, range[k][1] = a->n - 2, range[k][2] = 1, k++;
	in.r[in.n++] = a->r[a->n - 2];
	used[a->n - 2] = 1;
	for (int i = 0; i < a->n; i++)
		if (!used[i])
			ex.r[ex.n++] = a->r[i];
	MPI_Group_range_incl(a->g, k, range, &in.g);
	MPI_Group_range_excl(a->g, k, range, &ex.g);
	agree(&in);
	agree(&ex);
	drop(&in);
	drop(&ex);
}

/* A group of more than a communicator has. (Open MPI does not look, natively.) */
static void beyond(void)
{
#ifndef OPEN_MPI
	MPI_Comm c = MPI_COMM_NULL;

	if (chk_size == 1)
		return;
	CHECK_EQ(chk_class(MPI_Comm_create(MPI_COMM_SELF, world, &c)), MPI_ERR_GROUP);
#endif
}

int main(int argc, char **argv)
{
	MPI_Group g, h;
	MPI_Comm rev;
	int c, n, null = MPI_PROC_NULL, to;

	chk_begin(&argc, &argv, "groups", 1);
	limit = chk_size < MOST ? chk_size : MOST;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_size(world, &n);
	CHECK_EQ(n, chk_size);
	MPI_Group_rank(world, &n);
	CHECK_EQ(n, chk_rank);
	MPI_Group_translate_ranks(world, 1, &null, world, &to);
	CHECK_EQ(to, MPI_PROC_NULL);
	MPI_Group_compare(MPI_GROUP_EMPTY, world, &c);
	CHECK_EQ(c, MPI_UNEQUAL);
	MPI_Group_size(MPI_GROUP_EMPTY, &n);
	CHECK_EQ(n, 0);
	MPI_Group_rank(MPI_GROUP_EMPTY, &n);
	CHECK_EQ(n, MPI_UNDEFINED);
	MPI_Group_incl(world, 0, NULL, &g);
	MPI_Group_compare(MPI_GROUP_EMPTY, g, &c);
	CHECK_EQ(c, MPI_IDENT);
	if (g != MPI_GROUP_EMPTY)
		MPI_Group_free(&g);
	for (int i = 0; i < (int)chk_arg(argc, argv, 1, 100); i++) {
		struct model a, b;

		make_random(&a);
		if (i % 4 == 3) {
			b = a; /* equal, or with two ranks exchanged */
			if (i % 8 == 3 && b.n > 1)
				b.r[0] = a.r[1], b.r[1] = a.r[0];
			MPI_Group_incl(world, b.n, b.r, &b.g);
		} else {
			make_random(&b);
		}
		set_operations(&a, &b);
		subsets(&a);
		drop(&a);
		drop(&b);
	}
	/* groups of other communicators, also after these are gone */
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 2, -chk_rank, &rev);
	MPI_Comm_group(rev, &g);
	MPI_Comm_group(rev, &h);
	MPI_Group_compare(g, h, &c);
	CHECK_EQ(c, MPI_IDENT);
	MPI_Group_free(&h);
	MPI_Comm_free(&rev);
	struct model m = { .g = g, .n = 0 };
	for (int i = limit - 1; i >= 0; i--)
		if (i % 2 == chk_rank % 2)
			m.r[m.n++] = i;
	if (chk_size <= MOST)
		agree(&m);
	MPI_Group_free(&g);
	/* a group of SELF */
	MPI_Comm_group(MPI_COMM_SELF, &g);
	m = (struct model){ .g = g, .n = 1, .r = { chk_rank } };
	if (chk_size <= MOST)
		agree(&m);
	MPI_Group_free(&g);
	beyond();
	MPI_Group_free(&world);
	return chk_end();
}
