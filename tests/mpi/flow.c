/*
 * flow - patterns that a relay with bounded memory may deadlock on: messages received in the opposite order, crossing
 * synchronous sends, a receiver that sleeps beside a fast pair, floods of short messages that nobody expects, many long
 * messages that are announced and received late, and a receiver that waits for something else first.
 * Arguments: number of messages per pattern (default 40), bytes of a long one (default 300000), pattern (default all).
 */
#include <time.h>
#include <unistd.h>

#include "check.h"

static int n;
static size_t big;

static void seconds(double s)
{
	struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };

	nanosleep(&t, NULL);
}

/* Everybody sends n long messages to rank 0, which receives each sender's last one first. */
static void last_first(void)
{
	MPI_Request *r = chk_alloc((size_t)n * sizeof *r);
	char *p = chk_alloc(big);

	if (chk_rank == 0) {
		char *in = chk_alloc(big);

		seconds(0.3);
		for (int k = n - 1; k >= 0; k--)
			for (int s = 1; s < chk_size; s++) {
				MPI_Recv(in, (int)big, MPI_BYTE, s, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				CHECK_BYTES(in, big, chk_seed(s, k, 0, 0));
			}
		free(in);
	} else {
		char *all = chk_alloc(big * (size_t)n);

		for (int k = 0; k < n; k++) {
			chk_fill(all + big * (size_t)k, big, chk_seed(chk_rank, k, 0, 0));
			MPI_Isend(all + big * (size_t)k, (int)big, MPI_BYTE, 0, k, MPI_COMM_WORLD, &r[k]);
		}
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
		free(all);
	}
	free(p);
	free(r);
}

/* Each rank and its opposite send synchronously to each other at the same time, short and long. */
static void crossing(void)
{
	int other = chk_size - 1 - chk_rank;
	char *out = chk_alloc(big), *in = chk_alloc(big);

	for (int k = 0; k < n && other != chk_rank; k++) {
		size_t len = k % 2 ? big : 100;
		MPI_Request r[2];

		chk_fill(out, len, chk_seed(chk_rank, k, 1, 0));
		MPI_Issend(out, (int)len, MPI_BYTE, other, k, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(in, (int)len, MPI_BYTE, other, k, MPI_COMM_WORLD, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		CHECK_BYTES(in, len, chk_seed(other, k, 1, 0));
	}
	free(out);
	free(in);
}

/* Rank 0 floods the last rank, which sleeps, with short and long messages; meanwhile the two ranks beside them talk to each
 * other over the same link, and have to be through before the sleeper wakes. */
static void slow_beside_fast(void)
{
	int last = chk_size - 1;
	char *p = chk_alloc(big * (size_t)n), *in = chk_alloc(big);
	MPI_Request *r = chk_alloc(2 * (size_t)n * sizeof *r);
	int done = 0;

	if (chk_size < 4)
		goto end;
	if (chk_rank == 0) {
		for (int k = 0; k < n; k++) {
			chk_fill(p + big * (size_t)k, big, chk_seed(0, k, 2, 0));
			MPI_Isend(
				p + big * (size_t)k, (int)big, MPI_BYTE, last, k, MPI_COMM_WORLD, &r[2 * k]);
			MPI_Isend(p + big * (size_t)k, 700, MPI_BYTE, last, n + k, MPI_COMM_WORLD,
				&r[2 * k + 1]);
		}
		MPI_Waitall(2 * n, r, MPI_STATUSES_IGNORE);
	} else if (chk_rank == last) {
		/* It does not even look before the fast pair says that it is through. */
		MPI_Recv(&done, 1, MPI_INT, last - 1, 5000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int k = n - 1; k >= 0; k--) {
			MPI_Recv(in, 700, MPI_BYTE, 0, n + k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_BYTES(in, 700, chk_seed(0, k, 2, 0));
			MPI_Recv(in, (int)big, MPI_BYTE, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_BYTES(in, big, chk_seed(0, k, 2, 0));
		}
	} else if (chk_rank == 1 || chk_rank == last - 1) {
		int other = chk_rank == 1 ? last - 1 : 1;

		for (int k = 0; k < 2 * n; k++) {
			if ((chk_rank == 1) == (k % 2 == 0)) {
				chk_fill(in, big, chk_seed(chk_rank, k, 2, 0));
				MPI_Send(in, (int)big, MPI_BYTE, other, 6000, MPI_COMM_WORLD);
			} else {
				MPI_Recv(in, (int)big, MPI_BYTE, other, 6000, MPI_COMM_WORLD,
					MPI_STATUS_IGNORE);
				CHECK_BYTES(in, big, chk_seed(other, k, 2, 0));
			}
		}
		if (chk_rank == last - 1)
			MPI_Send(&done, 1, MPI_INT, last, 5000, MPI_COMM_WORLD);
	}
end:
	free(p);
	free(in);
	free(r);
}

/* Every rank floods every other with short messages before anybody receives; then all is received from any source. */
static void flood(void)
{
	int per = 20 * n, all = per * (chk_size - 1), *next = chk_alloc((size_t)chk_size * sizeof *next);
	MPI_Request *r = chk_alloc((size_t)all * sizeof *r);
	int *vals = chk_alloc((size_t)all * 2 * sizeof *vals), k = 0;

	memset(next, 0, (size_t)chk_size * sizeof *next);
	for (int i = 0; i < per; i++)
		for (int d = 0; d < chk_size; d++) {
			if (d == chk_rank)
				continue;
			vals[2 * k] = chk_rank;
			vals[2 * k + 1] = i;
			MPI_Isend(&vals[2 * k], 2, MPI_INT, d, 7, MPI_COMM_WORLD, &r[k]);
			k++;
		}
	seconds(0.2);
	for (int i = 0; i < all; i++) {
		int got[2];
		MPI_Status st;

		MPI_Recv(got, 2, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &st);
		CHECK_EQ(got[0], st.MPI_SOURCE);
		CHECK_EQ(got[1], next[st.MPI_SOURCE]++);
	}
	MPI_Waitall(all, r, MPI_STATUSES_IGNORE);
	free(vals);
	free(r);
	free(next);
}

/* Rank 0 wants a message that its partner sends only after a third rank has heard from him, who is behind a
 * wall of messages that rank 0 takes last. */
static void triangle(void)
{
	int last = chk_size - 1, token = 0;
	char *p = chk_alloc(big), *all = chk_alloc(big * (size_t)n);
	MPI_Request *r = chk_alloc((size_t)n * sizeof *r);

	if (chk_size < 3)
		goto end;
	if (chk_rank == last) {
		for (int k = 0; k < n; k++) {
			chk_fill(all + big * (size_t)k, big, chk_seed(last, k, 3, 0));
			MPI_Isend(all + big * (size_t)k, (int)big, MPI_BYTE, 0, k, MPI_COMM_WORLD, &r[k]);
		}
		MPI_Send(&token, 1, MPI_INT, 1, 8000, MPI_COMM_WORLD);
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
	} else if (chk_rank == 1) {
		MPI_Recv(&token, 1, MPI_INT, last, 8000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		chk_fill(p, big, chk_seed(1, 0, 3, 0));
		MPI_Send(p, (int)big, MPI_BYTE, 0, 8001, MPI_COMM_WORLD);
	} else if (chk_rank == 0) {
		MPI_Recv(p, (int)big, MPI_BYTE, 1, 8001, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_BYTES(p, big, chk_seed(1, 0, 3, 0));
		for (int k = 0; k < n; k++) {
			MPI_Recv(p, (int)big, MPI_BYTE, last, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_BYTES(p, big, chk_seed(last, k, 3, 0));
		}
	}
end:
	free(p);
	free(all);
	free(r);
}

/* Buffered sends complete at once, however many wait for a receiver that sleeps. */
static void buffered(void)
{
	int last = chk_size - 1, size = n * (int)(1500 + MPI_BSEND_OVERHEAD);
	char *pool = chk_alloc((size_t)size), p[1500];
	void *back;

	if (chk_rank == 0) {
		MPI_Buffer_attach(pool, size);
		for (int k = 0; k < n; k++) {
			chk_fill(p, sizeof p, chk_seed(0, k, 4, 0));
			MPI_Bsend(p, sizeof p, MPI_BYTE, last, k, MPI_COMM_WORLD);
		}
		MPI_Buffer_detach(&back, &size);
	} else if (chk_rank == last) {
		seconds(0.2);
		for (int k = n - 1; k >= 0; k--) {
			MPI_Recv(p, sizeof p, MPI_BYTE, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_BYTES(p, sizeof p, chk_seed(0, k, 4, 0));
		}
	}
	free(pool);
}

int main(int argc, char **argv)
{
	static void (*const pattern[])(
		void) = { last_first, crossing, slow_beside_fast, flood, triangle, buffered };
	long long only;

	chk_begin(&argc, &argv, "flow", 2);
	n = (int)chk_arg(argc, argv, 1, 40);
	big = (size_t)chk_arg(argc, argv, 2, 300000);
	only = chk_arg(argc, argv, 3, -1);
	for (int i = 0; i < (int)(sizeof pattern / sizeof pattern[0]); i++) {
		if (only >= 0 && only != i)
			continue;
		pattern[i]();
		chk_barrier(MPI_COMM_WORLD);
	}
	return chk_end();
}
