/*
 * datatypes - derived types on both sides.  Each case sends `from` and receives `to`, which differ in layout but have
 * the same signature; the expected buffer is computed by hand from lists of (offset, element), never by the MPI
 * library: the bytes in the gaps must stay as they were.  Also partial receives, packed data, absolute addresses,
 * empty types, and types freed while the operation is pending.
 */
#include "check.h"
#include <stddef.h>

enum { MAX = 4096, SPAN = 65536 };

/* A layout: the elements of ONE item in type map order (offset, size), and the extent. */
struct layout {
	const char *name;
	MPI_Datatype type;
	int n;
	int off[MAX];
	MPI_Aint extent;
};

static int right, left;

/* The three layouts of n ints that all cases are made of are written by these; others are built in cases(). */
static void add(struct layout *l, int off)
{
	l->off[l->n++] = off;
}

/* Sends count items of `from` to the right, receives them as count2 items of `to`; elements are ints. */
static void transfer(struct layout *from, int count, struct layout *to, int count2, int how)
{
	static unsigned char out[SPAN], in[SPAN], want[SPAN];
	const int base = SPAN / 4; /* room for negative displacements */
	MPI_Request q[2];
	MPI_Status st;
	MPI_Datatype sent, got;
	int total = count * from->n, bad = -1, items, elements;

	if (total > to->n * count2) {
		CHECK_EQ(total, to->n * count2);
		return;
	}
	chk_fill(out, SPAN, chk_seed(chk_rank, 1, 2, 3));
	memset(in, 0x5A, SPAN);
	memset(want, 0x5A, SPAN);
	for (int e = 0; e < total; e++) {
		int v = (int)chk_mix((uint64_t)e + 77, (uint64_t)left),
		    mine = (int)chk_mix((uint64_t)e + 77, (uint64_t)chk_rank);

		memcpy(out + base + from->off[e % from->n] + e / from->n * from->extent, &mine, 4);
		memcpy(want + base + to->off[e % to->n] + e / to->n * to->extent, &v, 4);
	}
	MPI_Type_dup(from->type, &sent);
	MPI_Type_dup(to->type, &got);
	if (how == 0) {
		MPI_Irecv(in + base, count2, got, left, 21, MPI_COMM_WORLD, &q[0]);
		MPI_Isend(out + base, count, sent, right, 21, MPI_COMM_WORLD, &q[1]);
		MPI_Type_free(&sent); /* pending operations keep their types */
		MPI_Type_free(&got);
		MPI_Wait(&q[0], &st);
		MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	} else if (how == 1) {
		MPI_Issend(out + base, count, sent, right, 21, MPI_COMM_WORLD, &q[1]);
		MPI_Type_free(&sent);
		MPI_Recv(in + base, count2, got, MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &st);
		MPI_Wait(&q[1], MPI_STATUS_IGNORE);
		MPI_Type_free(&got);
	} else {
		MPI_Sendrecv(out + base, count, sent, right, 21, in + base, count2, got, left, 21,
			MPI_COMM_WORLD, &st);
		MPI_Type_free(&sent);
		MPI_Type_free(&got);
	}
	for (int i = 0; i < SPAN && bad < 0; i++)
		if (in[i] != want[i])
			bad = i - base;
	if (!CHECK(bad < 0))
		fprintf(stderr, "  from %s to %s: first wrong byte at %d\n", from->name, to->name, bad);
	MPI_Get_count(&st, to->type, &items);
	MPI_Get_elements(&st, to->type, &elements);
	CHECK_EQ(items, total % to->n ? MPI_UNDEFINED : total / to->n);
	CHECK_EQ(elements, total);
	CHECK_EQ(st.MPI_SOURCE, left);
	CHECK_EQ(st.MPI_TAG, 21);
}

