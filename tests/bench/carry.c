/* carry.c: the exchanges of an iterative program between two ranks, timed: in each step both send the same message under TAGS tags, as to so
 * many neighbours, and wait for the other's. The messages are made before. Prints seconds.
 *
 * usage: carry SERIES [STEPS]      number in series.h
 */
#include <mpi.h>

#include "series.h"

enum { TAGS = 8 };

int main(int argc, char **argv)
{
	const struct series *s = &series[argc > 1 ? atoi(argv[1]) % SERIES : 0];
	int steps = argc > 2 && atoi(argv[2]) < s->steps ? atoi(argv[2]) : s->steps, rank, wrong = 0;
	uint8_t *all = malloc((size_t)steps * s->len), *got = malloc(TAGS * s->len);
	MPI_Datatype type = s->elem == 16 ? MPI_C_DOUBLE_COMPLEX : s->elem == 8 ? MPI_DOUBLE : MPI_BYTE;
	double t;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	s->begin();
	for (int i = 0; i < steps; i++)
		s->step(all + (size_t)i * s->len);
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (int i = 0; i < steps; i++) {
		MPI_Request q[2 * TAGS];
		int n = (int)(s->len / s->elem);

		for (int k = 0; k < TAGS; k++) {
			MPI_Irecv(got + (size_t)k * s->len, n, type, 1 - rank, k, MPI_COMM_WORLD, &q[k]);
			MPI_Isend(
				all + (size_t)i * s->len, n, type, 1 - rank, k, MPI_COMM_WORLD, &q[TAGS + k]);
		}
		MPI_Waitall(2 * TAGS, q, MPI_STATUSES_IGNORE);
		for (int k = 0; k < TAGS; k++)
			wrong += memcmp(got + (size_t)k * s->len, all + (size_t)i * s->len, s->len) != 0;
	}
	t = MPI_Wtime() - t;
	if (rank == 0)
		printf("%s: %d steps of %d x %zu bytes in %.3f s, %d wrong\n", s->name, steps, TAGS, s->len,
			t, wrong);
	MPI_Finalize();
	free(all);
	free(got);
	return wrong != 0;
}
