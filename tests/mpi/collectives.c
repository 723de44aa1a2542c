/*
 * collectives - all blocking collectives on WORLD, on a communicator with reversed ranks and on the odd and even ranks:
 * all roots, counts 0 to 100 k, MPI_IN_PLACE, uneven and zero counts in the v and w forms, derived types, several
 * operators, user-defined ones that commute and that do not.  Arguments: largest count (100000), repetitions (1).
 */
#include "check.h"
#include "operators.h"

static MPI_Comm comm;
static int r, n; /* rank and size in comm */
static int largest;

/* Element i of what rank a has for rank b. */
static int val(int a, int b, int i)
{
	return (int)(chk_mix((uint64_t)(a * 131 + b), (uint64_t)i) & 0xffff);
}

static int *ints(long k)
{
	int *p = chk_alloc(sizeof(int) * (size_t)(k + 1));

	for (long i = 0; i <= k; i++)
		p[i] = -1;
	return p;
}

/* count ints at p are those of (a, b); the one behind is checked by the caller where nothing may be written. */
static void same(int line, const int *p, int count, int a, int b)
{
	int bad = 0;

	for (int i = 0; i < count; i++)
		bad += p[i] != val(a, b, i);
	chk_eq(__FILE__, line, "wrong elements", bad, 0);
}

static void put(int *p, int count, int a, int b)
{
	for (int i = 0; i < count; i++)
		p[i] = val(a, b, i);
}

/* Uneven counts: 0 for some ranks. */
static int uneven(int rank, int count)
{
	return rank % 3 == 1 ? 0 : count + rank;
}

static void bcast_gather_scatter(int count, int root)
{
	int *a = ints((long)count * n), *b = ints((long)count * n);

	if (r == root)
		put(a, count, root, 0);
	MPI_Bcast(a, count, MPI_INT, root, comm);
	same(__LINE__, a, count, root, 0);
	CHECK_EQ(a[(long)count * n], -1);

	put(a, count, r, 1);
	MPI_Gather(a, count, MPI_INT, r == root ? b : NULL, count, MPI_INT, root, comm);
	for (int k = 0; k < n && r == root; k++)
		same(__LINE__, b + (long)k * count, count, k, 1);
	if (r == root) {
		memset(b, 0, sizeof(int) * (size_t)count * (size_t)n);
		put(b + (long)r * count, count, r, 1);
	}
	MPI_Gather(r == root ? MPI_IN_PLACE : a, count, MPI_INT, b, count, MPI_INT, root, comm);
	for (int k = 0; k < n && r == root; k++)
		same(__LINE__, b + (long)k * count, count, k, 1);

	for (int k = 0; k < n && r == root; k++)
		put(b + (long)k * count, count, root, k + 5);
	memset(a, 0, sizeof(int) * (size_t)count);
	MPI_Scatter(r == root ? b : NULL, count, MPI_INT, a, count, MPI_INT, root, comm);
	same(__LINE__, a, count, root, r + 5);
	MPI_Scatter(b, count, MPI_INT, r == root ? MPI_IN_PLACE : a, count, MPI_INT, root, comm);
	same(__LINE__, r == root ? b + (long)r * count : a, count, root, r + 5);
	free(a);
	free(b);
}

