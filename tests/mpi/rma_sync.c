/*
 * rma_sync.c - windows and how they are synchronised: fence, lock and unlock, lock_all and flush, post and start, in windows
 * created, allocated and dynamic; attributes, group, name; a target that computes; errors of synchronisation.
 */
#include "check.h"

static MPI_Win win;
static int *mem; /* chk_size ints of my window: slot r belongs to rank r */

static int value(int from, int to, int round)
{
	return round * 10000 + from * 100 + to;
}

static void clear(void)
{
	for (int i = 0; i < chk_size; i++)
		mem[i] = -1;
}

static void check_all(int round)
{
	for (int i = 0; i < chk_size; i++)
		CHECK_EQ(mem[i], value(i, chk_rank, round));
}

/* Everybody writes its slot at everybody, itself included. */
static void put_all(int *v, int round)
{
	for (int r = 0; r < chk_size; r++) {
		v[r] = value(chk_rank, r, round);
		MPI_Put(&v[r], 1, MPI_INT, r, chk_rank, 1, MPI_INT, win);
	}
}

static void fences(int *v)
{
	for (int round = 1; round <= 3; round++) {
		clear();
		MPI_Win_fence(round == 1 ? MPI_MODE_NOPRECEDE : 0, win);
		put_all(v, round);
		MPI_Win_fence(round == 3 ? MPI_MODE_NOSUCCEED : 0, win);
		check_all(round);
	}
}

static void locks(int *v)
{
	clear();
	MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < chk_size; r++) {
		MPI_Win_lock(r % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, r, 0, win);
		v[r] = value(chk_rank, r, 4);
		MPI_Put(&v[r], 1, MPI_INT, r, chk_rank, 1, MPI_INT, win);
		MPI_Win_unlock(r, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, chk_rank, 0, win);
	check_all(4);
	MPI_Win_unlock(chk_rank, win);
}

