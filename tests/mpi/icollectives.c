/*
 * icollectives - all nonblocking collectives at once: started in one order on several communicators, mixed with
 * point-to-point messages, completed in another order on every rank.  Argument: rounds (default 2).
 */
#include "check.h"

enum { K = 33, KINDS = 17 };

static int val(int a, int b, int i)
{
	return (int)(chk_mix((uint64_t)(a * 137 + b), (uint64_t)i) & 0xffff);
}

/* One set of all collectives on one communicator with its own buffers. */
struct set {
	MPI_Comm c;
	int r, n, root, count;
	int *a[KINDS], *b[KINDS], *cnt, *dis;
	int *scnt, *sdis, *rcnt, *rdis, *sdisb, *rdisb;
	MPI_Datatype *types;
	MPI_Request q[KINDS];
};

static int uneven(int rank, int count)
{
	return rank % 3 == 1 ? 0 : count + rank;
}

static int traffic(int a, int b, int count)
{
	return (a + 2 * b) % 3 == 0 ? 0 : count + (a + b) % 3;
}

static void set_start(struct set *s, MPI_Comm c, int root, int count)
{
	MPI_Comm_rank(c, &s->r);
	MPI_Comm_size(c, &s->n);
	s->c = c;
	s->root = root % s->n;
	s->count = count;
	int n = s->n, r = s->r;
	size_t most = sizeof(int) * (size_t)((count + n + 3) * n);
	int **list[] = { &s->cnt, &s->dis, &s->scnt, &s->sdis, &s->rcnt, &s->rdis, &s->sdisb, &s->rdisb };

	for (int k = 0; k < 8; k++)
		*list[k] = chk_alloc(sizeof(int) * (size_t)n);
	s->types = chk_alloc(sizeof *s->types * (size_t)n);
	for (int i = 0, d = 0, sd = 0, rd = 0; i < n; i++) {
		s->types[i] = MPI_INT;
		s->cnt[i] = uneven(i, count);
		s->dis[i] = d;
		d += s->cnt[i];
		s->scnt[i] = traffic(r, i, count);
		s->rcnt[i] = traffic(i, r, count);
		s->sdis[i] = sd;
		s->rdis[i] = rd;
		sd += s->scnt[i];
		rd += s->rcnt[i];
		s->sdisb[i] = 4 * s->sdis[i];
		s->rdisb[i] = 4 * s->rdis[i];
	}
	for (int k = 0; k < KINDS; k++) {
		s->a[k] = chk_alloc(most);
		s->b[k] = chk_alloc(most);
		memset(s->b[k], 0xEE, most);
		for (int i = 0; i < (int)(most / sizeof(int)); i++)
			s->a[k][i] = val(r, k, i);
	}
	/* in alltoallv and w the data depends on both ends */
	for (int k = 9; k <= 10; k++)
		for (int d = 0; d < n; d++)
			for (int i = 0; i < s->scnt[d]; i++)
				s->a[k][s->sdis[d] + i] = val(r, 100 + d, i);
	if (r != s->root)
		memset(s->a[1], 0, most);

	int **a = s->a, **b = s->b, m = s->count;
	MPI_Request *q = s->q;
	MPI_Ibarrier(c, &q[0]);
	MPI_Ibcast(a[1], m, MPI_INT, s->root, c, &q[1]);
	MPI_Igather(a[2], m, MPI_INT, b[2], m, MPI_INT, s->root, c, &q[2]);
	MPI_Igatherv(a[3], s->cnt[r], MPI_INT, b[3], s->cnt, s->dis, MPI_INT, s->root, c, &q[3]);
	MPI_Iscatter(a[4], m, MPI_INT, b[4], m, MPI_INT, s->root, c, &q[4]);
	MPI_Iscatterv(a[5], s->cnt, s->dis, MPI_INT, b[5], s->cnt[r], MPI_INT, s->root, c, &q[5]);
	MPI_Iallgather(a[6], m, MPI_INT, b[6], m, MPI_INT, c, &q[6]);
	MPI_Iallgatherv(a[7], s->cnt[r], MPI_INT, b[7], s->cnt, s->dis, MPI_INT, c, &q[7]);
	MPI_Ialltoall(a[8], m, MPI_INT, b[8], m, MPI_INT, c, &q[8]);
	MPI_Ialltoallv(a[9], s->scnt, s->sdis, MPI_INT, b[9], s->rcnt, s->rdis, MPI_INT, c, &q[9]);
	MPI_Ialltoallw(a[10], s->scnt, s->sdisb, s->types, b[10], s->rcnt, s->rdisb, s->types, c, &q[10]);
	MPI_Ireduce(a[11], b[11], m, MPI_INT, MPI_SUM, s->root, c, &q[11]);
	MPI_Iallreduce(a[12], b[12], m, MPI_INT, MPI_MAX, c, &q[12]);
	MPI_Ireduce_scatter(a[13], b[13], s->cnt, MPI_INT, MPI_SUM, c, &q[13]);
	MPI_Ireduce_scatter_block(a[14], b[14], m, MPI_INT, MPI_SUM, c, &q[14]);
	MPI_Iscan(a[15], b[15], m, MPI_INT, MPI_SUM, c, &q[15]);
	MPI_Iexscan(a[16], b[16], m, MPI_INT, MPI_SUM, c, &q[16]);
}