static void v_forms(int count, int root)
{
	int *cnt = ints(n), *dis = ints(n), total = 0;

	for (int k = n - 1; k >= 0; k--) { /* displacements in falling order, with gaps */
		cnt[k] = uneven(k, count);
		dis[k] = total +
			 (n > 1); /* MPICH 4.0.2: MPI_Allgatherv on one rank ignores the displacement */
		total += cnt[k] + 2;
	}
	int *a = ints(count + n), *b = ints(total);

	put(a, cnt[r], r, 2);
	MPI_Gatherv(a, cnt[r], MPI_INT, b, cnt, dis, MPI_INT, root, comm);
	for (int k = 0; k < n && r == root; k++) {
		same(__LINE__, b + dis[k], cnt[k], k, 2);
		if (n > 1)
			CHECK_EQ(b[dis[k] - 1], -1);
	}
	if (r == root)
		for (int k = 0; k < n; k++)
			put(b + dis[k], cnt[k], root, k + 7);
	memset(a, 0, sizeof(int) * (size_t)(count + n));
	MPI_Scatterv(b, cnt, dis, MPI_INT, a, cnt[r], MPI_INT, root, comm);
	same(__LINE__, a, cnt[r], root, r + 7);
	CHECK_EQ(a[cnt[r]], cnt[r] < count + n ? 0 : -1);

	for (int i = 0; i < total; i++)
		b[i] = -1;
	put(a, cnt[r], r, 3);
	MPI_Allgatherv(a, cnt[r], MPI_INT, b, cnt, dis, MPI_INT, comm);
	for (int k = 0; k < n; k++) {
		same(__LINE__, b + dis[k], cnt[k], k, 3);
		if (n > 1)
			CHECK_EQ(b[dis[k] - 1], -1);
	}
	for (int k = 0; k < n; k++)
		if (k != r)
			memset(b + dis[k], 0, sizeof(int) * (size_t)cnt[k]);
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, cnt, dis, MPI_INT, comm);
	for (int k = 0; k < n; k++)
		same(__LINE__, b + dis[k], cnt[k], k, 3);
	free(a);
	free(b);
	free(cnt);
	free(dis);
}

static void all_to_all(int count)
{
	int *a = ints((long)count * n), *b = ints((long)count * n);

	put(b, count, r, 4);
	MPI_Allgather(b, count, MPI_INT, a, count, MPI_INT, comm);
	for (int k = 0; k < n; k++)
		same(__LINE__, a + (long)k * count, count, k, 4);
	for (int k = 0; k < n; k++)
		if (k != r)
			memset(a + (long)k * count, 0, sizeof(int) * (size_t)count);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, count, MPI_INT, comm);
	for (int k = 0; k < n; k++)
		same(__LINE__, a + (long)k * count, count, k, 4);

	for (int k = 0; k < n; k++)
		put(a + (long)k * count, count, r, k + 9);
	MPI_Alltoall(a, count, MPI_INT, b, count, MPI_INT, comm);
	for (int k = 0; k < n; k++)
		same(__LINE__, b + (long)k * count, count, k, r + 9);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, count, MPI_INT, comm);
	for (int k = 0; k < n; k++)
		same(__LINE__, a + (long)k * count, count, k, r + 9);
	free(a);
	free(b);
}

/* What leaves as every second int arrives as ints, and what arrives as pairs with a gap leaves the gap alone. */
static void alltoall_strided(int count)
{
	MPI_Datatype every2, gapped;
	int *a = ints(2 * n * count), *b = ints(3 * n * count), bad = 0;

	MPI_Type_create_resized(MPI_INT, 0, 8, &every2);
	MPI_Type_create_indexed_block(2, 1, (int[]){ 0, 2 }, MPI_INT, &gapped);
	MPI_Type_commit(&every2);
	MPI_Type_commit(&gapped);
	for (int i = 0; i < n * count; i++)
		a[2 * i] = val(r, i / count, i % count);
	for (int i = 0; i < 3 * n * count; i++)
		b[i] = -1;
	MPI_Alltoall(a, count, every2, b, count, MPI_INT, comm);
	for (int i = 0; i < n * count; i++)
		bad += b[i] != val(i / count, r, i % count);
	CHECK_EQ(bad, 0);
	for (int i = 0; i < 3 * n * count; i++)
		b[i] = -1;
	if (count % 2 == 0) {
		MPI_Alltoall(a, count, every2, b, count / 2, gapped, comm);
		bad = 0;
		for (int i = 0; i < n * count; i++)
			bad += b[i / 2 * 3 + i % 2 * 2] != val(i / count, r, i % count) ||
			       (i % 2 && b[i / 2 * 3 + 1] != -1);
		CHECK_EQ(bad, 0);
	}
	MPI_Type_free(&every2);
	MPI_Type_free(&gapped);
	free(a);
	free(b);
}

