/*
 * comms - making, comparing, naming and freeing communicators.  Every communicator that comes out is tried with a ring
 * exchange and its members are checked through a message of their world ranks.
 */
#include "check.h"

/* The members of comm, as world ranks, must be want[0..n-1]; learnt from messages, not from groups. */
static void try_comm(MPI_Comm comm, const int *want, int n)
{
	int r, size, got = -1;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &r);
	if (!CHECK_EQ(size, n) || !CHECK_EQ(want[r], chk_rank))
		return;
	MPI_Sendrecv(&chk_rank, 1, MPI_INT, (r + 1) % n, 3, &got, 1, MPI_INT, (r + n - 1) % n, 3, comm,
		MPI_STATUS_IGNORE);
	CHECK_EQ(got, want[(r + n - 1) % n]);
}

static int *all_ranks(void)
{
	int *w = chk_alloc(sizeof *w * (size_t)chk_size);

	for (int i = 0; i < chk_size; i++)
		w[i] = i;
	return w;
}

static int compare(MPI_Comm a, MPI_Comm b)
{
	int c = -99;

	MPI_Comm_compare(a, b, &c);
	return c;
}

static void splits(void)
{
	MPI_Comm c, half;
	int *want = chk_alloc(sizeof(int) * (size_t)chk_size), n = 0;

	/* odd and even: with contiguous sites every half spans them */
	for (int i = chk_rank % 2; i < chk_size; i += 2)
		want[n++] = i;
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 2, chk_rank, &c);
	try_comm(c, want, n);
	MPI_Comm_free(&c);
	CHECK(c == MPI_COMM_NULL);

	/* lower and upper half */
	n = 0;
	for (int i = 0; i < chk_size; i++)
		if ((i < chk_size / 2) == (chk_rank < chk_size / 2))
			want[n++] = i;
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank < chk_size / 2, 0, &half);
	try_comm(half, want, n);
	MPI_Comm_free(&half);

	/* reversed; equal keys keep the order of the parent */
	for (int i = 0; i < chk_size; i++)
		want[i] = chk_size - 1 - i;
	MPI_Comm_split(MPI_COMM_WORLD, 7, -chk_rank * 10, &c);
	try_comm(c, want, chk_size);
	CHECK_EQ(compare(c, MPI_COMM_WORLD), chk_size > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
	MPI_Comm_split(c, 1, 5, &half);
	try_comm(half, want, chk_size);
	CHECK_EQ(compare(c, half), MPI_CONGRUENT);
	MPI_Comm_free(&half);
	MPI_Comm_free(&c);

	/* UNDEFINED for all but every third; big colors */
	n = 0;
	for (int i = 0; i < chk_size; i += 3)
		want[n++] = i;
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 3 ? MPI_UNDEFINED : 1000000007, 0, &c);
	CHECK((c == MPI_COMM_NULL) == (chk_rank % 3 != 0));
	if (c != MPI_COMM_NULL) {
		try_comm(c, want, n);
		MPI_Comm_free(&c);
	}
	MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &c);
	CHECK(c == MPI_COMM_NULL);

	/* each alone */
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank, 0, &c);
	try_comm(c, &chk_rank, 1);
	CHECK_EQ(compare(c, MPI_COMM_SELF), MPI_CONGRUENT);
	MPI_Comm_free(&c);
	free(want);
}

/* Three levels of splits, everything used again at the end, freed from the outside in. */
static void nested(void)
{
	MPI_Comm c[3];
	int color[3] = { chk_rank % 2, chk_rank / 2 % 2, chk_rank / 4 % 2 };
	int *want = chk_alloc(sizeof(int) * (size_t)chk_size);

	for (int d = 0; d < 3; d++)
		MPI_Comm_split(d ? c[d - 1] : MPI_COMM_WORLD, color[d], d == 1 ? -chk_rank : chk_rank, &c[d]);
	for (int d = 0; d < 4; d++) {
		int level = d < 3 ? d : 2, n = 0;

		if (d == 3) { /* the innermost lives on without its parents */
			MPI_Comm_free(&c[0]);
			MPI_Comm_free(&c[1]);
		}
		for (int i = 0; i < chk_size; i++) {
			int k = level == 1 ? chk_size - 1 - i : i;
			if (k % 2 == color[0] && (level < 1 || k / 2 % 2 == color[1]) &&
				(level < 2 || k / 4 % 2 == color[2]))
				want[n++] = k;
		}
		try_comm(c[level], want, n);
	}
	MPI_Comm_free(&c[2]);
	free(want);
}

