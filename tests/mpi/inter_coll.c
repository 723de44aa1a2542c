/*
 * inter_coll.c - every collective on intercommunicators, blocking and nonblocking, short and long, between groups that lie in all ways
 * over the ranks.
 */
#include "inter.h"

static struct pair p;
static int near, far, nonblocking;

/* Run the blocking or the nonblocking form. */
#define DO(NAME, name, ...)                                                                                  \
	do {                                                                                                 \
		MPI_Request req_;                                                                            \
                                                                                                             \
		if (nonblocking) {                                                                           \
			MPI_I##name(__VA_ARGS__, p.inter, &req_);                                            \
			MPI_Wait(&req_, MPI_STATUS_IGNORE);                                                  \
		} else {                                                                                     \
			MPI_##NAME(__VA_ARGS__, p.inter);                                                    \
		}                                                                                            \
	} while (0)

/* Root is `rank` of group `side`: the argument that this process passes. */
static int root_arg(int side, int rank)
{
	if (p.side != side)
		return rank;
	return p.me == rank ? MPI_ROOT : MPI_PROC_NULL;
}

/* What member r of a group says to member q of the other one: n ints. */
static int word(int side, int r, int q, int i)
{
	return side * 1000000 + r * 10000 + q * 100 + i % 97;
}

static void fill(int *v, int side, int r, int q, int n)
{
	for (int i = 0; i < n; i++)
		v[i] = word(side, r, q, i);
}

static int is(const int *v, int side, int r, int q, int n)
{
	for (int i = 0; i < n; i++)
		if (v[i] != word(side, r, q, i))
			return 0;
	return 1;
}

static void rooted(int side, int root, int n)
{
	int most = near > far ? near : far, arg = root_arg(side, root);
	int *a = chk_alloc((size_t)n * (size_t)most * 8 + 64), *b = chk_alloc((size_t)n * 4 + 64);
	int counts[1024], displs[1024];

	fill(b, side, root, 0, n);
	if (p.side != side)
		memset(b, 0, (size_t)n * 4);
	MPI_Bcast(b, n, MPI_INT, arg, p.inter); /* the nonblocking form: inter_ibcast.c */
	CHECK(is(b, side, root, 0, n));

	for (int r = 0, at = 0; r < far; r++) {
		counts[r] = (r + 1) * n / (far + 1);
		displs[r] = at;
		at += counts[r] + 1;
	}
	fill(b, !side, p.me, 1, n);
	DO(Gather, gather, b, n, MPI_INT, a, n, MPI_INT, arg);
	for (int r = 0; arg == MPI_ROOT && r < far; r++)
		CHECK(is(a + r * n, !side, r, 1, n));
	DO(Gatherv, gatherv, b, (p.me + 1) * n / (near + 1), MPI_INT, a, counts, displs, MPI_INT, arg);
	for (int r = 0; arg == MPI_ROOT && r < far; r++)
		CHECK(is(a + displs[r], !side, r, 1, counts[r]));

	for (int r = 0; r < far; r++)
		fill(a + r * n, side, root, r, n);
	DO(Scatter, scatter, a, n, MPI_INT, b, n, MPI_INT, arg);
	if (p.side != side)
		CHECK(is(b, side, root, p.me, n));
	for (int r = 0; r < far; r++)
		fill(a + displs[r], side, root, r + 3, counts[r]);
	DO(Scatterv, scatterv, a, counts, displs, MPI_INT, b, (p.me + 1) * n / (near + 1), MPI_INT, arg);
	if (p.side != side)
		CHECK(is(b, side, root, p.me + 3, (p.me + 1) * n / (near + 1)));

	for (int i = 0; i < n; i++)
		b[i] = p.me + i % 5;
	DO(Reduce, reduce, b, a, n, MPI_INT, MPI_SUM, arg);
	for (int i = 0; arg == MPI_ROOT && i < n; i += n / 3 + 1)
		CHECK_EQ(a[i], far * (far - 1) / 2 + far * (i % 5));
	free(a);
	free(b);
}