/* Rank a sends to rank b: nothing, or a number of ints that depends on both. */
static int traffic(int a, int b, int count)
{
	return (a + 2 * b) % 3 == 0 ? 0 : count + a + b;
}

static void alltoallv_w(int count)
{
	int *sc = ints(n), *sd = ints(n), *rc = ints(n), *rd = ints(n), ns = 0, nr = 0;
	MPI_Datatype *st = chk_alloc(sizeof *st * (size_t)n), *rt = chk_alloc(sizeof *rt * (size_t)n), every2;

	for (int k = n - 1; k >= 0; k--) {
		sc[k] = traffic(r, k, count);
		rc[k] = traffic(k, r, count);
		sd[k] = ns;
		rd[k] = nr;
		ns += sc[k] + 1;
		nr += rc[k] + 1;
	}
	int *a = ints(ns), *b = ints(2L * nr);

	for (int k = 0; k < n; k++)
		put(a + sd[k], sc[k], r, k + 20);
	MPI_Alltoallv(a, sc, sd, MPI_INT, b, rc, rd, MPI_INT, comm);
	for (int k = 0; k < n; k++) {
		same(__LINE__, b + rd[k], rc[k], k, r + 20);
		CHECK_EQ(b[rd[k] + rc[k]], -1);
	}
	/* in place: counts must be symmetric */
	int *c2 = ints(n), *d2 = ints(n), total = 0;
	for (int k = 0; k < n; k++) {
		c2[k] = (r + k) % 3 == 0 ? 0 : count + r + k;
		d2[k] = total;
		total += c2[k];
	}
	int *c = ints(total);
	for (int k = 0; k < n; k++)
		put(c + d2[k], c2[k], r, k + 30);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, c, c2, d2, MPI_INT, comm);
	for (int k = 0; k < n; k++)
		same(__LINE__, c + d2[k], c2[k], k, r + 30);

	/* w: odd receivers spread what they get over every second int; displacements are bytes */
	MPI_Type_create_resized(MPI_INT, 0, 8, &every2);
	MPI_Type_commit(&every2);
	for (int k = 0; k < n; k++) {
		sd[k] *= 4;
		rd[k] *= 8;
		st[k] = MPI_INT;
		rt[k] = r % 2 ? every2 : MPI_INT;
	}
	for (int i = 0; i < 2 * nr; i++)
		b[i] = -1;
	MPI_Alltoallw(a, sc, sd, st, b, rc, rd, rt, comm);
	for (int k = 0; k < n; k++) {
		int bad = 0, step = r % 2 ? 2 : 1;

		for (int i = 0; i < rc[k]; i++) {
			bad += b[rd[k] / 4 + i * step] != val(k, r + 20, i);
			if (step == 2)
				bad += b[rd[k] / 4 + 2 * i + 1] != -1;
		}
		CHECK_EQ(bad, 0);
	}
	MPI_Type_free(&every2);
	free(a);
	free(b);
	free(c);
	free(c2);
	free(d2);
	free(sc);
	free(sd);
	free(rc);
	free(rd);
	free(st);
	free(rt);
}

/* Operand i of a rank. */
static struct matrix matrix_of(int rank, int i)
{
	struct matrix a;

	for (int k = 0; k < 4; k++)
		a.m[k] = val(rank, i, k) % 251;
	return a;
}

/* The product of ranks 0..last at element i. */
static struct matrix product(int last, int i)
{
	struct matrix p = matrix_of(0, i);

	for (int k = 1; k <= last; k++)
		p = times(p, matrix_of(k, i));
	return p;
}

static int wrong_products(const struct matrix *p, int count, int last, int from)
{
	int bad = 0;

	for (int i = 0; i < count; i++) {
		struct matrix w = product(last, from + i);
		bad += memcmp(&p[i], &w, sizeof w) != 0;
	}
	return bad;
}

