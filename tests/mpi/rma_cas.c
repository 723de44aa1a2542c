/*
 * rma_cas.c - compare_and_swap: a lock made of it lets one rank at a time read and write; and it swaps only if the old value is there.
 * Open MPI 4.1.4 dies of a segmentation fault in it.
 */
#include "check.h"

/* A lock made of compare_and_swap protects a read and a write. */
static void mutex(MPI_Win win, long *mem)
{
	long me = chk_rank + 1, none = 0, was, v;

	MPI_Win_fence(0, win);
	mem[0] = mem[1] = 0;
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < 5; i++) {
		do {
			MPI_Compare_and_swap(&me, &none, &was, MPI_LONG, 1, 0, win);
			MPI_Win_flush(1, win);
		} while (was != 0);
		MPI_Get(&v, 1, MPI_LONG, 1, 1, 1, MPI_LONG, win);
		MPI_Win_flush(1, win);
		v++;
		MPI_Put(&v, 1, MPI_LONG, 1, 1, 1, MPI_LONG, win);
		MPI_Win_flush(1, win);
		MPI_Compare_and_swap(&none, &me, &was, MPI_LONG, 1, 0, win);
		MPI_Win_flush(1, win);
		CHECK_EQ(was, me);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_fence(0, win);
	if (chk_rank == 1)
		CHECK_EQ(mem[1], 5 * chk_size);
}

static void once(MPI_Win win, long *mem)
{
	int want = 7, to = 8, other = 9, was = -1, *ints = (int *)(void *)(mem + 3),
	    next = (chk_rank + 1) % chk_size;

	MPI_Win_fence(0, win);
	ints[0] = 7;
	ints[1] = 70;
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
	MPI_Compare_and_swap(&to, &want, &was, MPI_INT, next, 3, win);
	MPI_Win_unlock(next, win);
	CHECK_EQ(was, 7);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
	MPI_Compare_and_swap(&other, &want, &was, MPI_INT, next, 3, win);
	MPI_Win_unlock(next, win);
	CHECK_EQ(was, 8);
	MPI_Win_fence(0, win);
	CHECK_EQ(ints[0], 8);
	CHECK_EQ(ints[1], 70);
}

/* What has no bits to compare is no operand, nor is a datatype of the program's own. */
static void types(MPI_Win win)
{
	char a[16] = { 0 }, b[16] = { 0 }, was[16];
	MPI_Datatype own;

	MPI_Type_contiguous(4, MPI_BYTE, &own);
	MPI_Type_commit(&own);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_fence(0, win);
	CHECK_EQ(chk_class(MPI_Compare_and_swap(a, b, was, MPI_FLOAT, 0, 5, win)), MPI_ERR_TYPE);
	CHECK_EQ(chk_class(MPI_Compare_and_swap(a, b, was, MPI_DOUBLE, 0, 5, win)), MPI_ERR_TYPE);
	CHECK_EQ(chk_class(MPI_Compare_and_swap(a, b, was, own, 0, 5, win)), MPI_ERR_TYPE);
	CHECK_EQ(chk_class(MPI_Compare_and_swap(a, b, was, MPI_C_BOOL, 0, 5, win)), MPI_SUCCESS);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
	MPI_Type_free(&own);
}

int main(int argc, char **argv)
{
	long *mem;
	MPI_Win win;

	chk_begin(&argc, &argv, "rma_cas", 2);
	MPI_Win_allocate(8 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	mutex(win, mem);
	once(win, mem);
	types(win);
	MPI_Win_free(&win);
	return chk_end();
}