/* Each tells all of the other group. */
static void gathers(int n)
{
	int *a = chk_alloc((size_t)n * (size_t)far * 8 + 64), *b = chk_alloc((size_t)n * 4 + 64);
	int counts[1024], displs[1024];

	for (int r = 0, at = 0; r < far; r++) {
		counts[r] = r % 2 ? n : n / 2;
		displs[r] = at;
		at += n + 1;
	}
	fill(b, p.side, p.me, 5, n);
	DO(Allgather, allgather, b, n, MPI_INT, a, n, MPI_INT);
	for (int r = 0; r < far; r++)
		CHECK(is(a + r * n, !p.side, r, 5, n));
	DO(Allgatherv, allgatherv, b, p.me % 2 ? n : n / 2, MPI_INT, a, counts, displs, MPI_INT);
	for (int r = 0; r < far; r++)
		CHECK(is(a + displs[r], !p.side, r, 5, counts[r]));
	free(a);
	free(b);
}

static void exchanges(int n)
{
	int *a = chk_alloc((size_t)n * (size_t)far * 8 + 64),
	    *b = chk_alloc((size_t)n * (size_t)far * 8 + 64);
	int sc[1024], rc[1024], d[1024], bytes[1024];
	MPI_Datatype t[1024];

	for (int r = 0; r < far; r++) {
		sc[r] = (p.me + r) % 3 * n / 2;
		rc[r] = (r + p.me) % 3 * n / 2;
		d[r] = r * (n + 1);
		bytes[r] = d[r] * 4;
		t[r] = MPI_INT;
		fill(a + r * n, p.side, p.me, r, n);
	}
	DO(Alltoall, alltoall, a, n, MPI_INT, b, n, MPI_INT);
	for (int r = 0; r < far; r++)
		CHECK(is(b + r * n, !p.side, r, p.me, n));
	for (int r = 0; r < far; r++)
		fill(a + d[r], p.side, p.me, r, n);
	DO(Alltoallv, alltoallv, a, sc, d, MPI_INT, b, rc, d, MPI_INT);
	for (int r = 0; r < far; r++)
		CHECK(is(b + d[r], !p.side, r, p.me, rc[r]));
	memset(b, 0, (size_t)n * (size_t)far * 8);
	DO(Alltoallw, alltoallw, a, sc, bytes, t, b, rc, bytes, t);
	for (int r = 0; r < far; r++)
		CHECK(is(b + d[r], !p.side, r, p.me, rc[r]));
	free(a);
	free(b);
}

/* 2 x 2 matrices modulo 1009: associative, not commutative. */
static void times(void *in, void *inout, int *len, MPI_Datatype *t)
{
	int *a = in, *b = inout;

	(void)t;
	for (int k = 0; k < *len; k++, a += 4, b += 4) {
		int c[4] = { a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
			a[2] * b[1] + a[3] * b[3] };

		for (int i = 0; i < 4; i++)
			b[i] = c[i] % 1009;
	}
}

static void matrix(int m[4], int side, int r)
{
	m[0] = r + 2;
	m[1] = side + 1;
	m[2] = 3;
	m[3] = r * r % 11 + 1;
}