/* twelve ints per item in ten layouts; every pair is a case */
static int make_layouts(struct layout *l)
{
	int k = 0;
	MPI_Datatype t, t2;

	for (int i = 0; i < 16; i++)
		l[i].n = 0;

	l[k].name = "contiguous";
	MPI_Type_contiguous(12, MPI_INT, &l[k].type);
	for (int i = 0; i < 12; i++)
		add(&l[k], 4 * i);
	l[k++].extent = 48;

	l[k].name = "vector";
	MPI_Type_vector(4, 3, 5, MPI_INT, &l[k].type);
	for (int i = 0; i < 12; i++)
		add(&l[k], 20 * (i / 3) + 4 * (i % 3));
	l[k++].extent = 4 * 18;

	l[k].name = "hvector with a negative stride";
	MPI_Type_create_hvector(6, 2, -16, MPI_INT, &t);
	MPI_Type_create_resized(t, -80, 88, &l[k].type);
	MPI_Type_free(&t);
	for (int i = 0; i < 12; i++)
		add(&l[k], -16 * (i / 2) + 4 * (i % 2));
	l[k++].extent = 88;

	l[k].name = "indexed, permuted {1,0}";
	MPI_Type_indexed(2, (int[]){ 6, 6 }, (int[]){ 6, 0 }, MPI_INT, &l[k].type);
	for (int i = 0; i < 12; i++)
		add(&l[k], 4 * ((i + 6) % 12));
	l[k++].extent = 48;

	l[k].name = "indexed_block, scattered";
	MPI_Type_create_indexed_block(6, 2, (int[]){ 14, 0, 10, 3, 7, 20 }, MPI_INT, &l[k].type);
	for (int i = 0; i < 12; i++)
		add(&l[k], 4 * ((int[]){ 14, 0, 10, 3, 7, 20 }[i / 2] + i % 2));
	l[k++].extent = 4 * 22;

	l[k].name = "contiguous of struct with gaps";
	MPI_Type_create_struct(
		2, (int[]){ 1, 2 }, (MPI_Aint[]){ 4, 16 }, (MPI_Datatype[]){ MPI_INT, MPI_INT }, &t);
	MPI_Type_create_resized(t, 0, 32, &t2);
	MPI_Type_contiguous(4, t2, &l[k].type);
	MPI_Type_free(&t);
	MPI_Type_free(&t2);
	for (int i = 0; i < 12; i++)
		add(&l[k], 32 * (i / 3) + (int[]){ 4, 16, 20 }[i % 3]);
	l[k++].extent = 128;

	l[k].name = "subarray, C order";
	MPI_Type_create_subarray(3, (int[]){ 4, 5, 6 }, (int[]){ 2, 2, 3 }, (int[]){ 1, 2, 3 }, MPI_ORDER_C,
		MPI_INT, &l[k].type);
	for (int a = 1; a < 3; a++)
		for (int b = 2; b < 4; b++)
			for (int c = 3; c < 6; c++)
				add(&l[k], 4 * ((a * 5 + b) * 6 + c));
	l[k++].extent = 480;

	l[k].name = "subarray, Fortran order";
	MPI_Type_create_subarray(
		2, (int[]){ 5, 6 }, (int[]){ 4, 3 }, (int[]){ 1, 2 }, MPI_ORDER_FORTRAN, MPI_INT, &l[k].type);
	for (int b = 2; b < 5; b++)
		for (int a = 1; a < 5; a++)
			add(&l[k], 4 * (b * 5 + a));
	l[k++].extent = 120;

	l[k].name = "darray, cyclic(2) x block, rank 1 of 2x2";
	MPI_Type_create_darray(4, 1, 2, (int[]){ 8, 6 },
		(int[]){ MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK },
		(int[]){ 2, MPI_DISTRIBUTE_DFLT_DARG }, (int[]){ 2, 2 }, MPI_ORDER_C, MPI_INT, &l[k].type);
	for (int a = 0; a < 4; a++) /* rows 0,1,4,5, columns 3..5 */
		for (int b = 3; b < 6; b++)
			add(&l[k], 4 * ((a / 2 * 4 + a % 2) * 6 + b));
	l[k++].extent = 192;

	l[k].name = "struct of vector, indexed and int, first elements last in memory";
	MPI_Type_vector(2, 2, 4, MPI_INT, &t);
	MPI_Type_indexed(2, (int[]){ 3, 1 }, (int[]){ 4, 1 }, MPI_INT, &t2);
	MPI_Type_create_struct(3, (int[]){ 1, 1, 4 }, (MPI_Aint[]){ 100, 40, 0 },
		(MPI_Datatype[]){ t, t2, MPI_INT }, &l[k].type);
	MPI_Type_free(&t);
	MPI_Type_free(&t2);
	for (int i = 0; i < 4; i++)
		add(&l[k], 100 + (int[]){ 0, 4, 16, 20 }[i]);
	for (int i = 0; i < 4; i++)
		add(&l[k], 40 + (int[]){ 16, 20, 24, 4 }[i]);
	for (int i = 0; i < 4; i++)
		add(&l[k], 4 * i);
	l[k++].extent = 124;

	for (int i = 0; i < k; i++) {
		MPI_Aint lb, ext;
		int size;

		MPI_Type_commit(&l[i].type);
		MPI_Type_size(l[i].type, &size);
		MPI_Type_get_extent(l[i].type, &lb, &ext);
		CHECK_EQ(size, 4 * l[i].n);
		CHECK_EQ(l[i].n, 12);
		if (!CHECK_EQ(ext, l[i].extent))
			l[i].extent = ext;
	}
	return k;
}