static void matrices(int count, int root)
{
	MPI_Op op;
	MPI_Datatype t;
	int commute;
	struct matrix *a = chk_alloc(sizeof *a * (size_t)(count * n + 1)),
		      *b = chk_alloc(sizeof *b * (size_t)(count * n + 1));

	MPI_Type_contiguous(4, MPI_INT, &t);
	MPI_Type_commit(&t);
	MPI_Op_create(matrix_op, 0, &op);
	MPI_Op_commutative(op, &commute);
	CHECK_EQ(commute, 0);
	for (int i = 0; i < count * n; i++)
		a[i] = matrix_of(r, i);
	MPI_Reduce(a, b, count, t, op, root, comm);
	if (r == root)
		CHECK_EQ(wrong_products(b, count, n - 1, 0), 0);
	MPI_Allreduce(a, b, count, t, op, comm);
	CHECK_EQ(wrong_products(b, count, n - 1, 0), 0);
	MPI_Scan(a, b, count, t, op, comm);
	CHECK_EQ(wrong_products(b, count, r, 0), 0);
	MPI_Exscan(a, b, count, t, op, comm);
	if (r)
		CHECK_EQ(wrong_products(b, count, r - 1, 0), 0);
	MPI_Reduce_scatter_block(a, b, count, t, op, comm);
	CHECK_EQ(wrong_products(b, count, n - 1, r * count), 0);
	memcpy(b, a, sizeof *a * (size_t)count);
	MPI_Allreduce(MPI_IN_PLACE, b, count, t, op, comm);
	CHECK_EQ(wrong_products(b, count, n - 1, 0), 0);
	MPI_Op_free(&op);
	MPI_Type_free(&t);
	free(a);
	free(b);
}

/* kind 0 sum, 1 max, 2 own commutative, 3 bxor, 4 scan-like prefix sums are made with last < n-1 */
static int reduced(int kind, int last, int i)
{
	int x = val(0, 50, i);

	for (int k = 1; k <= last; k++) {
		int y = val(k, 50, i);

		x = kind == 0 ? x + y : kind == 1 ? (x > y ? x : y) : kind == 2 ? (x + y) % 65521 : x ^ y;
	}
	return x;
}

static int wrong_sums(const int *p, int count, int kind, int last, int from)
{
	int bad = 0;

	for (int i = 0; i < count; i++)
		bad += p[i] != reduced(kind, last, from + i);
	return bad;
}

static void reductions(int count, int root, int kind)
{
	MPI_Op own, op[4] = { MPI_SUM, MPI_MAX, MPI_OP_NULL, MPI_BXOR };
	int total = 0, *cnt = ints(n), mine = 0;

	MPI_Op_create(add_mod, 1, &own);
	op[2] = own;
	for (int k = 0; k < n; k++) {
		cnt[k] = uneven(k, count);
		if (k < r)
			mine += cnt[k];
		total += cnt[k];
	}
	if (total < count)
		total = count;
	int *a = ints(total), *b = ints(total);

	put(a, total, r, 50);
	MPI_Reduce(a, r == root ? b : NULL, count, MPI_INT, op[kind], root, comm);
	if (r == root) {
		CHECK_EQ(wrong_sums(b, count, kind, n - 1, 0), 0);
		CHECK_EQ(b[count], -1);
	}
	if (count > 500)
		root = 0; /* MPICH 4.0.2: above 2 KB MPI_Reduce in place crashes at other roots */
	if (r == root)
		memcpy(b, a, sizeof(int) * (size_t)count);
	MPI_Reduce(r == root ? MPI_IN_PLACE : a, b, count, MPI_INT, op[kind], root, comm);
	if (r == root)
		CHECK_EQ(wrong_sums(b, count, kind, n - 1, 0), 0);
	MPI_Allreduce(a, b, count, MPI_INT, op[kind], comm);
	CHECK_EQ(wrong_sums(b, count, kind, n - 1, 0), 0);
	memcpy(b, a, sizeof(int) * (size_t)count);
	MPI_Allreduce(MPI_IN_PLACE, b, count, MPI_INT, op[kind], comm);
	CHECK_EQ(wrong_sums(b, count, kind, n - 1, 0), 0);
	MPI_Scan(a, b, count, MPI_INT, op[kind], comm);
	CHECK_EQ(wrong_sums(b, count, kind, r, 0), 0);
	memcpy(b, a, sizeof(int) * (size_t)count);
	MPI_Scan(MPI_IN_PLACE, b, count, MPI_INT, op[kind], comm);
	CHECK_EQ(wrong_sums(b, count, kind, r, 0), 0);
	memcpy(b, a, sizeof(int) * (size_t)count);
	MPI_Exscan(MPI_IN_PLACE, b, count, MPI_INT, op[kind], comm);
	if (r)
		CHECK_EQ(wrong_sums(b, count, kind, r - 1, 0), 0);
	MPI_Reduce_scatter(a, b, cnt, MPI_INT, op[kind], comm);
	CHECK_EQ(wrong_sums(b, cnt[r], kind, n - 1, mine), 0);
	if (count <= 2000) { /* MPICH 4.0.2 asserts on long ones in place whose result overlaps its source */
		memcpy(b, a, sizeof(int) * (size_t)total);
		MPI_Reduce_scatter(MPI_IN_PLACE, b, cnt, MPI_INT, op[kind], comm);
		CHECK_EQ(wrong_sums(b, cnt[r], kind, n - 1, mine), 0);
	}
	MPI_Op_free(&own);
	free(a);
	free(b);
	free(cnt);
}