static void shared(void)
{
	MPI_Comm node;
	int n, r, at[2], first;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &n);
	MPI_Comm_rank(node, &r);
	CHECK(n >= 1 && n <= chk_size && r >= 0 && r < n);
	/* rank order as in WORLD, and all members agree who is first */
	first = chk_rank;
	MPI_Bcast(&first, 1, MPI_INT, 0, node);
	CHECK(first <= chk_rank && (r > 0 || first == chk_rank));
	at[0] = at[1] = -1;
	if (r > 0) {
		MPI_Recv(at, 1, MPI_INT, r - 1, 4, node, MPI_STATUS_IGNORE);
		CHECK(at[0] < chk_rank);
	}
	if (r + 1 < n)
		MPI_Send(&chk_rank, 1, MPI_INT, r + 1, 4, node);
	MPI_Comm_free(&node);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &node);
	CHECK(node == MPI_COMM_NULL);
}

/* A split whose hints only count when all members give the same. Members whose MPI has no such type are in no part. */
static void hints(void)
{
#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
	int type = MPIX_COMM_TYPE_NEIGHBORHOOD;
#else
	int type = MPI_UNDEFINED;
#endif
	const char *where[][2] = { { "/nowhere/first", "/nowhere/second" }, { "/tmp", "/nowhere/second" },
		{ "/tmp", "/tmp" } }; /* of rank 0, and of all others */
	MPI_Info info;
	MPI_Comm c;

	for (int i = chk_size == 1 ? 2 : 0; i < 3; i++) { /* alone, one's own hint is everybody's */
		int n = 0;

		MPI_Info_create(&info);
		MPI_Info_set(info, "nbhd_common_dirname", where[i][chk_rank > 0]);
		MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &c);
		if (c != MPI_COMM_NULL) {
			MPI_Comm_size(c, &n);
			MPI_Comm_free(&c);
		}
		if (type == MPI_UNDEFINED || i == 0)
			CHECK_EQ(n, 0);
		else
			CHECK(i == 1 ? n <= 1 : n >= 1); /* rank 0 may be the only one with this type */
		MPI_Info_free(&info);
	}
}

static void creates(void)
{
	MPI_Group world, g;
	MPI_Comm c;
	int *want = chk_alloc(sizeof(int) * (size_t)chk_size), n = 0;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	/* create: descending odd ranks and rank 0 at the end, one group for all */
	for (int i = chk_size - 1; i >= 0; i--)
		if (i % 2 || !i)
			want[n++] = i;
	MPI_Group_incl(world, n, want, &g);
	MPI_Comm_create(MPI_COMM_WORLD, g, &c);
	CHECK((c != MPI_COMM_NULL) == (chk_rank % 2 || !chk_rank));
	if (c != MPI_COMM_NULL) {
		try_comm(c, want, n);
		MPI_Comm_free(&c);
	}
	MPI_Group_free(&g);
	/* create with disjoint groups at once (MPI 2.2), and an empty group */
	n = 0;
	for (int i = chk_rank % 2; i < chk_size; i += 2)
		want[n++] = i;
	MPI_Group_incl(world, n, want, &g);
	MPI_Comm_create(MPI_COMM_WORLD, g, &c);
	try_comm(c, want, n);
	MPI_Comm_free(&c);
	MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c);
	CHECK(c == MPI_COMM_NULL);
	/* create_group on disjoint groups, at different times, several with their own tags, without the others */
	for (int k = 0; k < 3; k++) {
		if (chk_rank % 2 && k == 2)
			break;
		MPI_Comm_create_group(MPI_COMM_WORLD, g, 70 + k, &c);
		try_comm(c, want, n);
		MPI_Comm_free(&c);
	}
	MPI_Group_free(&g);
	/* create_group for a few while the others do something else on the same communicator */
	if (chk_size >= 3) {
		int two[2] = { chk_size - 1, 0 };
		if (chk_rank == 0 || chk_rank == chk_size - 1) {
			MPI_Group_incl(world, 2, two, &g);
			MPI_Comm_create_group(MPI_COMM_WORLD, g, 5, &c);
			try_comm(c, two, 2);
			MPI_Comm_free(&c);
			MPI_Group_free(&g);
		}
	}
	MPI_Group_free(&world);
	free(want);
}