/* read, add one, write: right only if the lock excludes all others */
static void counter(int rounds)
{
	int sum = rounds * chk_size, got;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, chk_rank, 0, win);
	mem[0] = 0;
	MPI_Win_unlock(chk_rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < rounds; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, chk_size - 1, 0, win);
		MPI_Get(&got, 1, MPI_INT, chk_size - 1, 0, 1, MPI_INT, win);
		MPI_Win_flush(chk_size - 1, win);
		got++;
		MPI_Put(&got, 1, MPI_INT, chk_size - 1, 0, 1, MPI_INT, win);
		MPI_Win_unlock(chk_size - 1, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(
		MPI_LOCK_SHARED, chk_size - 1, 0, win); /* MPICH 4.0 hangs later after MPI_MODE_NOCHECK */
	MPI_Get(&got, 1, MPI_INT, chk_size - 1, 0, 1, MPI_INT, win);
	MPI_Win_unlock(chk_size - 1, win);
	CHECK_EQ(got, sum);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void flushes(int *v)
{
	int back;

	clear();
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	MPI_Barrier(MPI_COMM_WORLD);
	put_all(v, 2);
	MPI_Win_flush_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	check_all(2);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	put_all(v, 5);
	MPI_Win_flush_all(win);
	for (int r = 0; r < chk_size; r++) {
		back = -2;
		MPI_Get(&back, 1, MPI_INT, r, chk_rank, 1, MPI_INT, win);
		MPI_Win_flush_local(r, win);
		CHECK_EQ(back, value(chk_rank, r, 5));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	check_all(5);
	MPI_Barrier(MPI_COMM_WORLD);
	v[0] = value(chk_rank, (chk_rank + 1) % chk_size, 6);
	MPI_Put(&v[0], 1, MPI_INT, (chk_rank + 1) % chk_size, chk_rank, 1, MPI_INT, win);
	MPI_Win_flush_local_all(win);
	MPI_Win_flush((chk_rank + 1) % chk_size, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, chk_rank, 0, win);
	CHECK_EQ(mem[(chk_rank + chk_size - 1) % chk_size],
		value((chk_rank + chk_size - 1) % chk_size, chk_rank, 6));
	MPI_Win_unlock(chk_rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank is written by its left neighbour and reads from its right one. */
static void posts(int *v)
{
	MPI_Group all, left, right, both;
	int l = (chk_rank + chk_size - 1) % chk_size, r = (chk_rank + 1) % chk_size, flag = 0, seen = -1;

	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, 1, &l, &left);
	MPI_Group_incl(all, 1, &r, &right);
	MPI_Group_union(left, right, &both);
	for (int round = 7; round < 10; round++) {
		clear();
		mem[chk_rank] = value(chk_rank, chk_rank, round);
		MPI_Win_post(both, 0, win);
		MPI_Win_start(both, 0, win);
		v[0] = value(chk_rank, r, round);
		MPI_Put(v, 1, MPI_INT, r, chk_rank, 1, MPI_INT, win);
		MPI_Get(&seen, 1, MPI_INT, l, l, 1, MPI_INT, win);
		MPI_Win_complete(win);
		CHECK_EQ(seen, value(l, l, round));
		if (round == 8)
			for (flag = 0; !flag;)
				MPI_Win_test(win, &flag);
		else
			MPI_Win_wait(win);
		CHECK_EQ(mem[l], value(l, chk_rank, round));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Group_free(&all);
	MPI_Group_free(&left);
	MPI_Group_free(&right);
	MPI_Group_free(&both);
}

/* The target looks into MPI only now and then, and never at the window. */
static void busy_target(void)
{
	int last = chk_size - 1, go = 1, flag = 0, got;

	if (chk_rank == last) {
		for (int r = 0; r < last; r++) {
			for (flag = 0; !flag;) { /* MPICH 4.0 serves no window in MPI_Test of an Irecv */
				for (volatile int spin = 0; spin < 1000; spin++)
					;
				MPI_Iprobe(r, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
			}
			MPI_Recv(&go, 1, MPI_INT, r, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
	} else {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win);
		MPI_Put(&chk_rank, 1, MPI_INT, last, chk_rank, 1, MPI_INT, win);
		MPI_Win_flush(last, win);
		MPI_Get(&got, 1, MPI_INT, last, chk_rank, 1, MPI_INT, win);
		MPI_Win_unlock(last, win);
		CHECK_EQ(got, chk_rank);
		MPI_Send(&go, 1, MPI_INT, last, 77, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static int delete_called;

static int on_delete(MPI_Win w, int key, void *value, void *extra)
{
	(void)w;
	(void)key;
	(void)extra;
	delete_called += value == (void *)&delete_called;
	return MPI_SUCCESS;
}

static void attributes(void *base, MPI_Aint size, int unit, int flavor)
{
	MPI_Group g, w;
	int *ip, flag, key, same, len;
	MPI_Aint *ap;
	void *p;
	char name[MPI_MAX_OBJECT_NAME];

	CHECK(MPI_Win_get_attr(win, MPI_WIN_BASE, &p, &flag) == MPI_SUCCESS && flag && p == base);
	CHECK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &ap, &flag) == MPI_SUCCESS && flag && *ap == size);
	CHECK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &ip, &flag) == MPI_SUCCESS && flag && *ip == unit);
	CHECK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &ip, &flag) == MPI_SUCCESS && flag &&
		*ip == flavor);
	CHECK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &ip, &flag) == MPI_SUCCESS && flag &&
		(*ip == MPI_WIN_UNIFIED || *ip == MPI_WIN_SEPARATE));
	MPI_Win_set_name(win, "a window");
	MPI_Win_get_name(win, name, &len);
	CHECK(len == 8 && strcmp(name, "a window") == 0);
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL);
	MPI_Win_set_attr(win, key, &delete_called);
	CHECK(MPI_Win_get_attr(win, key, &p, &flag) == MPI_SUCCESS && flag && p == &delete_called);
	MPI_Win_free_keyval(&key);
	MPI_Win_get_group(win, &w);
	MPI_Comm_group(MPI_COMM_WORLD, &g);
	MPI_Group_compare(g, w, &same);
	CHECK_EQ(same, MPI_IDENT);
	MPI_Group_free(&g);
	MPI_Group_free(&w);
}

