/*
 * rma_ops.c - the operations on windows: put, get and the accumulates with every operator, derived types at both ends, from all
 * ranks at once; counters, requests, no data, much data, more operations than anybody can hold, errors.
 */
#include "check.h"

#include <stddef.h>

#define N     64
#define BIG   (3 << 18) /* ints */
#define BLOCK 1024
#define FLOOD 3000

static MPI_Win win;
static long *mem; /* N of each rank */

static void fill_mem(long v)
{
	for (int i = 0; i < N; i++)
		mem[i] = v;
	MPI_Win_fence(0, win);
}

static int next(void)
{
	return (chk_rank + 1) % chk_size;
}

static int prev(void)
{
	return (chk_rank + chk_size - 1) % chk_size;
}

static void operators(void)
{
	const struct {
		MPI_Op op;
		long start, want; /* after all ranks r have given 3 + r */
	} t[] = { { MPI_SUM, 10, 10 + 3L * chk_size + (long)chk_size * (chk_size - 1) / 2 },
		{ MPI_MAX, 1, 2 + chk_size }, { MPI_MIN, 100, 3 } };
	long mine = 3 + chk_rank, bits = 1L << chk_rank, old;

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		fill_mem(t[i].start);
		for (int r = 0; r < chk_size; r++)
			MPI_Accumulate(&mine, 1, MPI_LONG, r, 5, 1, MPI_LONG, t[i].op, win);
		MPI_Win_fence(0, win);
		CHECK_EQ(mem[5], t[i].want);
		CHECK_EQ(mem[4], t[i].start);
		MPI_Win_fence(0, win);
	}
	fill_mem(0);
	for (int r = 0; r < chk_size; r++) {
		MPI_Accumulate(&bits, 1, MPI_LONG, r, 0, 1, MPI_LONG, MPI_BOR, win);
		MPI_Accumulate(&bits, 1, MPI_LONG, r, 1, 1, MPI_LONG, MPI_BXOR, win);
		MPI_Accumulate(&bits, 1, MPI_LONG, r, 2, 1, MPI_LONG, MPI_LOR, win);
	}
	MPI_Win_fence(0, win);
	CHECK_EQ(mem[0], (1L << chk_size) - 1);
	CHECK_EQ(mem[1], (1L << chk_size) - 1);
	CHECK_EQ(mem[2], 1);
	fill_mem(7);
	old = -1;
	MPI_Get_accumulate(&mine, 1, MPI_LONG, &old, 1, MPI_LONG, next(), 3, 1, MPI_LONG, MPI_PROD, win);
	MPI_Accumulate(&mine, 1, MPI_LONG, next(), 4, 1, MPI_LONG, MPI_REPLACE, win);
	MPI_Win_fence(0, win);
	CHECK_EQ(old, 7);
	CHECK_EQ(mem[3], 7 * (3 + prev()));
	CHECK_EQ(mem[4], 3 + prev());
	MPI_Win_fence(0, win);
	MPI_Get_accumulate(NULL, 0, MPI_LONG, &old, 1, MPI_LONG, next(), 4, 1, MPI_LONG, MPI_NO_OP, win);
	MPI_Win_fence(0, win);
	CHECK_EQ(old, 3 + chk_rank);
}

/* One origin's accumulates on one place happen in the order called. */
static void order(void)
{
	long v, old;

	fill_mem(0);
	for (v = 1; v <= 50; v++) {
		MPI_Accumulate(&v, 1, MPI_LONG, next(), 9, 1, MPI_LONG, MPI_REPLACE, win);
		MPI_Get_accumulate(
			NULL, 0, MPI_LONG, &old, 1, MPI_LONG, next(), 9, 1, MPI_LONG, MPI_NO_OP, win);
		if (v % 10 == 0) {
			MPI_Win_fence(0, win);
			CHECK_EQ(old, v);
		}
	}
}

