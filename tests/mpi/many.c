/*
 * many.c - many communicators: A of them alive at the same time, all of which work, and B made and freed one after the other, of
 * several kinds. Then one more than this MPI has room for, if LIMIT is given: an error, after which everything still works.
 *
 * usage: many [A [B [LIMIT]]]
 */
#include "check.h"

static int works(MPI_Comm c)
{
	int n, r, sum = 0;

	MPI_Comm_size(c, &n);
	MPI_Comm_rank(c, &r);
	r++;
	MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, c);
	return sum == n * (n + 1) / 2;
}

static void make(MPI_Comm *c, int i)
{
	switch (i % 3) {
	case 0:
		MPI_Comm_dup(MPI_COMM_WORLD, c);
		break;
	case 1:
		MPI_Comm_split(MPI_COMM_WORLD, (chk_rank + i) % 2, -chk_rank, c);
		break;
	default:
		MPI_Cart_create(MPI_COMM_WORLD, 1, &chk_size, &chk_size, 0, c);
	}
}

int main(int argc, char **argv)
{
	long alive, cycles, limit, n = 0, working = 0;
	MPI_Comm *c;
	int least, mine;

	chk_begin(&argc, &argv, "many", 2);
	alive = chk_arg(argc, argv, 1, 150);
	cycles = chk_arg(argc, argv, 2, 100);
	limit = chk_arg(argc, argv, 3, 0);
	c = chk_alloc((size_t)(alive + limit) * sizeof *c);
	for (int i = 0; i < alive; i++)
		make(&c[i], i);
	for (int i = 0; i < alive; i++)
		working += works(c[i]);
	CHECK_EQ(working, alive);
	for (int i = 0; i < alive; i++)
		MPI_Comm_free(&c[i]);
	for (int i = 0; i < cycles; i++) {
		make(&c[0], i);
		working += works(c[0]);
		MPI_Comm_free(&c[0]);
	}
	CHECK_EQ(working, alive + cycles);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	while (n < limit && MPI_Comm_dup(MPI_COMM_WORLD, &c[n]) == MPI_SUCCESS)
		n++;
	mine = (int)n;
	MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	CHECK_EQ(least, n); /* it ends at all ranks at once */
	while (n > 0)
		MPI_Comm_free(&c[--n]);
	MPI_Comm_dup(MPI_COMM_WORLD, &c[0]);
	CHECK(works(c[0]));
	MPI_Comm_free(&c[0]);
	free(c);
	return chk_end();
}