static void compares_and_names(void)
{
	MPI_Comm d, s, idup;
	MPI_Request q;
	char name[MPI_MAX_OBJECT_NAME];
	int len, *all = all_ranks(), inter = 1, r, n;

	MPI_Comm_dup(MPI_COMM_WORLD, &d);
	try_comm(d, all, chk_size);
	CHECK_EQ(compare(MPI_COMM_WORLD, MPI_COMM_WORLD), MPI_IDENT);
	CHECK_EQ(compare(d, MPI_COMM_WORLD), MPI_CONGRUENT);
	CHECK_EQ(compare(MPI_COMM_WORLD, MPI_COMM_SELF), chk_size > 1 ? MPI_UNEQUAL : MPI_CONGRUENT);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank == 0, 0, &s);
	CHECK_EQ(compare(s, d), chk_size > 1 ? MPI_UNEQUAL : MPI_CONGRUENT);
	MPI_Comm_test_inter(d, &inter);
	CHECK_EQ(inter, 0);
	MPI_Comm_idup(d, &idup, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	try_comm(idup, all, chk_size);
	CHECK_EQ(compare(idup, d), MPI_CONGRUENT);
	MPI_Comm_free(&idup);
	chk_idup(d, &idup, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	try_comm(idup, all, chk_size);

	MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
	CHECK(!strcmp(name, "MPI_COMM_WORLD") && len == 14);
	MPI_Comm_get_name(MPI_COMM_SELF, name, &len);
	CHECK(!strcmp(name, "MPI_COMM_SELF"));
	MPI_Comm_set_name(d, "a name of mine");
	MPI_Comm_get_name(d, name, &len);
	CHECK(!strcmp(name, "a name of mine"));
	MPI_Comm_set_name(MPI_COMM_WORLD, "everything");
	MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
	CHECK(!strcmp(name, "everything"));

	MPI_Comm_rank(MPI_COMM_SELF, &r);
	MPI_Comm_size(MPI_COMM_SELF, &n);
	CHECK(r == 0 && n == 1);
	n = -1;
	MPI_Sendrecv(&chk_rank, 1, MPI_INT, 0, 1, &n, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF,
		MPI_STATUS_IGNORE);
	CHECK_EQ(n, chk_rank);
	MPI_Comm self2;
	MPI_Comm_dup(MPI_COMM_SELF, &self2);
	try_comm(self2, &chk_rank, 1);
	MPI_Comm_free(&self2);
	MPI_Comm_free(&idup);
	MPI_Comm_free(&s);
	MPI_Comm_free(&d);
	free(all);
}

/* The same source, destination and tag on four communicators; received in another order than sent, with wildcards. */
static void do_not_mix(void)
{
	MPI_Comm c[4];
	int out[4], in[4], right, left, r;
	MPI_Request q[4], s[4];
	MPI_Status st[4];

	c[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &c[1]);
	MPI_Comm_dup(c[1], &c[2]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -chk_rank, &c[3]);
	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < 4; k++) {
			int w = (k + round) % 4;

			in[w] = -1;
			MPI_Irecv(&in[w], 1, MPI_INT, MPI_ANY_SOURCE, round ? 9 : MPI_ANY_TAG, c[w], &q[w]);
		}
		for (int k = 3; k >= 0; k--) {
			MPI_Comm_rank(c[k], &r);
			right = (r + 1) % chk_size;
			out[k] = 100 * chk_rank + k;
			MPI_Isend(&out[k], 1, MPI_INT, right, 9, c[k], &s[k]);
		}
		MPI_Waitall(4, q, st);
		MPI_Waitall(4, s, MPI_STATUSES_IGNORE);
		for (int k = 0; k < 4; k++) {
			MPI_Comm_rank(c[k], &r);
			left = (r + chk_size - 1) % chk_size;
			CHECK_STATUS(&st[k], left, 9, MPI_INT, 1);
			CHECK_EQ(in[k], 100 * (k == 3 ? chk_size - 1 - left : left) + k);
		}
		MPI_Barrier(MPI_COMM_WORLD); /* not by messages: there are any-tag receives */
	}
	for (int k = 1; k < 4; k++)
		MPI_Comm_free(&c[k]);
}

/* A communicator freed while a message is on its way: the message still arrives. */
static void free_while_pending(void)
{
	MPI_Comm c;
	MPI_Request q[2];
	int n = 200000, right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size;
	char *out = chk_alloc((size_t)n), *in = chk_alloc((size_t)n);

	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	chk_fill(out, (size_t)n, (uint64_t)chk_rank);
	MPI_Irecv(in, n, MPI_BYTE, left, 1, c, &q[0]);
	MPI_Isend(out, n, MPI_BYTE, right, 1, c, &q[1]);
	MPI_Comm_free(&c);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	CHECK_BYTES(in, (size_t)n, (uint64_t)left);
	free(out);
	free(in);
}

static void many(int dups)
{
	MPI_Comm held[8], c;
	int *all = all_ranks();

	for (int k = 0; k < 8; k++)
		held[k] = MPI_COMM_NULL;
	for (int i = 0; i < dups; i++) {
		MPI_Comm_dup(
			i % 3 == 2 && held[(i + 7) % 8] != MPI_COMM_NULL ? held[(i + 7) % 8] : MPI_COMM_WORLD,
			&c);
		if (held[i % 8] != MPI_COMM_NULL)
			MPI_Comm_free(&held[i % 8]);
		held[i % 8] = c;
		if (i % 10 == 0)
			try_comm(c, all, chk_size);
	}
	for (int k = 0; k < 8; k++)
		if (held[k] != MPI_COMM_NULL) {
			try_comm(held[k], all, chk_size);
			MPI_Comm_free(&held[k]);
		}
	free(all);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "comms", 1);
	compares_and_names();
	splits();
	nested();
	shared();
	hints();
	creates();
	do_not_mix();
	free_while_pending();
	many((int)chk_arg(argc, argv, 1, 200));
	return chk_end();
}