/* Every rank draws numbers from a counter: no number twice, none left out. */
static void draw(void)
{
	int *seen = chk_alloc((size_t)chk_size * 20 * sizeof *seen), bad = 0;
	long one = 1, got, total = 20L * chk_size;

	fill_mem(0);
	memset(seen, 0, (size_t)chk_size * 20 * sizeof *seen);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < 20; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 11, MPI_SUM, win);
		MPI_Win_flush(0, win);
		CHECK(got >= 0 && got < total);
		seen[got]++;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(MPI_IN_PLACE, seen, (int)total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < total; i++)
		bad += seen[i] != 1;
	CHECK_EQ(bad, 0);
	free(seen);
}

struct mixed {
	double d;
	int i;
	char c;
};

/* A type with gaps of several basic types, a subarray, pairs, a vector against another: data goes where it belongs, and nothing else. */
static void derived(void)
{
	int blens[3] = { 1, 1, 1 }, sizes[2] = { 8, 8 }, subs[2] = { 3, 4 }, at[2] = { 2, 1 }, a[64], b[12];
	MPI_Aint displs[3] = { offsetof(struct mixed, d), offsetof(struct mixed, i),
		offsetof(struct mixed, c) };
	MPI_Datatype types[3] = { MPI_DOUBLE, MPI_INT, MPI_CHAR }, s, mixed, sub, vec;
	struct mixed out[3], *in = (struct mixed *)(void *)mem;
	struct {
		double v;
		int at;
	} pair, *pairs = (void *)mem;
	int *ints = (int *)(void *)mem;

	MPI_Type_create_struct(3, blens, displs, types, &s);
	MPI_Type_create_resized(s, 0, sizeof(struct mixed), &mixed);
	MPI_Type_create_subarray(2, sizes, subs, at, MPI_ORDER_C, MPI_INT, &sub);
	MPI_Type_vector(4, 3, 5, MPI_INT, &vec);
	MPI_Type_commit(&mixed);
	MPI_Type_commit(&sub);
	MPI_Type_commit(&vec);
	MPI_Win_fence(0, win);
	memset(mem, 0x55, N * sizeof *mem);
	MPI_Win_fence(0, win);
	memset(out, 0, sizeof out);
	for (int i = 0; i < 3; i++)
		out[i] = (struct mixed){ chk_rank + i / 2., 100 * chk_rank + i, (char)('a' + i) };
	MPI_Put(out, 3, mixed, next(), 1, 3, mixed, win);
	MPI_Win_fence(0, win);
	in = (struct mixed *)(void *)(mem + 1);
	for (int i = 0; i < 3; i++) {
		CHECK(in[i].d == prev() + i / 2.);
		CHECK_EQ(in[i].i, 100 * prev() + i);
		CHECK_EQ(in[i].c, 'a' + i);
		CHECK_EQ(((unsigned char *)&in[i])[offsetof(struct mixed, c) + 1], 0x55);
	}
	/* subarray here from a vector there, by get; types freed while it runs */
	MPI_Win_fence(0, win);
	for (int i = 0; i < 2 * N; i++)
		ints[i] = 1000 * chk_rank + i;
	memset(a, 0, sizeof a);
	MPI_Win_fence(0, win);
	MPI_Get(a, 1, sub, next(), 1, 1, vec, win);
	MPI_Type_free(&sub);
	MPI_Win_fence(0, win);
	for (int i = 0; i < 64; i++) {
		int row = i / 8 - 2, col = i % 8 - 1, k = row * 4 + col;
		int inside = row >= 0 && row < 3 && col >= 0 && col < 4;

		CHECK_EQ(a[i], inside ? 1000 * next() + 2 + k / 3 * 5 + k % 3 : 0);
	}
	/* accumulate into a vector, twice its extent on */
	for (int i = 0; i < 12; i++)
		b[i] = i;
	MPI_Accumulate(b, 12, MPI_INT, next(), 1, 1, vec, MPI_SUM, win);
	MPI_Type_free(&vec);
	MPI_Win_fence(0, win);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(
			ints[2 + i], 1000 * chk_rank + 2 + i + (i % 5 < 3 && i < 18 ? i / 5 * 3 + i % 5 : 0));
	MPI_Win_fence(0, win);
	pairs[0].v = -1;
	pairs[0].at = -1;
	MPI_Win_fence(0, win);
	pair.v = chk_rank % 2 ? 5 : 4;
	pair.at = chk_rank;
	MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
	MPI_Win_fence(0, win);
	if (chk_rank == 0)
		CHECK(pairs[0].v == 5 && pairs[0].at == 1);
	MPI_Type_free(&s);
	MPI_Type_free(&mixed);
}

