/*
 * accuracy - numbers sent on a communicator for which pacx_set_accuracy has set a bound move by no more than that; whatever else is
 * sent there, and everything on other communicators, stays as it is. Each rank exchanges with the one half the world away.
 */
#include "check.h"

#include <math.h>
#include "../../include/pacx.h"

enum { N = 90000 };

static double out[N], in[N];
static float out4[N], in4[N];
static int whole[N], whole_in[N];
static int peer;

static void fill(int step)
{
	for (int i = 0; i < N; i++) {
		out[i] = 300 + 40 * sin(1e-3 * i + step) + 1e-7 * (double)(chk_mix(7, (uint64_t)i) % 1000);
		out4[i] = (float)out[i];
		whole[i] = (int)chk_mix((uint64_t)step, (uint64_t)i / 16);
	}
}

static void exchange(MPI_Comm comm, const void *from, void *to, int n, MPI_Datatype t)
{
	MPI_Sendrecv(from, n, t, peer, 1, to, n, t, peer, 1, comm, MPI_STATUS_IGNORE);
}

/* Doubles within the bound, and exactly as they were if exact. */
static void doubles(MPI_Comm comm, double bound, int exact)
{
	double most = 0;

	memset(in, 0, sizeof in);
	exchange(comm, out, in, N, MPI_DOUBLE);
	for (int i = 0; i < N; i++)
		most = fmax(most, fabs(in[i] - out[i]));
	CHECK(most <= bound);
	if (exact)
		CHECK(memcmp(in, out, sizeof in) == 0);
}

static void floats(MPI_Comm comm, double bound)
{
	double most = 0;

	exchange(comm, out4, in4, N, MPI_FLOAT);
	for (int i = 0; i < N; i++)
		most = fmax(most, fabs((double)in4[i] - (double)out4[i]));
	CHECK(most <= bound);
}

static void what_is_exact(MPI_Comm comm)
{
	double sum[2000], want = out[1];

	exchange(comm, whole, whole_in, N, MPI_INT);
	CHECK(memcmp(whole_in, whole, sizeof whole) == 0);
	exchange(comm, out, in, (int)sizeof out, MPI_BYTE);
	CHECK(memcmp(in, out, sizeof in) == 0);
	want = out[N / 3];
	out[N / 3] = NAN; /* it is in the first piece, if they have 256 KiB: that one is exact */
	exchange(comm, out, in, N, MPI_DOUBLE);
	CHECK(isnan(in[N / 3]));
	CHECK(memcmp(in, out, sizeof *in << 15) == 0);
	out[N / 3] = want;
	MPI_Allreduce(out, sum, 2000, MPI_DOUBLE, MPI_MAX, comm);
	CHECK(memcmp(sum, out, sizeof sum) == 0);
}

int main(int argc, char **argv)
{
	MPI_Comm comm, other;

	chk_begin(&argc, &argv, "accuracy", 2);
	peer = chk_size % 2 && chk_rank == chk_size - 1 ? MPI_PROC_NULL
							: (chk_rank + chk_size / 2) % (chk_size / 2 * 2);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	CHECK_EQ(pacx_set_accuracy(comm, 1e-3), MPI_SUCCESS);
	MPI_Comm_dup(comm, &other);
	if (peer == MPI_PROC_NULL) { /* the others' sums need us */
		double none[2000], sum[2000];

		fill(3);
		memcpy(none, out, sizeof none);
		MPI_Allreduce(none, sum, 2000, MPI_DOUBLE, MPI_MAX, comm);
	} else {
		for (int step = 0; step < 4; step++) {
			fill(step);
			doubles(comm, 1e-3, 0);
			doubles(other, 0, 1);
			doubles(MPI_COMM_WORLD, 0, 1);
			floats(comm, 1e-3);
		}
		what_is_exact(comm);
		CHECK_EQ(pacx_set_accuracy(comm, -1e-6), MPI_SUCCESS);
		doubles(comm, 341 * 1e-6, 0);
		CHECK_EQ(pacx_set_accuracy(comm, 0), MPI_SUCCESS);
		doubles(comm, 0, 1);
	}
	MPI_Comm_free(&comm);
	MPI_Comm_free(&other);
	return chk_end();
}
