/*
 * rows - planes of an array of doubles, described by vectors, subarrays and contiguous types of contiguous types, arrive as they were
 * sent, on MPI_COMM_WORLD bit by bit, on a communicator named "rows" within 1e-3. Each rank exchanges with the one half the
 * world away.
 */
#include "check.h"

#include <math.h>

enum { X = 64, Y = 60, Z = 16 };

static double field[Z][Y][X], got[Z][Y][X];

/* The kinds of types: each with `count` of them, numbers in all. */
static MPI_Datatype type_of(int kind, int *count, int *numbers)
{
	static const int sizes[] = { Z, Y, X }, part[] = { Z, Y - 10, X - 8 }, from[] = { 0, 3, 2 };
	MPI_Datatype row, t;

	*count = 1;
	switch (kind) {
	case 0: /* planes of one x: a number each */
		MPI_Type_vector(Y * Z, 1, X, MPI_DOUBLE, &t);
		*numbers = Y * Z;
		break;
	case 1: /* blocks of 24 */
		MPI_Type_vector(Y * Z, 24, X, MPI_DOUBLE, &t);
		*numbers = 24 * Y * Z;
		break;
	case 2:
		MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_C, MPI_DOUBLE, &t);
		*numbers = part[0] * part[1] * part[2];
		break;
	default:
		MPI_Type_contiguous(X, MPI_DOUBLE, &row);
		MPI_Type_contiguous(Y, row, &t);
		MPI_Type_free(&row);
		*count = Z;
		*numbers = X * Y * Z;
	}
	MPI_Type_commit(&t);
	return t;
}

static void fill(int step)
{
	for (int z = 0; z < Z; z++)
		for (int y = 0; y < Y; y++)
			for (int x = 0; x < X; x++) {
				field[z][y][x] = 300 + 20 * sin(0.1 * x + 0.01 * step) * cos(0.13 * y) +
						 0.1 * z +
						 1e-9 * (double)(chk_mix(3, (uint64_t)(x * Y + y)) % 1000);
				got[z][y][x] = -1;
			}
}

/* The largest difference of what was received; got is -1 elsewhere. */
static double exchange(MPI_Comm comm, int peer, int kind)
{
	int count, numbers, moved = 0;
	MPI_Datatype t = type_of(kind, &count, &numbers);
	double most = 0;

	MPI_Sendrecv(field, count, t, peer, kind, got, count, t, peer, kind, comm, MPI_STATUS_IGNORE);
	MPI_Type_free(&t);
	for (int i = 0; i < X * Y * Z; i++)
		if ((&got[0][0][0])[i] != -1) {
			most = fmax(most, fabs((&got[0][0][0])[i] - (&field[0][0][0])[i]));
			moved++;
		}
	CHECK_EQ(moved, numbers);
	return most;
}

int main(int argc, char **argv)
{
	MPI_Comm rows;
	int peer;

	chk_begin(&argc, &argv, "rows", 2);
	peer = chk_size % 2 && chk_rank == chk_size - 1 ? MPI_PROC_NULL
							: (chk_rank + chk_size / 2) % (chk_size / 2 * 2);
	MPI_Comm_dup(MPI_COMM_WORLD, &rows);
	MPI_Comm_set_name(rows, "rows");
	for (int step = 0; step < 6 && peer != MPI_PROC_NULL; step++)
		for (int kind = 0; kind < 4; kind++) {
			fill(step);
			CHECK(exchange(rows, peer, kind) <= 1e-3);
			fill(step);
			CHECK(exchange(MPI_COMM_WORLD, peer, kind) == 0);
		}
	MPI_Comm_free(&rows);
	return chk_end();
}
