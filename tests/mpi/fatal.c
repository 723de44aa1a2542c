/*
 * fatal - one fatal error, for who reads what is printed: argument 1 says which. Rank 0 makes the mistake, the others wait.
 * Right if the job ends with a status that is not 0; the line "fatal: still here" must not be seen.
 */
#include "check.h"

/* Messages from the last rank: one with 4 ints, the same to MPI_Waitall. */
static void truncated(int which)
{
	int x[4] = { 0 }, last = chk_size - 1;
	MPI_Request q[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };

	if (chk_rank == last)
		MPI_Send(x, 4, MPI_INT, 0, 7, MPI_COMM_WORLD);
	if (chk_rank != 0)
		return;
	if (which == 0)
		MPI_Recv(x, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (which == 1)
		MPI_Recv(x, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Irecv(x, 2, MPI_INT, last, 7, MPI_COMM_WORLD, &q[1]);
	if (which == 2)
		MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	else
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
}

static void arguments(int which)
{
	int x[4] = { 0 }, *counts = calloc((size_t)chk_size, sizeof(int)), dims[2] = { 2, -3 },
	    flat[2] = { 0, 0 };
	MPI_Comm c;

	counts[1] = -5;
	switch (which) {
	case 10:
		MPI_Send(x, 1, MPI_INT, 999, 0, MPI_COMM_WORLD);
		break;
	case 11:
		MPI_Recv(x, 1, MPI_INT, 0, -44, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		break;
	case 12:
		MPI_Irecv(x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &(MPI_Request){ 0 });
		break;
	case 13:
		MPI_Bcast(x, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
		break;
	case 14:
		MPI_Reduce(x, x + 1, 1, MPI_INT, MPI_SUM, 77, MPI_COMM_WORLD);
		break;
	case 15:
		MPI_Allgatherv(x, 0, MPI_INT, x, counts, counts, MPI_INT, MPI_COMM_WORLD);
		break;
	case 16:
		MPI_Cart_create(MPI_COMM_WORLD, 2, dims, flat, 0, &c);
		break;
	default:
		MPI_Cart_rank(MPI_COMM_WORLD, dims, x);
	}
}

/* A count that is not the same everywhere. */
static void unequal(int which)
{
	char name[16 * MPI_MAX_PROCESSOR_NAME] = "";

	if (which == 20)
		MPI_Gather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, name + MPI_MAX_PROCESSOR_NAME,
			MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
	else
		MPI_Allgather(
			MPI_IN_PLACE, 0, MPI_CHAR, name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int which, b;

	chk_begin(&argc, &argv, "fatal", 2);
	which = (int)chk_arg(argc, argv, 1, 0);
	if (which < 10)
		truncated(which);
	else if (which < 20 && chk_rank == 0)
		arguments(which);
	else if (which >= 20)
		unequal(which);
	MPI_Recv(&b, 1, MPI_INT, MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("fatal: still here\n");
	return chk_end();
}