static void with_memory(int flavor)
{
	int *v = chk_alloc((size_t)chk_size * sizeof *v);
	int unit = sizeof(int), deleted = delete_called;
	MPI_Aint size = (MPI_Aint)(chk_size + 15) / 16 * 16 * unit; /* MPICH 4.0 misplaces odd sizes */

	if (flavor == MPI_WIN_FLAVOR_CREATE) {
		mem = chk_alloc((size_t)size);
		MPI_Win_create(mem, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	} else {
		MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	}
	attributes(mem, size, unit, flavor);
	fences(v);
	locks(v);
	counter(5);
	flushes(v);
	posts(v);
	busy_target();
	MPI_Win_free(&win);
	CHECK(win == MPI_WIN_NULL);
	CHECK_EQ(delete_called, deleted + 1);
	if (flavor == MPI_WIN_FLAVOR_CREATE)
		free(mem);
	free(v);
}

static void dynamic(void)
{
	int *two = chk_alloc(2 * sizeof *two), *one = chk_alloc(sizeof *one), to = (chk_rank + 1) % chk_size,
	    v;
	MPI_Aint *where = chk_alloc((size_t)chk_size * 2 * sizeof *where), mine[2];

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, two, 2 * sizeof *two);
	MPI_Win_attach(win, one, sizeof *one);
	two[0] = two[1] = *one = -1;
	MPI_Get_address(&two[1], &mine[0]);
	MPI_Get_address(one, &mine[1]);
	MPI_Allgather(mine, 2, MPI_AINT, where, 2, MPI_AINT, MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	v = 4000 + chk_rank;
	MPI_Put(&v, 1, MPI_INT, to, where[2 * to], 1, MPI_INT, win);
	MPI_Accumulate(&v, 1, MPI_INT, to, where[2 * to + 1], 1, MPI_INT, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	v = (chk_rank + chk_size - 1) % chk_size + 4000;
	CHECK_EQ(two[0], -1);
	CHECK_EQ(two[1], v);
	CHECK_EQ(*one, v - 1);
	MPI_Win_detach(win, one);
	MPI_Win_detach(win, two);
	MPI_Win_free(&win);
	free(one);
	free(two);
	free(where);
}

/*
 * Unequal parts, none at all at some ranks; several windows at a time; a part of the world. The halves make theirs one after
 * the other: Open MPI 4.1 names the file of a window by job and context id, which disjoint communicators share, and fails in
 * one of five runs when two of them are made at the same time on a node.
 */
static void shapes(void)
{
	int odd = chk_rank % 2, n = odd ? 0 : 10 + chk_rank, a[64], v = 9, got = 0, parts = chk_size > 3;
	int *b = chk_alloc(64);
	MPI_Comm half; /* not of one rank: Open MPI 4.1 refuses MPI_Win_create there */
	MPI_Win x, y;

	memset(a, 0, sizeof a);
	b[0] = 5;
	MPI_Comm_split(MPI_COMM_WORLD, parts ? odd : 0, -chk_rank, &half);
	MPI_Win_create(a, (MPI_Aint)n * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &x);
	for (int turn = 0; turn < 2; turn++) {
		if (turn == (parts && odd))
			MPI_Win_create(b, 64, 1, MPI_INFO_NULL, half, &y);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Win_fence(0, x);
	MPI_Win_fence(0, y);
	if (chk_rank == 1)
		MPI_Put(&v, 1, MPI_INT, 0, 9, 1, MPI_INT, x);
	MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, y);
	MPI_Win_fence(0, y);
	MPI_Win_fence(0, x);
	CHECK_EQ(got, 5);
	CHECK_EQ(a[9], chk_rank == 0 ? 9 : 0);
	MPI_Comm_free(&half);
	MPI_Win_free(&x);
	MPI_Win_free(&y);
	free(b);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "rma_sync", 2);
	with_memory(MPI_WIN_FLAVOR_CREATE);
	with_memory(MPI_WIN_FLAVOR_ALLOCATE);
	dynamic();
	shapes();
	return chk_end();
}