/* MINLOC with ties, logical, floating point sums that are exact, and all ranks get the same bits of those that are not. */
static void other_ops(void)
{
	struct {
		double v;
		int i;
	} p[3], q[3];
	double x, y, z;
	int a, b;

	for (int k = 0; k < 3; k++) {
		p[k].v = (r + k) % 2;
		p[k].i = r + 10 * k;
	}
	MPI_Allreduce(p, q, 3, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	for (int k = 0; k < 3; k++) {
		int at = n == 1 ? 0 : k % 2;
		CHECK(q[k].v == (n == 1 ? k % 2 : 0) && q[k].i == at + 10 * k);
	}
	a = r != n - 1;
	MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_LAND, comm);
	CHECK_EQ(b, 0);
	x = 0.25 * r;
	MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, comm);
	CHECK(y == 0.125 * n * (n - 1));
	x = 1.0 / (3 + r);
	MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, comm);
	z = y;
	MPI_Bcast(&z, 1, MPI_DOUBLE, 0, comm);
	CHECK(!memcmp(&y, &z, sizeof y));
	x = r + 1;
	MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_PROD, comm);
	z = 1;
	for (int k = 1; k <= n; k++)
		z *= k;
	CHECK(n > 15 || y == z);
	int64_t big = (int64_t)1 << (40 + r % 4), max;
	MPI_Allreduce(&big, &max, 1, MPI_INT64_T, MPI_MAX, comm);
	CHECK_EQ(max, (int64_t)1 << (40 + (n > 3 ? 3 : n - 1)));
}

/* Different types with one signature on the two sides: a strided column is broadcast, gathered and scattered. */
static void derived(int root)
{
	enum { K = 500 };
	MPI_Datatype every3, ext;
	int *a = ints(3L * K * n), *b = ints((long)K * n), bad = 0;

	MPI_Type_vector(K, 1, 3, MPI_INT, &every3);
	MPI_Type_create_resized(every3, 0, 3 * K * (MPI_Aint)sizeof(int), &ext);
	MPI_Type_commit(&ext);
	MPI_Type_free(&every3);
	if (r == root)
		for (int i = 0; i < K; i++)
			a[3 * i] = val(root, 60, i);
	if (r % 2 || r == root)
		MPI_Bcast(a, 1, ext, root, comm);
	else
		MPI_Bcast(b, K, MPI_INT, root, comm);
	for (int i = 0; i < K; i++)
		bad += (r % 2 || r == root ? a[3 * i] : b[i]) != val(root, 60, i);
	for (int i = 0; i < K; i++)
		bad += a[3 * i + 1] != -1;
	CHECK_EQ(bad, 0);
	put(b, K, r, 61);
	MPI_Gather(b, K, MPI_INT, a, 1, ext, root, comm);
	for (int k = 0; k < n && r == root; k++)
		for (int i = 0; i < K; i++)
			bad += a[3 * (k * K + i)] != val(k, 61, i) || a[3 * (k * K + i) + 1] != -1;
	CHECK_EQ(bad, 0);
	memset(b, 0, sizeof(int) * K);
	MPI_Scatter(a, 1, ext, b, K, MPI_INT, root, comm);
	same(__LINE__, b, K, r, 61);
	MPI_Allgather(b, K, MPI_INT, a, 1, ext, comm);
	for (int k = 0; k < n; k++)
		for (int i = 0; i < K; i++)
			bad += a[3 * (k * K + i)] != val(k, 61, i) || a[3 * (k * K + i) + 1] != -1;
	CHECK_EQ(bad, 0);
	MPI_Type_free(&ext);
	free(a);
	free(b);
}

