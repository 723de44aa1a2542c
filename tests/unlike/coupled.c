/*
 * coupled.c - two small applications over the world, and the answer that one machine gives alone: the heat equation on a plate cut into
 * strips (halos, columns as derived types, a reduction in each step), and all shortest paths of a graph (ASP: a broadcast for each row).
 * The plate's numbers are such that no step rounds, so all machines agree in every bit.
 */
#include "check.h"

#define ROWS  48 /* of the plate; a rank has about ROWS / chk_size of them */
#define COLS  40
#define STEPS 18 /* each adds two bits: 2 * 18 + 10 < 53 */
#define NODES 60

static int first(int r, int n)
{
	return r * n / chk_size;
}

static double start(int i, int j)
{
	return i == 0 || i == ROWS - 1 ? 1000 : j == 0 || j == COLS - 1 ? 24 : (i * 7 + j * 3) % 100;
}

/* One step of rows [from, to) of a plate whose row `base` is a[0]; the edge stays. The largest change. */
static double step(double (*a)[COLS], double (*b)[COLS], int base, int from, int to)
{
	double most = 0;

	for (int i = from; i < to; i++)
		for (int j = 0; j < COLS; j++) {
			int k = i - base, edge = i == 0 || i == ROWS - 1 || j == 0 || j == COLS - 1;
			double change;

			b[k][j] = edge ? a[k][j]
				       : (a[k - 1][j] + a[k + 1][j] + a[k][j - 1] + a[k][j + 1]) * 0.25;
			change = b[k][j] > a[k][j] ? b[k][j] - a[k][j] : a[k][j] - b[k][j];
			most = change > most ? change : most;
		}
	return most;
}

static void heat(void)
{
	static double alone[2][ROWS][COLS], strip[2][ROWS + 2][COLS], whole[ROWS][COLS];
	int from = first(chk_rank, ROWS), to = first(chk_rank + 1, ROWS), *counts, *displs, bad = 0;
	int up = chk_rank > 0 ? chk_rank - 1 : MPI_PROC_NULL,
	    down = chk_rank < chk_size - 1 ? chk_rank + 1 : MPI_PROC_NULL;
	MPI_Datatype half; /* every second number of a row: two messages for each halo */

	MPI_Type_vector(COLS / 2, 1, 2, MPI_DOUBLE, &half);
	MPI_Type_commit(&half);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLS; j++)
			alone[0][i][j] = start(i, j);
	for (int i = from; i < to; i++)
		memcpy(strip[0][i - from + 1], alone[0][i], sizeof *alone[0]);
	for (int t = 0; t < STEPS; t++) {
		double(*a)[COLS] = strip[t % 2], (*b)[COLS] = strip[(t + 1) % 2], most, all, want;

		for (int odd = 0; odd < 2; odd++) {
			MPI_Sendrecv(&a[1][odd], 1, half, up, odd, &a[to - from + 1][odd], 1, half, down, odd,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Sendrecv(&a[to - from][odd], 1, half, down, odd, &a[0][odd], 1, half, up, odd,
				MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		most = step(a, b, from - 1, from, to);
		MPI_Allreduce(&most, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		want = step(alone[t % 2], alone[(t + 1) % 2], 0, 0, ROWS);
		CHECK(all == want);
	}
	counts = malloc((size_t)chk_size * sizeof *counts);
	displs = malloc((size_t)chk_size * sizeof *displs);
	for (int r = 0; r < chk_size; r++) {
		displs[r] = first(r, ROWS) * COLS;
		counts[r] = first(r + 1, ROWS) * COLS - displs[r];
	}
	MPI_Allgatherv(strip[STEPS % 2][1], (to - from) * COLS, MPI_DOUBLE, whole, counts, displs, MPI_DOUBLE,
		MPI_COMM_WORLD);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLS; j++)
			bad += whole[i][j] != alone[STEPS % 2][i][j];
	CHECK_EQ(bad, 0);
	MPI_Type_free(&half);
	free(counts);
	free(displs);
}

static void shorten(long (*d)[NODES], const long *row, int k, int from, int to)
{
	for (int i = from; i < to; i++)
		for (int j = 0; j < NODES; j++)
			if (d[i][k] + row[j] < d[i][j])
				d[i][j] = d[i][k] + row[j];
}

static void asp(void)
{
	static long d[NODES][NODES], alone[NODES][NODES];
	int from = first(chk_rank, NODES), to = first(chk_rank + 1, NODES), bad = 0;
	long sum = 0, all, want = 0;

	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < NODES; j++)
			d[i][j] = alone[i][j] =
				i == j ? 0 : 1 + (long)(chk_mix((uint64_t)i, (uint64_t)j) % 1000);
	for (int k = 0; k < NODES; k++) {
		int owner = 0;
		long row[NODES];

		while (first(owner + 1, NODES) <= k)
			owner++;
		memcpy(row, d[k], sizeof row);
		MPI_Bcast(row, NODES, MPI_LONG, owner, MPI_COMM_WORLD);
		shorten(d, row, k, from, to);
		memcpy(row, alone[k], sizeof row);
		shorten(alone, row, k, 0, NODES);
	}
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < NODES; j++) {
			want += alone[i][j];
			if (i >= from && i < to) {
				sum += d[i][j];
				bad += d[i][j] != alone[i][j];
			}
		}
	MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	CHECK_EQ(bad, 0);
	CHECK_EQ(all, want);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "coupled", 2);
	heat();
	asp();
	return chk_end();
}