static void with_requests(void)
{
	MPI_Request q[4], extra;
	MPI_Status st[4];
	long out[2] = { 21, 22 }, in[2] = { 0, 0 }, old = 0;
	int flag, index, n, which[4], token = 3, got = 0;

	MPI_Win_fence(0, win);
	fill_mem(chk_rank);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_lock_all(0, win);
	MPI_Irecv(&got, 1, MPI_INT, prev(), 5, MPI_COMM_WORLD, &q[0]);
	MPI_Rput(out, 2, MPI_LONG, next(), 20, 2, MPI_LONG, win, &q[1]);
	MPI_Rget(in, 2, MPI_LONG, next(), 30, 2, MPI_LONG, win, &q[2]);
	MPI_Raccumulate(out, 1, MPI_LONG, next(), 40, 1, MPI_LONG, MPI_SUM, win, &q[3]);
	MPI_Send(&token, 1, MPI_INT, next(), 5, MPI_COMM_WORLD);
	MPI_Waitall(4, q, st);
	CHECK_EQ(got, 3);
	CHECK(in[0] == next() && in[1] == next());
	CHECK(q[1] == MPI_REQUEST_NULL && q[2] == MPI_REQUEST_NULL && q[3] == MPI_REQUEST_NULL);
	MPI_Rget_accumulate(
		out, 1, MPI_LONG, &old, 1, MPI_LONG, next(), 41, 1, MPI_LONG, MPI_SUM, win, &q[0]);
	MPI_Wait(&q[0], &st[0]);
	CHECK_EQ(old, next());
	MPI_Rget(in, 1, MPI_LONG, next(), 41, 1, MPI_LONG, win, &q[0]);
	MPI_Rget(in + 1, 1, MPI_LONG, next(), 30, 1, MPI_LONG, win, &q[1]);
	MPI_Waitany(2, q, &index, &st[0]);
	CHECK(index == 0 || index == 1);
	MPI_Waitsome(2, q, &n, which, st);
	CHECK_EQ(n, 1);
	CHECK(in[0] == next() + 21 && in[1] == next());
	MPI_Rget(in, 1, MPI_LONG, next(), 30, 1, MPI_LONG, win, &extra);
	for (flag = 0; !flag;)
		MPI_Test(&extra, &flag, &st[0]);
	MPI_Rput(out, 0, MPI_LONG, next(), 0, 0, MPI_LONG, win, &q[0]);
	MPI_Rget(in, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &q[1]);
	for (flag = 0; !flag;)
		MPI_Testall(2, q, &flag, st);
	MPI_Win_unlock_all(win);
	MPI_Win_fence(0, win);
	CHECK(mem[20] == 21 && mem[21] == 22 && mem[40] == chk_rank + 21 && mem[0] == chk_rank);
}