static void in_order(void)
{
	int mine[4], got[4] = { 0 }, want[4], next[4], one = 1;
	MPI_Datatype m;
	MPI_Op op;

	MPI_Type_contiguous(4, MPI_INT, &m);
	MPI_Type_commit(&m);
	MPI_Op_create(times, 0, &op);
	matrix(mine, p.side, p.me);
	DO(Allreduce, allreduce, mine, got, 1, m, op);
	matrix(want, !p.side, far - 1);
	for (int r = far - 2; r >= 0; r--) {
		matrix(next, !p.side, r);
		times(next, want, &one, &m);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(got[i], want[i]);
	MPI_Op_free(&op);
	MPI_Type_free(&m);
}

static void reductions(int n)
{
	int all = n * near * far; /* the same at both groups */
	int *a = chk_alloc((size_t)all * 4), *b = chk_alloc((size_t)all * 4), counts[1024], at = 0;

	for (int i = 0; i < all; i++)
		a[i] = p.me + i % 7;
	DO(Allreduce, allreduce, a, b, n, MPI_INT, MPI_SUM);
	for (int i = 0; i < n; i += n / 3 + 1)
		CHECK_EQ(b[i], far * (far - 1) / 2 + far * (i % 7));
	DO(Reduce_scatter_block, reduce_scatter_block, a, b, n * far, MPI_INT, MPI_SUM);
	for (int i = 0; i < n * far; i += n / 2 + 1)
		CHECK_EQ(b[i], far * (far - 1) / 2 + far * ((p.me * n * far + i) % 7));
	for (int r = 0; r < near; r++)
		counts[r] = n * far;
	if (near > 1) { /* unequal */
		counts[0] -= n;
		counts[near - 1] += n;
	}
	for (int r = 0; r < p.me; r++)
		at += counts[r];
	DO(Reduce_scatter, reduce_scatter, a, b, counts, MPI_INT, MPI_SUM);
	for (int i = 0; i < counts[p.me]; i += n / 2 + 1)
		CHECK_EQ(b[i], far * (far - 1) / 2 + far * ((at + i) % 7));
	free(a);
	free(b);
}

/* Nobody leaves a barrier before all have entered: whoever has left finds that everybody of the other group has said so. */
static void barriers(void)
{
	MPI_Request req;
	int flag, one = 1;

	for (int i = 0; i < 3; i++) {
		MPI_Barrier(p.inter);
		MPI_Ibarrier(p.inter, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	/* a barrier that rank 0 has not entered is not over */
	if (chk_rank == 0) {
		MPI_Status st;

		for (int r = 0; r < far; r++) /* they have entered */
			MPI_Recv(&one, 1, MPI_INT, r, 9, p.inter, &st);
		MPI_Ibarrier(p.inter, &req);
	} else {
		MPI_Ibarrier(p.inter, &req);
		MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
		for (int r = 0; r < far; r++) {
			if (p.world[!p.side][r] != 0)
				continue;
			CHECK(!flag);
			MPI_Send(&one, 1, MPI_INT, r, 9, p.inter);
		}
	}
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* Several at a time, completed the other way round. */
static void pending(void)
{
	int all[3][1024], sum[3] = { 0 }, mine[3] = { p.me, 2 * p.me, 3 * p.me };
	MPI_Request req[6];

	for (int i = 0; i < 3; i++) {
		MPI_Iallgather(&mine[i], 1, MPI_INT, all[i], 1, MPI_INT, p.inter, &req[2 * i]);
		MPI_Iallreduce(&mine[i], &sum[i], 1, MPI_INT, MPI_SUM, p.inter, &req[2 * i + 1]);
	}
	for (int i = 5; i >= 0; i--)
		MPI_Wait(&req[i], MPI_STATUS_IGNORE);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(sum[i], (i + 1) * far * (far - 1) / 2);
		for (int r = 0; r < far; r++)
			CHECK_EQ(all[i][r], (i + 1) * r);
	}
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 1, 12, 50000 };

	chk_begin(&argc, &argv, "inter_coll", 2);
	for (int way = 0; way < INTER_WAYS; way++) {
		inter_make(&p, way);
		near = p.n[p.side];
		far = p.n[!p.side];
		for (nonblocking = 0; nonblocking < 2; nonblocking++) {
			for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
				if (sizes[k] > 1000 && way % 2 == nonblocking)
					continue; /* long ones once */
				rooted(0, 0, sizes[k]);
				rooted(1, p.n[1] - 1, sizes[k]);
				gathers(sizes[k]);
				exchanges(sizes[k]);
				reductions(sizes[k]);
			}
			in_order();
		}
		barriers();
		pending();
		inter_free(&p);
	}
	return chk_end();
}