/* Nobody leaves before the last has come: everybody tells rank 0 before, rank 0 has heard of all after. */
static void barrier(void)
{
	int flag, heard = 0;
	MPI_Status st;

	if (r)
		MPI_Send(NULL, 0, MPI_INT, 0, 11, comm);
	MPI_Barrier(comm);
	if (r)
		return;
	/* sent before the barrier, but a message may take another path than the barrier: wait, but count */
	for (long tries = 0; heard < n - 1 && tries < 500000000; tries++) {
		MPI_Iprobe(MPI_ANY_SOURCE, 11, comm, &flag, &st);
		if (flag) {
			MPI_Recv(NULL, 0, MPI_INT, st.MPI_SOURCE, 11, comm, MPI_STATUS_IGNORE);
			heard++;
		}
	}
	CHECK_EQ(heard, n - 1);
}

/* A user's wildcard receive never meets a message of a collective. */
static void wildcard_pending(void)
{
	int got = -1, right = (r + 1) % n, left = (r + n - 1) % n, sum = 0;
	MPI_Request q;
	MPI_Status st;

	MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &q);
	MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Bcast(&sum, 1, MPI_INT, n - 1, comm);
	MPI_Barrier(comm);
	CHECK_EQ(sum, n * (n - 1) / 2);
	MPI_Send(&r, 1, MPI_INT, right, 3, comm);
	MPI_Wait(&q, &st);
	CHECK_STATUS(&st, left, 3, MPI_INT, 1);
	CHECK_EQ(got, left);
	MPI_Barrier(comm);
}

static void everything(MPI_Comm c, int long_ones)
{
	comm = c;
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	barrier();
	wildcard_pending();
	for (int root = 0; root < n; root++) {
		if (!long_ones && root > 0 && root < n - 1)
			continue; /* all roots on WORLD only: MPICH alone takes milliseconds a step when it shares cores */
		bcast_gather_scatter(root % 2 ? 7 : 300, root);
		if (long_ones || root == n - 1) {
			v_forms(1 + 40 * root, root);
			reductions(5 + 100 * root, root, root % 4);
		}
	}
	derived(n - 1);
	matrices(3, n / 2);
	other_ops();
	for (int i = 0, counts[] = { 0, 1, 2000, 100000 }; i < 4; i++) {
		int k = counts[i] < largest ? counts[i] : largest, root = i % n;

		if (i % 2 && !long_ones)
			continue;
		bcast_gather_scatter(k, root);
		v_forms(k, root);
		all_to_all(k);
		alltoall_strided(k);
		alltoallv_w(k);
		reductions(k, root, i);
	}
	if (long_ones)
		matrices(1000, 0);
}

int main(int argc, char **argv)
{
	MPI_Comm rev, half;

	chk_begin(&argc, &argv, "collectives", 1);
	largest = (int)chk_arg(argc, argv, 1, 100000);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -chk_rank, &rev);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 2, 0, &half);
	for (int i = 0; i < (int)chk_arg(argc, argv, 2, 1); i++) {
		everything(MPI_COMM_WORLD, 1);
		everything(rev, 0);
		everything(half, 0);
		everything(MPI_COMM_SELF, 0);
	}
	MPI_Comm_free(&rev);
	MPI_Comm_free(&half);
	return chk_end();
}
