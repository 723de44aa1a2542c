/*
 * rma_typed.c - one-sided operations by value: whatever the machines, a number that is put, got or accumulated is this number at the other
 * end, and target datatypes and displacements mean elements of the target.
 */
#include "typed.h"

#include <stddef.h>

#define ROOM (1 << 20)
#define BIG  60000

static char *room; /* ROOM bytes of each rank; displacements are bytes */
static MPI_Win bytes;

static int next(void)
{
	return (chk_rank + 1) % chk_size;
}

static int prev(void)
{
	return (chk_rank + chk_size - 1) % chk_size;
}

/* What the last operations have brought has been looked at by then. */
static void clear(int c)
{
	memset(room, c, ROOM);
	MPI_Win_fence(0, bytes);
}

/* Is the byte behind what was put still what it was? */
static int spared(size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		if (room[i] != 0x5a)
			return 0;
	return 1;
}

static void named(int count)
{
	for (int b = 0; b < nbasic; b++) {
		MPI_Aint ex = extent_of(basic[b].type);
		char *out = calloc((size_t)count, (size_t)ex), *in = calloc((size_t)count, (size_t)ex);
		int bad = 0;

		for (int i = 0; i < count; i++)
			basic[b].put(out + i * ex, number(chk_rank, i));
		clear(0x5a);
		MPI_Put(out, count, basic[b].type, next(), 0, count, basic[b].type, bytes);
		MPI_Win_fence(0, bytes);
		MPI_Get(in, count, basic[b].type, next(), 0, count, basic[b].type, bytes);
		MPI_Win_fence(0, bytes);
		for (int i = 0; i < count; i++) {
			bad += !basic[b].good(room + i * ex, number(prev(), i));
			bad += !basic[b].good(in + i * ex, number(chk_rank, i));
		}
		if (bad)
			chk_report(__FILE__, __LINE__, "%s: %d of %d wrong", basic[b].name, bad, 2 * count);
		CHECK(bad == 0 && spared((size_t)(count * ex), 64));
		free(out);
		free(in);
	}
}

static void derived(unsigned seed, int depth, int count)
{
	struct made *m = malloc(sizeof *m);
	MPI_Aint lb, size;
	char *out, *in;
	int bad;

	state = seed;
	make(m, depth, 1);
	MPI_Type_commit(&m->type);
	MPI_Type_get_true_extent(m->type, &lb, &size);
	size += lb + count * extent_of(m->type);
	CHECK(size < ROOM);
	out = calloc(1, (size_t)size);
	in = calloc(1, (size_t)size);
	fill(m, out, count, chk_rank);
	clear(0x5a);
	MPI_Put(out, count, m->type, next(), 0, count, m->type, bytes);
	MPI_Win_fence(0, bytes);
	MPI_Get(in, count, m->type, next(), 0, count, m->type, bytes);
	MPI_Win_fence(0, bytes);
	bad = wrong(m, room, count, prev()) + wrong(m, in, count, chk_rank);
	if (bad)
		chk_report(__FILE__, __LINE__, "seed %u, depth %d: %d of %d wrong", seed, depth, bad,
			2 * count * m->n);
	CHECK(bad == 0 && spared((size_t)size, 64));
	MPI_Type_free(&m->type);
	free(out);
	free(in);
	free(m);
}