/* Sum (or maximum) over ranks 0..last of element i of kind k. */
static int total(int k, int last, int i, int max)
{
	int x = val(0, k, i);

	for (int p = 1; p <= last; p++) {
		int y = val(p, k, i);
		x = max ? (x > y ? x : y) : x + y;
	}
	return x;
}

static void set_check(struct set *s)
{
	int bad[KINDS] = { 0 }, m = s->count, n = s->n, r = s->r, root = s->root, **b = s->b;

	for (int i = 0; i < m; i++) {
		bad[1] += s->a[1][i] != val(root, 1, i);
		bad[4] += b[4][i] != val(root, 4, r * m + i);
		for (int p = 0; p < n; p++) {
			if (r == root)
				bad[2] += b[2][p * m + i] != val(p, 2, i);
			bad[6] += b[6][p * m + i] != val(p, 6, i);
			bad[8] += b[8][p * m + i] != val(p, 8, r * m + i);
		}
		if (r == root)
			bad[11] += b[11][i] != total(11, n - 1, i, 0);
		bad[12] += b[12][i] != total(12, n - 1, i, 1);
		bad[14] += b[14][i] != total(14, n - 1, r * m + i, 0);
		bad[15] += b[15][i] != total(15, r, i, 0);
		if (r)
			bad[16] += b[16][i] != total(16, r - 1, i, 0);
	}
	for (int p = 0; p < n; p++)
		for (int i = 0; i < s->cnt[p]; i++) {
			if (r == root)
				bad[3] += b[3][s->dis[p] + i] != val(p, 3, i);
			bad[7] += b[7][s->dis[p] + i] != val(p, 7, i);
		}
	for (int i = 0; i < s->cnt[r]; i++) {
		bad[5] += b[5][i] != val(root, 5, s->dis[r] + i);
		bad[13] += b[13][i] != total(13, n - 1, s->dis[r] + i, 0);
	}
	for (int p = 0; p < n; p++)
		for (int i = 0; i < s->rcnt[p]; i++) {
			bad[9] += b[9][s->rdis[p] + i] != val(p, 100 + r, i);
			bad[10] += b[10][s->rdis[p] + i] != val(p, 100 + r, i);
		}
	for (int k = 0; k < KINDS; k++) {
		if (!CHECK_EQ(bad[k], 0))
			fprintf(stderr, "  collective %d, count %d, size %d, root %d\n", k, m, n, root);
		CHECK(s->q[k] == MPI_REQUEST_NULL);
		free(s->a[k]);
		free(s->b[k]);
	}
	free(s->cnt);
	free(s->dis);
	free(s->scnt);
	free(s->sdis);
	free(s->rcnt);
	free(s->rdis);
	free(s->sdisb);
	free(s->rdisb);
	free(s->types);
}

static void finish_in_own_order(struct set *s, int sets, MPI_Request *p2p, int np2p, int way)
{
	int all = sets * KINDS + np2p, flag, k;
	MPI_Request *q = chk_alloc(sizeof *q * (size_t)all);

	for (int i = 0; i < sets * KINDS; i++)
		q[i] = s[i / KINDS].q[i % KINDS];
	memcpy(q + sets * KINDS, p2p, sizeof *q * (size_t)np2p);
	if (way % 4 == 0) {
		MPI_Waitall(all, q, MPI_STATUSES_IGNORE);
	} else if (way % 4 == 1) { /* backwards, one by one */
		for (int i = all - 1; i >= 0; i--)
			MPI_Wait(&q[i], MPI_STATUS_IGNORE);
	} else if (way % 4 == 2) { /* in a random order, by tests */
		for (int left = all, i = 0; left > 0; i++) {
			k = (int)(chk_mix((uint64_t)chk_rank, (uint64_t)i) % (uint64_t)all);
			if (q[k] == MPI_REQUEST_NULL)
				continue;
			MPI_Test(&q[k], &flag, MPI_STATUS_IGNORE);
			left -= flag;
		}
	} else { /* whichever comes */
		do
			MPI_Waitany(all, q, &k, MPI_STATUS_IGNORE);
		while (k != MPI_UNDEFINED);
	}
	for (int i = 0; i < sets * KINDS; i++)
		s[i / KINDS].q[i % KINDS] = q[i];
	free(q);
}

