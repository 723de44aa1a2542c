/*
 * middle - messages about the lengths where a library changes its protocol, sent in bursts and received in another order than they
 * came: backwards by tag, by any source, after a probe, into a buffer with holes, too long for the receive. Every rank sends to
 * every other.
 */
#include "check.h"

enum { BURST = 40 }; /* more than anybody promises to take at once */

static const int lengths[] = { 1, 256, 257, 1023, 1024, 1025, 2047, 2048, 4096, 8111, 8112, 8113, 8192, 65535,
	65536, 65537, 100000 };
enum { NLENGTHS = sizeof lengths / sizeof lengths[0] };

static int length(int src, int k)
{
	return lengths[(src + k) % NLENGTHS];
}

/* What src sends to dst under tag k. */
static uint64_t seed(int src, int dst, int k)
{
	return chk_mix((uint64_t)src * 1000 + (uint64_t)dst, (uint64_t)k);
}

static void burst(int peer, MPI_Request *req, unsigned char **out)
{
	for (int k = 0; k < BURST; k++) {
		int n = length(chk_rank, k);

		out[k] = malloc((size_t)n);
		chk_fill(out[k], (size_t)n, seed(chk_rank, peer, k));
		MPI_Isend(out[k], n, MPI_BYTE, peer, chk_rank * BURST + k, MPI_COMM_WORLD, &req[k]);
	}
}

static void take(int from, int k, int how)
{
	int n = length(from, k), tag = from * BURST + k, got, source = how & 1 ? MPI_ANY_SOURCE : from;
	unsigned char *in = calloc(1, 2 * (size_t)n + 2);
	MPI_Status st;

	if (how & 2) {
		MPI_Probe(source, tag, MPI_COMM_WORLD, &st);
		CHECK_STATUS(&st, from, tag, MPI_BYTE, n);
	}
	if (how & 1) { /* any source would do: see any() */
		MPI_Recv(in, 2 * n, MPI_BYTE, source, tag, MPI_COMM_WORLD, &st);
		CHECK_BYTES(in, (size_t)n, seed(from, chk_rank, k));
	} else if (how & 4) { /* every second byte */
		MPI_Datatype holes;

		MPI_Type_vector(n, 1, 2, MPI_BYTE, &holes);
		MPI_Type_commit(&holes);
		MPI_Recv(in, 1, holes, source, tag, MPI_COMM_WORLD, &st);
		MPI_Type_free(&holes);
		for (int i = 0; i < n; i++)
			in[i] = in[2 * i];
		CHECK_BYTES(in, (size_t)n, seed(from, chk_rank, k));
	} else {
		MPI_Recv(in, n, MPI_BYTE, source, tag, MPI_COMM_WORLD, &st);
		CHECK_BYTES(in, (size_t)n, seed(from, chk_rank, k));
	}
	MPI_Get_count(&st, MPI_BYTE, &got);
	CHECK_EQ(st.MPI_SOURCE, from);
	if (!(how & 4) || how & 1)
		CHECK_EQ(got, n);
	free(in);
}

/* All bursts of all ranks, received backwards. */
static void backwards(int how)
{
	MPI_Request *req = malloc((size_t)chk_size * BURST * sizeof *req);
	unsigned char **out = malloc((size_t)chk_size * BURST * sizeof *out);
	int n = 0;

	for (int p = 0; p < chk_size; p++)
		if (p != chk_rank) {
			burst(p, req + n, out + n);
			n += BURST;
		}
	for (int k = BURST - 1; k >= 0; k--)
		for (int p = chk_size - 1; p >= 0; p--)
			if (p != chk_rank)
				take(p, k, how < 0 ? k % 7 : how);
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		free(out[i]);
	free(out);
	free(req);
}

/* From all, any source and any tag, in the order of each. */
static void any(void)
{
	MPI_Request *req = malloc((size_t)chk_size * BURST * sizeof *req);
	unsigned char **out = malloc((size_t)chk_size * BURST * sizeof *out), *in = malloc(100000);
	int *next = calloc((size_t)chk_size, sizeof *next), n = 0;

	for (int p = 0; p < chk_size; p++)
		if (p != chk_rank) {
			burst(p, req + n, out + n);
			n += BURST;
		}
	for (int i = 0; i < n; i++) {
		MPI_Status st;
		int got;

		MPI_Recv(in, 100000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_BYTE, &got);
		CHECK_EQ(st.MPI_TAG, st.MPI_SOURCE * BURST + next[st.MPI_SOURCE]);
		CHECK_EQ(got, length(st.MPI_SOURCE, next[st.MPI_SOURCE]));
		CHECK_BYTES(in, (size_t)got, seed(st.MPI_SOURCE, chk_rank, next[st.MPI_SOURCE]++));
	}
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		free(out[i]);
	free(in);
	free(next);
	free(out);
	free(req);
}

/* Too long for the receive: the others are not disturbed. */
static void too_long(void)
{
	int to = (chk_rank + 1) % chk_size, from = (chk_rank + chk_size - 1) % chk_size;
	static unsigned char out[8192], in[8192];
	MPI_Request req[2];

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	chk_fill(out, sizeof out, seed(chk_rank, to, 1));
	MPI_Isend(out, sizeof out, MPI_BYTE, to, 1, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(out, sizeof out, MPI_BYTE, to, 2, MPI_COMM_WORLD, &req[1]);
	if (from != chk_rank) {
		int cls = MPI_SUCCESS,
		    rc = MPI_Recv(in, 100, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

		MPI_Error_class(rc, &cls);
		CHECK_EQ(cls, MPI_ERR_TRUNCATE);
		MPI_Recv(in, sizeof in, MPI_BYTE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_BYTES(in, sizeof in, seed(from, chk_rank, 1));
	}
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "middle", 2);
	backwards(0);
	backwards(-1);
	any();
	MPI_Barrier(MPI_COMM_WORLD); /* its wildcards must not take what follows */
	too_long();
	backwards(4);
	return chk_end();
}