/* A column of the target, told in its own elements, against numbers next to each other here. */
static void columns(MPI_Win win, long *mem)
{
	long out[6], in[6] = { 0 };
	MPI_Datatype column;

	MPI_Type_vector(3, 2, 4, MPI_LONG, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < 6; i++)
		out[i] = -number(chk_rank, i);
	for (int i = 0; i < 16; i++)
		mem[i] = -1;
	MPI_Win_fence(0, win);
	MPI_Put(out, 6, MPI_LONG, next(), 2, 1, column, win);
	MPI_Win_fence(0, win);
	MPI_Get(in, 6, MPI_LONG, next(), 2, 1, column, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < 16; i++) {
		int k = i - 2, hit = k >= 0 && k < 10 && k % 4 < 2;

		CHECK_EQ(mem[i], hit ? -number(prev(), k / 4 * 2 + k % 4) : -1);
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQ(in[i], out[i]);
	MPI_Type_free(&column);
}

#define SUMS(X)                                                                                              \
	X(MPI_INT, int)                                                                                      \
	X(MPI_LONG, long)                                                                                    \
	X(MPI_LONG_LONG, long long)                                                                          \
	X(MPI_FLOAT, float)                                                                                  \
	X(MPI_DOUBLE, double) X(MPI_LONG_DOUBLE, long double) X(MPI_UNSIGNED_LONG, unsigned long)            \
		X(MPI_SHORT, short)

/* Every rank adds to every rank, and gets what was there before from one. */
static void accumulated(void)
{
#define ONE(t, ctype)                                                                                        \
	{                                                                                                    \
		ctype mine[3] = { (ctype)(chk_rank + 1), 2, (ctype)(chk_rank + 3) }, old[3] = { 0 },         \
		      *mem = (ctype *)(void *)room;                                                          \
		int n = chk_size;                                                                            \
                                                                                                             \
		clear(0);                                                                                    \
		for (int r = 0; r < n; r++)                                                                  \
			MPI_Accumulate(mine, 3, t, r, 0, 3, t, MPI_SUM, bytes);                              \
		MPI_Win_fence(0, bytes);                                                                     \
		MPI_Get_accumulate(mine, 3, t, old, 3, t, next(), 0, 3, t, MPI_MAX, bytes);                  \
		MPI_Win_fence(0, bytes);                                                                     \
		CHECK_EQ((long long)old[0], n *(n + 1) / 2);                                                 \
		CHECK_EQ((long long)old[1], 2 * n);                                                          \
		CHECK_EQ((long long)mem[2], 3 * n + n * (n - 1) / 2);                                        \
		MPI_Win_fence(0, bytes);                                                                     \
	}
	SUMS(ONE)
#undef ONE
}

static void places(void)
{
	struct double_int mine = { (chk_rank * 7 + 3) % 11 / 2.0, chk_rank }, best = mine,
			  *mem = (struct double_int *)(void *)room;
	struct long_int least = { -100 - chk_rank, chk_rank };

	clear(0);
	mem[0].v = -1;
	mem[0].i = 99;
	((struct long_int *)(void *)(room + 64))->v = 5;
	MPI_Win_fence(0, bytes);
	for (int r = 0; r < chk_size; r++) {
		struct double_int of = { (r * 7 + 3) % 11 / 2.0, r };

		best = of.v > best.v || (of.v == best.v && of.i < best.i) ? of : best;
		MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, r, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, bytes);
		MPI_Accumulate(&least, 1, MPI_LONG_INT, r, 64, 1, MPI_LONG_INT, MPI_MINLOC, bytes);
	}
	MPI_Win_fence(0, bytes);
	CHECK(mem[0].v == best.v && mem[0].i == best.i);
	CHECK_EQ(((struct long_int *)(void *)(room + 64))->v, -100 - (chk_size - 1));
	CHECK_EQ(((struct long_int *)(void *)(room + 64))->i, chk_size - 1);
	MPI_Win_fence(0, bytes);
}

/* Much data, in one piece and in columns; with requests. */
static void much(MPI_Win win, long *mem)
{
	long *out = malloc(BIG * sizeof *out), *in = calloc(BIG, sizeof *in), bad = 0;
	MPI_Datatype odd;
	MPI_Request req;

	MPI_Type_vector(BIG / 2, 1, 2, MPI_LONG, &odd);
	MPI_Type_commit(&odd);
	for (int i = 0; i < BIG; i++)
		out[i] = number(chk_rank, i) * 65537l;
	for (int i = 0; i < BIG; i++)
		mem[i] = 1;
	MPI_Win_fence(0, win);
	MPI_Put(out, BIG, MPI_LONG, next(), 0, BIG, MPI_LONG, win);
	MPI_Win_fence(0, win);
	MPI_Put(out, BIG / 2, MPI_LONG, next(), 1, 1, odd, win);
	MPI_Win_fence(0, win);
	MPI_Accumulate(out, BIG, MPI_LONG, next(), 0, BIG, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	for (int i = 0; i < BIG; i++)
		bad += mem[i] != (number(prev(), i % 2 ? i / 2 : i) + number(prev(), i)) * 65537l;
	CHECK_EQ(bad, 0);
	MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win);
	MPI_Rget(in, 1, odd, next(), 1, BIG / 2, MPI_LONG, win, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Win_unlock(next(), win);
	for (int i = 0; i < BIG / 2; i++)
		bad += in[2 * i] != out[i + 1] + out[(i + 1) % 2 ? (i + 1) / 2 : i + 1];
	CHECK_EQ(bad, 0);
	MPI_Type_free(&odd);
	free(out);
	free(in);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	MPI_Win win;
	long *mem;

	chk_begin(&argc, &argv, "rma_typed", 2);
	basics();
	MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &room, &bytes);
	mem = chk_alloc(BIG * sizeof *mem);
	MPI_Win_create(mem, (MPI_Aint)(BIG * sizeof *mem), sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	named(50);
	for (unsigned seed = 1; seed <= 12; seed++)
		derived(seed, 1 + (int)(seed % 2), seed % 3 ? 1 : 5);
	columns(win, mem);
	accumulated();
	places();
	much(win, mem);
	MPI_Win_free(&win);
	MPI_Win_free(&bytes);
	free(mem);
	return chk_end();
}