static void in_place(MPI_Comm c)
{
	int r, n, x, y, w;
	MPI_Request q[4];

	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	int *g = chk_alloc(sizeof(int) * (size_t)n);
	x = y = r + 1;
	w = 10 * r;
	g[r] = 5 * r;
	MPI_Iallreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, c, &q[0]);
	MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g, 1, MPI_INT, c, &q[1]);
	MPI_Ireduce(r == 0 ? MPI_IN_PLACE : &y, &y, 1, MPI_INT, MPI_MAX, 0, c, &q[2]);
	MPI_Iscan(MPI_IN_PLACE, &w, 1, MPI_INT, MPI_SUM, c, &q[3]);
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
	CHECK_EQ(x, n * (n + 1) / 2);
	for (int i = 0; i < n; i++)
		CHECK_EQ(g[i], 5 * i);
	CHECK_EQ(y, r ? r + 1 : n);
	CHECK_EQ(w, 5 * r * (r + 1));
	free(g);
}

/* Ibarrier is not complete before the last rank has entered: the last tells everybody first. */
static void barrier_waits(void)
{
	MPI_Request q;
	int flag = 0, last = chk_size - 1;

	if (chk_size == 1)
		return;
	if (chk_rank != last) {
		MPI_Ibarrier(MPI_COMM_WORLD, &q);
		for (int i = 0; i < 50; i++) {
			MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
			if (flag)
				break;
		}
		CHECK_EQ(flag, 0); /* the last one enters only after it has heard from all of us */
		MPI_Send(NULL, 0, MPI_INT, last, 4, MPI_COMM_WORLD);
	} else {
		for (int p = 0; p < last; p++)
			MPI_Recv(NULL, 0, MPI_INT, p, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Ibarrier(MPI_COMM_WORLD, &q);
	}
	MPI_Wait(&q, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	MPI_Comm rev, half, dup;
	struct set s[5];

	chk_begin(&argc, &argv, "icollectives", 1);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -chk_rank, &rev);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 2, 0, &half);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	int right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size;
	for (int round = 0; round < (int)chk_arg(argc, argv, 1, 2); round++) {
		enum { BIG = 50000 };
		MPI_Request q[4];
		int *out = chk_alloc(sizeof(int) * BIG), *in = chk_alloc(sizeof(int) * BIG), one = chk_rank,
		    got = -1;

		chk_fill(out, sizeof(int) * BIG, chk_seed(chk_rank, round, 0, 0));
		MPI_Irecv(in, BIG, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &q[0]);
		set_start(&s[0], MPI_COMM_WORLD, round, K);
		MPI_Isend(out, BIG, MPI_INT, right, 77, MPI_COMM_WORLD, &q[1]);
		set_start(&s[1], rev, round + 1, round ? 2000 : 1);
		set_start(&s[2], half, round, K * 20);
		MPI_Irecv(&got, 1, MPI_INT, left, MPI_ANY_TAG, dup, &q[2]);
		set_start(&s[3], dup, round + 2, round ? K : 0);
		set_start(&s[4], MPI_COMM_WORLD, round + 3, 5);
		MPI_Isend(&one, 1, MPI_INT, right, 78, dup, &q[3]);
		finish_in_own_order(s, 5, q, 4, chk_rank + round);
		for (int i = 0; i < 5; i++)
			set_check(&s[i]);
		CHECK_BYTES(in, sizeof(int) * BIG, chk_seed(left, round, 0, 0));
		CHECK_EQ(got, left);
		free(out);
		free(in);
	}
	in_place(MPI_COMM_WORLD);
	in_place(rev);
	in_place(half);
	barrier_waits();
	MPI_Comm_free(&rev);
	MPI_Comm_free(&half);
	MPI_Comm_free(&dup);
	return chk_end();
}