/* All ranks put much and get much at the same time, contiguous and with gaps. */
static void big(void)
{
	int *a = chk_alloc(BIG * sizeof *a), *b = chk_alloc(BIG * sizeof *b),
	    *back = chk_alloc(BIG * sizeof *back), bad = 0;
	MPI_Datatype every;
	MPI_Win w;

	MPI_Win_create(a, (MPI_Aint)BIG * (int)sizeof *a, sizeof *a, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	for (int i = 0; i < BIG; i++) {
		a[i] = 0;
		b[i] = chk_rank * 7 + i;
	}
	MPI_Win_fence(0, w);
	MPI_Put(b, BIG, MPI_INT, next(), 0, BIG, MPI_INT, w);
	MPI_Win_fence(0, w);
	for (int i = 0; i < BIG; i++)
		bad += a[i] != prev() * 7 + i;
	CHECK_EQ(bad, 0);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
	MPI_Win_lock_all(0, w); /* a fence of MPICH 4.0 does not always wait for so much */
	MPI_Get(back, BIG, MPI_INT, next(), 0, BIG, MPI_INT, w);
	MPI_Win_unlock_all(w);
	MPI_Win_fence(0, w);
	for (int i = 0; i < BIG; i++)
		bad += back[i] != chk_rank * 7 + i;
	CHECK_EQ(bad, 0);
	MPI_Type_vector(BIG / 4 / BLOCK, BLOCK, 4 * BLOCK, MPI_INT, &every);
	MPI_Type_commit(&every);
	MPI_Win_fence(0, w);
	MPI_Put(b, 1, every, next(), BLOCK, 1, every, w);
	MPI_Accumulate(b, BIG / 4, MPI_INT, next(), 2 * BLOCK, 1, every, MPI_SUM, w);
	MPI_Win_fence(0, w);
	for (int i = 0; i < BIG; i++) {
		int block = i / BLOCK, in = i % BLOCK, was = prev() * 7 + i;

		if (block % 4 == 1) /* what was BLOCK before in its buffer */
			was = prev() * 7 + i - BLOCK;
		else if (block % 4 == 2)
			was += prev() * 7 + block / 4 * BLOCK + in;
		bad += a[i] != was;
	}
	CHECK_EQ(bad, 0);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
	/* local completion: all of the answer is there */
	MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, w);
	for (int k = 0; k < 3; k++) {
		back[0] = back[BIG / 3 - 1] = -1;
		MPI_Get(back, BIG / 3, MPI_INT, next(), 0, BIG / 3, MPI_INT, w);
		MPI_Win_flush_local(next(), w);
		bad += back[0] != chk_rank * 7 || back[BIG / 3 - 1] == -1;
	}
	MPI_Win_unlock(next(), w);
	CHECK_EQ(bad, 0);
	MPI_Type_free(&every);
	MPI_Win_free(&w);
	free(a);
	free(b);
	free(back);
}

/* Many small operations at a target that does not look for a while. */
static void flood(void)
{
	long one = 1;

	MPI_Win_fence(0, win);
	fill_mem(0);
	if (chk_rank != 0)
		for (int i = 0; i < FLOOD; i++)
			MPI_Accumulate(&one, 1, MPI_LONG, 0, i % N, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	if (chk_rank == 0) {
		long sum = 0;

		for (int i = 0; i < N; i++)
			sum += mem[i];
		CHECK_EQ(sum, (long)FLOOD * (chk_size - 1));
	}
}

static void nothing(void)
{
	long v = 5;

	fill_mem(1);
	MPI_Put(NULL, 0, MPI_LONG, next(), 0, 0, MPI_LONG, win);
	MPI_Get(NULL, 0, MPI_LONG, next(), N, 0, MPI_LONG, win);
	MPI_Accumulate(NULL, 0, MPI_LONG, next(), 0, 0, MPI_LONG, MPI_SUM, win);
	MPI_Put(&v, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
	MPI_Get(&v, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
	MPI_Win_fence(0, win);
	CHECK_EQ(v, 5);
	CHECK_EQ(mem[0], 1);
}

static int handled;

static void handler(MPI_Win *w, int *code, ...)
{
	handled += *w == win && chk_class(*code) == MPI_ERR_RANK;
}

static void errors(void)
{
	MPI_Errhandler h;
	long v = 0;

	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	CHECK_EQ(chk_class(MPI_Put(&v, 1, MPI_LONG, chk_size, 0, 1, MPI_LONG, win)), MPI_ERR_RANK);
	CHECK_EQ(chk_class(MPI_Win_unlock(0, win)), MPI_ERR_RMA_SYNC);
	MPI_Win_create_errhandler(handler, &h);
	MPI_Win_set_errhandler(win, h);
	MPI_Put(&v, 1, MPI_LONG, chk_size, 0, 1, MPI_LONG, win);
	CHECK_EQ(handled, 1);
	MPI_Errhandler_free(&h);
#ifndef OPEN_MPI /* which does not look, natively */
	MPI_Win copy = win;

	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win);
	CHECK_EQ(chk_class(MPI_Win_free(&copy)), MPI_ERR_RMA_SYNC);
	MPI_Win_unlock(0, win);
#endif
	MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "rma_ops", 2);
	MPI_Win_allocate(N * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	operators();
	order();
	draw();
	derived();
	with_requests();
	nothing();
	flood();
	big();
	errors();
	MPI_Win_free(&win);
	return chk_end();
}