/* A message of m ints into bigger receives: Get_count is undefined between items. */
static void partial(struct layout *l, int k)
{
	static struct layout ints = { .name = "int", .n = 1, .off = { 0 }, .extent = 4 };
	const int some[] = { 0, 1, 11, 12, 13, 30, 36 };

	ints.type = MPI_INT;
	for (int i = 0; i < k; i++)
		for (int j = 0; j < 7; j++)
			if (chk_size > 1) /* MPICH asserts on such a message to itself */
				transfer(&ints, some[j], &l[i], 3 + i % 2, (i + j) % 3);
}

static void pairs(void)
{
	struct {
		double d;
		int i;
	} di[3], dj[5];
	struct {
		float f;
		int i;
	} fi[2], fj[2];
	struct {
		short s;
		int i;
	} si[3], sj[3];
	struct {
		long l;
		int i;
	} li, lj;
	int two[4], twoj[4], n, e;
	MPI_Status st;
	MPI_Datatype plain;

	memset(dj, 0x11, sizeof dj);
	for (int i = 0; i < 3; i++) {
		di[i].d = chk_rank + i / 8.0;
		di[i].i = chk_rank * 10 + i;
		si[i].s = (short)(chk_rank - i);
		si[i].i = chk_rank * 9 + i;
	}
	MPI_Sendrecv(di, 3, MPI_DOUBLE_INT, right, 22, dj, 5, MPI_DOUBLE_INT, left, 22, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 22, MPI_DOUBLE_INT, 3);
	MPI_Get_elements(&st, MPI_DOUBLE_INT, &e);
	CHECK(e == 6 || e == 3); /* Open MPI 4.1.4 counts a pair as one element */
	for (int i = 0; i < 3; i++)
		CHECK(dj[i].d == left + i / 8.0 && dj[i].i == left * 10 + i);
	CHECK_EQ(*(unsigned char *)&dj[3], 0x11);
	MPI_Sendrecv(si, 3, MPI_SHORT_INT, right, 22, sj, 3, MPI_SHORT_INT, left, 22, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 22, MPI_SHORT_INT, 3);
	for (int i = 0; i < 3; i++)
		CHECK(sj[i].s == left - i && sj[i].i == left * 9 + i);
	for (int i = 0; i < 2; i++) {
		fi[i].f = (float)chk_rank + 0.5f;
		fi[i].i = chk_rank + i;
		two[2 * i] = chk_rank;
		two[2 * i + 1] = -chk_rank - i;
	}
	MPI_Sendrecv(fi, 2, MPI_FLOAT_INT, right, 22, fj, 2, MPI_FLOAT_INT, left, 22, MPI_COMM_WORLD, &st);
	CHECK(fj[1].f == (float)left + 0.5f && fj[1].i == left + 1);
	MPI_Sendrecv(two, 2, MPI_2INT, right, 22, twoj, 4, MPI_INT, left, 22, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	CHECK_EQ(n, 4);
	CHECK(twoj[2] == left && twoj[3] == -left - 1);
	li.l = 1234567890123L + chk_rank;
	li.i = chk_rank;
	MPI_Sendrecv(&li, 1, MPI_LONG_INT, right, 22, &lj, 1, MPI_LONG_INT, left, 22, MPI_COMM_WORLD, &st);
	CHECK(lj.l == 1234567890123L + left && lj.i == left);
	/* a pair and a hand-made struct have the same signature */
	MPI_Type_create_struct(
		2, (int[]){ 1, 1 }, (MPI_Aint[]){ 8, 0 }, (MPI_Datatype[]){ MPI_DOUBLE, MPI_INT }, &plain);
	MPI_Type_commit(&plain);
	struct {
		int i;
		double d;
	} swapped = { 0, 0 };
	MPI_Sendrecv(di, 1, MPI_DOUBLE_INT, right, 22, &swapped, 1, plain, left, 22, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 22, plain, 1);
	CHECK(swapped.d == left && swapped.i == left * 10);
	MPI_Type_free(&plain);
}

/* Mixed element sizes; a receive that ends in the middle of an item. */
static void mixed_struct(void)
{
	struct item {
		char c;
		double d;
		short s[3];
		int i;
	} a[4], b[4];
	MPI_Datatype t, item;
	MPI_Status st;
	int n, e;

	MPI_Type_create_struct(4, (int[]){ 1, 1, 3, 1 },
		(MPI_Aint[]){ offsetof(struct item, c), offsetof(struct item, d), offsetof(struct item, s),
			offsetof(struct item, i) },
		(MPI_Datatype[]){ MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT }, &t);
	MPI_Type_create_resized(t, 0, sizeof(struct item), &item);
	MPI_Type_free(&t);
	MPI_Type_commit(&item);
	memset(b, 0x7B, sizeof b);
	for (int k = 0; k < 4; k++) {
		a[k].c = (char)(k + chk_rank);
		a[k].d = chk_rank * 3.25 + k;
		for (int j = 0; j < 3; j++)
			a[k].s[j] = (short)(100 * chk_rank + 10 * k + j);
		a[k].i = -k - chk_rank;
	}
	MPI_Sendrecv(a, 3, item, right, 23, b, 4, item, left, 23, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 23, item, 3);
	MPI_Get_elements(&st, item, &e);
	CHECK_EQ(e, 18);
	for (int k = 0; k < 3; k++) {
		CHECK(b[k].c == (char)(k + left) && b[k].d == left * 3.25 + k && b[k].i == -k - left);
		CHECK(b[k].s[0] == 100 * left + 10 * k && b[k].s[2] == 100 * left + 10 * k + 2);
		CHECK_EQ(((unsigned char *)&b[k])[1], 0x7B); /* padding is no data */
	}
	CHECK_EQ(b[3].c, 0x7B);
	if (chk_size > 1) { /* one char and one double: two of six elements */
		MPI_Type_create_struct(2, (int[]){ 1, 1 }, (MPI_Aint[]){ 0, 8 },
			(MPI_Datatype[]){ MPI_CHAR, MPI_DOUBLE }, &t);
		MPI_Type_commit(&t);
		MPI_Sendrecv(a, 1, t, right, 24, b, 2, item, left, 24, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, item, &n);
		MPI_Get_elements(&st, item, &e);
		CHECK_EQ(n, MPI_UNDEFINED);
		CHECK_EQ(e, 2);
		CHECK(b[0].c == (char)left && b[0].d == left * 3.25);
		MPI_Type_free(&t);
	}
	MPI_Type_free(&item);
}

static void empty(void)
{
	MPI_Datatype none, hole;
	MPI_Status st;
	int n = -1, guard = 5;

	MPI_Type_contiguous(0, MPI_INT, &none);
	MPI_Type_commit(&none);
	MPI_Type_create_resized(none, 0, 16, &hole);
	MPI_Type_commit(&hole);
	MPI_Sendrecv(NULL, 0, MPI_INT, right, 25, &guard, 1, MPI_INT, left, 25, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 25, MPI_INT, 0);
	MPI_Sendrecv(&guard, 3, none, right, 25, &guard, 7, hole, left, 25, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	CHECK_EQ(n, 0);
	MPI_Get_elements(&st, MPI_INT, &n);
	CHECK_EQ(n, 0);
	CHECK_EQ(guard, 5);
	MPI_Type_free(&none);
	MPI_Type_free(&hole);
}

/* Packed on one side, packed or typed on the other. */
static void packed(void)
{
	struct {
		int n;
		double x[7];
		char s[5];
	} a, b, c;
	char *buf;
	int size1, size2, size3, pos = 0, len;
	MPI_Datatype all, every2;
	MPI_Status st;

	memset(&b, 0, sizeof b);
	memset(&c, 0, sizeof c);
	a.n = 4 * chk_rank;
	for (int i = 0; i < 7; i++)
		a.x[i] = chk_rank + i / 16.0;
	memcpy(a.s, "pack", 5);
	a.s[3] = (char)('a' + chk_rank % 26);
	MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &every2);
	MPI_Type_commit(&every2);
	MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &size1);
	MPI_Pack_size(1, every2, MPI_COMM_WORLD, &size2);
	MPI_Pack_size(5, MPI_CHAR, MPI_COMM_WORLD, &size3);
	len = size1 + size2 + size3;
	buf = chk_alloc((size_t)len);
	MPI_Pack(&a.n, 1, MPI_INT, buf, len, &pos, MPI_COMM_WORLD);
	MPI_Pack(a.x, 1, every2, buf, len, &pos, MPI_COMM_WORLD);
	MPI_Pack(a.s, 5, MPI_CHAR, buf, len, &pos, MPI_COMM_WORLD);
	char *in = chk_alloc((size_t)len + 100);
	MPI_Sendrecv(
		buf, pos, MPI_PACKED, right, 26, in, len + 100, MPI_PACKED, left, 26, MPI_COMM_WORLD, &st);
	int count, at = 0;
	MPI_Get_count(&st, MPI_PACKED, &count);
	CHECK_EQ(count, pos);
	MPI_Unpack(in, count, &at, &b.n, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Unpack(in, count, &at, b.x, 1, every2, MPI_COMM_WORLD);
	MPI_Unpack(in, count, &at, b.s, 5, MPI_CHAR, MPI_COMM_WORLD);
	CHECK_EQ(at, count);
	CHECK_EQ(b.n, 4 * left);
	for (int i = 0; i < 7; i++)
		CHECK(b.x[i] == (i % 2 ? 0 : left + i / 16.0));
	CHECK_EQ(b.s[3], 'a' + left % 26);
	/* the same packed message received with its type */
	MPI_Type_create_struct(3, (int[]){ 1, 1, 5 },
		(MPI_Aint[]){ 0, (char *)c.x - (char *)&c, (char *)c.s - (char *)&c },
		(MPI_Datatype[]){ MPI_INT, every2, MPI_CHAR }, &all);
	MPI_Type_commit(&all);
	MPI_Sendrecv(buf, pos, MPI_PACKED, right, 27, &c, 1, all, left, 27, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 27, all, 1);
	CHECK(c.n == b.n && c.x[6] == b.x[6] && c.x[1] == 0 && !memcmp(c.s, b.s, 5));
	/* and the other way: typed on the sending side */
	MPI_Sendrecv(&a, 1, all, right, 28, in, len + 100, MPI_PACKED, left, 28, MPI_COMM_WORLD, &st);
	at = 0;
	MPI_Get_count(&st, MPI_PACKED, &count);
	memset(&b, 0, sizeof b);
	MPI_Unpack(in, count, &at, &b, 1, all, MPI_COMM_WORLD);
	CHECK(c.n == b.n && c.x[4] == b.x[4] && !memcmp(c.s, b.s, 5));
	MPI_Type_free(&all);
	MPI_Type_free(&every2);
	free(buf);
	free(in);
}

static void bottom(void)
{
	int a = chk_rank + 1;
	double x[2] = { chk_rank * 0.5, -1 };
	int ra = 0;
	double rx[2] = { 0, 0 };
	MPI_Aint addr[2], raddr[2];
	MPI_Datatype t, rt;
	MPI_Request q;
	MPI_Status st;

	MPI_Get_address(&a, &addr[0]);
	MPI_Get_address(x, &addr[1]);
	MPI_Get_address(&ra, &raddr[0]);
	MPI_Get_address(rx, &raddr[1]);
	MPI_Type_create_struct(2, (int[]){ 1, 2 }, addr, (MPI_Datatype[]){ MPI_INT, MPI_DOUBLE }, &t);
	MPI_Type_create_struct(2, (int[]){ 1, 2 }, raddr, (MPI_Datatype[]){ MPI_INT, MPI_DOUBLE }, &rt);
	MPI_Type_commit(&t);
	MPI_Type_commit(&rt);
	MPI_Irecv(MPI_BOTTOM, 1, rt, left, 29, MPI_COMM_WORLD, &q);
	MPI_Send(MPI_BOTTOM, 1, t, right, 29, MPI_COMM_WORLD);
	MPI_Wait(&q, &st);
	CHECK_STATUS(&st, left, 29, rt, 1);
	CHECK(ra == left + 1 && rx[0] == left * 0.5 && rx[1] == -1);
	MPI_Type_free(&t);
	MPI_Type_free(&rt);
}

/* Big strided messages: transpose of a matrix sent by rows and received by columns, 1 MB. */
static void transpose(void)
{
	enum { N = 360 };
	double *a = chk_alloc(sizeof(double) * N * N), *b = chk_alloc(sizeof(double) * N * N);
	MPI_Datatype column, columns;
	MPI_Request q[2];
	MPI_Status st;
	int bad = 0;

	for (int i = 0; i < N * N; i++)
		a[i] = chk_rank * 1e6 + i;
	MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
	MPI_Type_create_hvector(N, 1, sizeof(double), column, &columns);
	MPI_Type_commit(&columns);
	MPI_Type_free(&column);
	MPI_Irecv(b, 1, columns, left, 30, MPI_COMM_WORLD, &q[0]);
	MPI_Isend(a, N * N, MPI_DOUBLE, right, 30, MPI_COMM_WORLD, &q[1]);
	MPI_Wait(&q[0], &st);
	MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			bad += b[j * N + i] != left * 1e6 + i * N + j;
	CHECK_EQ(bad, 0);
	MPI_Sendrecv(a, 1, columns, right, 31, b, N * N, MPI_DOUBLE, left, 31, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 31, MPI_DOUBLE, N * N);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			bad += b[i * N + j] != left * 1e6 + j * N + i;
	CHECK_EQ(bad, 0);
	MPI_Type_free(&columns);
	free(a);
	free(b);
}

/* One structure of more than 16 MiB, ints and then doubles: without a gap, with one between them, and with the doubles in front in memory. */
static void large_struct(void)
{
	enum { N = 1500000 };
	char *out = chk_alloc(13 * N), *in = chk_alloc(13 * N);

	for (int way = 0; way < 3; way++) {
		MPI_Aint ints = way == 2 ? 8 * N : 0, doubles = way == 2 ? 0 : 4 * N + 64 * way;
		MPI_Datatype plain, t;
		MPI_Request q;
		MPI_Status st;
		int got, *i = (int *)(in + 8 * N);
		double *d = (double *)in;

		MPI_Type_create_struct(2, (int[]){ N, N }, (MPI_Aint[]){ ints, doubles },
			(MPI_Datatype[]){ MPI_INT, MPI_DOUBLE }, &t);
		MPI_Type_create_struct(2, (int[]){ N, N }, (MPI_Aint[]){ 8 * N, 0 },
			(MPI_Datatype[]){ MPI_INT, MPI_DOUBLE }, &plain);
		MPI_Type_commit(&t);
		MPI_Type_commit(&plain);
		for (int k = 0; k < N; k++) {
			((int *)(out + ints))[k] = k * 3 + chk_rank;
			((double *)(out + doubles))[k] = k * 0.5 + chk_rank;
		}
		MPI_Irecv(in, 1, plain, left, way, MPI_COMM_WORLD, &q);
		MPI_Send(out, 1, t, right, way, MPI_COMM_WORLD);
		MPI_Wait(&q, &st);
		MPI_Get_count(&st, plain, &got);
		CHECK_EQ(got, 1);
		got = 0;
		for (int k = 0; k < N; k++)
			got += i[k] != k * 3 + left || d[k] != k * 0.5 + left;
		CHECK_EQ(got, 0);
		MPI_Type_free(&t);
		MPI_Type_free(&plain);
	}
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	static struct layout l[16];

	chk_begin(&argc, &argv, "datatypes", 1);
	right = (chk_rank + 1) % chk_size;
	left = (chk_rank + chk_size - 1) % chk_size;
	int k = make_layouts(l);
	for (int i = 0; i < k; i++)
		for (int j = 0; j < k; j++)
			transfer(&l[i], 1 + (i + j) % 4, &l[j], 1 + (i + j) % 4, (i * k + j) % 3);
	partial(l, k);
	for (int i = 0; i < k; i++)
		MPI_Type_free(&l[i].type);
	pairs();
	mixed_struct();
	empty();
	packed();
	bottom();
	transpose();
	large_struct();
	return chk_end();
}
