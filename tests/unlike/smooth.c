/*
 * smooth.c - an iterative program whose numbers change smoothly in time, so that links predict them (with weights, too, as what oscillates is foretold
 * from several earlier messages): doubles, floats, ints and longs from each rank to each other one, every value checked. Numbers are made
 * of whole ones, so that all machines have the same.
 */
#include "check.h"

#define N     2000
#define STEPS 24

/* Number i of step t: a curve in i that oscillates in t with a slow second frequency, in 2^-20; and noise in the lowest bits. */
static int number(int r, int t, int i)
{
	static const int wave[16] = { 0, 383, 707, 924, 1000, 924, 707, 383, 0, -383, -707, -924, -1000, -924,
		-707, -383 };
	int slow = wave[t % 16] * 2 + wave[(t * 3 + 4) % 16];

	return (i * (N - i) / 64 + 1000 * r) * 64 + slow * (i % 97 + 40) +
	       (int)(chk_mix((uint64_t)t, (uint64_t)i) % 8);
}

#define KINDS(X) X(double, MPI_DOUBLE, 1) X(float, MPI_FLOAT, 2) X(int, MPI_INT, 3) X(long, MPI_LONG, 4)

#define EXCHANGE(ctype, type, tag)                                                                           \
	static void exchange_##ctype(int t, int to, int from)                                                \
	{                                                                                                    \
		static ctype out[N], in[N];                                                                  \
		int bad = 0;                                                                                 \
                                                                                                             \
		for (int i = 0; i < N; i++)                                                                  \
			out[i] = (ctype)number(chk_rank, t, i) / ((ctype)0.5 > 0 ? 1048576 : 1);             \
		memset(in, 0, sizeof in);                                                                    \
		MPI_Sendrecv(                                                                                \
			out, N, type, to, tag, in, N, type, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);   \
		for (int i = 0; i < N; i++)                                                                  \
			bad += in[i] != (ctype)number(from, t, i) / ((ctype)0.5 > 0 ? 1048576 : 1);          \
		CHECK_EQ(bad, 0);                                                                            \
	}
KINDS(EXCHANGE)

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "smooth", 2);
	for (int t = 0; t < STEPS; t++)
		for (int k = 1; k < chk_size; k++) {
			int to = (chk_rank + k) % chk_size, from = (chk_rank - k + chk_size) % chk_size;

#define DO_EXCHANGE(ctype, type, tag) exchange_##ctype(t, to, from);
			KINDS(DO_EXCHANGE)
		}
	return chk_end();
}
