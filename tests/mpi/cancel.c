/*
 * cancel - cancelling receives: an unmatched one is cancelled and takes nothing; one that has its message keeps it;
 * in a race exactly one of both is true, and no message is lost, doubled or reordered.
 */
#include "check.h"

static int right, left;

static void unmatched(int src)
{
	int b = 77, flag = 0;
	MPI_Request q;
	MPI_Status st;

	for (int how = 0; how < 4; how++) {
		MPI_Irecv(&b, 1, MPI_INT, src, 11, MPI_COMM_WORLD, &q);
		if (how == 3)
			MPI_Test(&q, &flag, &st);
		MPI_Cancel(&q);
		CHECK(q != MPI_REQUEST_NULL);
		if (how == 1)
			for (flag = 0; !flag;)
				MPI_Test(&q, &flag, &st);
		else if (how == 2)
			MPI_Waitall(1, &q, &st);
		else
			MPI_Wait(&q, &st);
		CHECK(q == MPI_REQUEST_NULL);
		MPI_Test_cancelled(&st, &flag);
		CHECK_EQ(flag, 1);
		CHECK_EQ(b, 77);
	}
	/* persistent: cancelled, then used again */
	MPI_Recv_init(&b, 1, MPI_INT, src, 12, MPI_COMM_WORLD, &q);
	for (int i = 0; i < 3; i++) {
		MPI_Start(&q);
		MPI_Cancel(&q);
		MPI_Wait(&q, &st);
		MPI_Test_cancelled(&st, &flag);
		CHECK_EQ(flag, 1);
	}
	chk_barrier(MPI_COMM_WORLD);
	b = -1;
	MPI_Start(&q);
	int out = 500 + chk_rank;
	MPI_Send(&out, 1, MPI_INT, right, 12, MPI_COMM_WORLD);
	MPI_Wait(&q, &st);
	CHECK_STATUS(&st, left, 12, MPI_INT, 1);
	MPI_Test_cancelled(&st, &flag);
	CHECK_EQ(flag, 0);
	CHECK_EQ(b, 500 + left);
	MPI_Request_free(&q);
	chk_barrier(MPI_COMM_WORLD);
}

/* Several posted for the same envelope: the cancelled ones in between are passed over. */
static void passed_over(int src)
{
	enum { N = 6 };
	int in[N], out[N], flag;
	MPI_Request q[N], s[N / 2];
	MPI_Status st[N];

	for (int i = 0; i < N; i++) {
		in[i] = -1;
		MPI_Irecv(&in[i], 1, MPI_INT, src, 13, MPI_COMM_WORLD, &q[i]);
	}
	for (int i = 0; i < N; i += 2)
		MPI_Cancel(&q[i]);
	chk_barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N / 2; i++) {
		out[i] = 10 * chk_rank + i;
		MPI_Isend(&out[i], 1, MPI_INT, right, 13, MPI_COMM_WORLD, &s[i]);
	}
	MPI_Waitall(N, q, st);
	for (int i = 0; i < N; i++) {
		MPI_Test_cancelled(&st[i], &flag);
		CHECK_EQ(flag, i % 2 == 0);
		CHECK_EQ(in[i], i % 2 ? 10 * left + i / 2 : -1);
		if (i % 2)
			CHECK_STATUS(&st[i], left, 13, MPI_INT, 1);
	}
	MPI_Waitall(N / 2, s, MPI_STATUSES_IGNORE);
	chk_barrier(MPI_COMM_WORLD);
}

/* The message is there already: the receive is complete (seen by get_status), so Cancel has no effect. */
static void complete(int src, int n)
{
	int *in = chk_alloc(sizeof(int) * (size_t)n), *out = chk_alloc(sizeof(int) * (size_t)n), flag = 0;
	MPI_Request q, s;
	MPI_Status st;

	chk_fill(out, sizeof(int) * (size_t)n, chk_seed(chk_rank, n, 0, 0));
	MPI_Irecv(in, n, MPI_INT, src, 14, MPI_COMM_WORLD, &q);
	MPI_Isend(out, n, MPI_INT, right, 14, MPI_COMM_WORLD, &s);
	while (!flag)
		MPI_Request_get_status(q, &flag, MPI_STATUS_IGNORE);
	MPI_Cancel(&q);
	MPI_Wait(&q, &st);
	MPI_Test_cancelled(&st, &flag);
	CHECK_EQ(flag, 0);
	CHECK_STATUS(&st, left, 14, MPI_INT, n);
	CHECK_BYTES(in, sizeof(int) * (size_t)n, chk_seed(left, n, 0, 0));
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	free(in);
	free(out);
	chk_barrier(MPI_COMM_WORLD);
}

/* The race: receives are posted and cancelled at once while messages arrive from everybody. */
static void race(int messages)
{
	enum { LONG = 30000 };
	int total = messages * chk_size, done = 0, flag, cancelled = 0;
	int *next = calloc((size_t)chk_size, sizeof(int));
	int **out = chk_alloc(sizeof *out * (size_t)total), *in = chk_alloc(sizeof(int) * LONG);
	MPI_Request *s = chk_alloc(sizeof *s * (size_t)total), q;
	MPI_Status st;

	for (int k = 0; k < total; k++) {
		int dst = k % chk_size, i = k / chk_size, n = i % 4 == 3 ? LONG : 1 + i % 50;

		out[k] = chk_alloc(sizeof(int) * (size_t)n);
		chk_fill(out[k], sizeof(int) * (size_t)n, chk_seed(chk_rank, dst, i, 1));
		MPI_Isend(out[k], n, MPI_INT, dst, 15, MPI_COMM_WORLD, &s[k]);
	}
	while (done < total) {
		MPI_Irecv(in, LONG, MPI_INT, done % 3 ? MPI_ANY_SOURCE : done % chk_size, 15, MPI_COMM_WORLD,
			&q);
		if (done % 3 == 0 && next[done % chk_size] == messages) {
			MPI_Cancel(&q); /* that source has nothing left */
			MPI_Wait(&q, &st);
			MPI_Test_cancelled(&st, &flag);
			CHECK_EQ(flag, 1);
			MPI_Irecv(in, LONG, MPI_INT, MPI_ANY_SOURCE, 15, MPI_COMM_WORLD, &q);
		}
		if (cancelled < 2000)
			MPI_Cancel(&q);
		MPI_Wait(&q, &st);
		MPI_Test_cancelled(&st, &flag);
		if (flag) {
			cancelled++;
			continue;
		}
		int r = st.MPI_SOURCE;
		if (!CHECK(r >= 0 && r < chk_size && next[r] < messages))
			MPI_Abort(MPI_COMM_WORLD, 1);
		int i = next[r]++, n = i % 4 == 3 ? LONG : 1 + i % 50;
		CHECK_STATUS(&st, r, 15, MPI_INT, n);
		CHECK_BYTES(in, sizeof(int) * (size_t)n, chk_seed(r, chk_rank, i, 1));
		done++;
	}
	MPI_Waitall(total, s, MPI_STATUSES_IGNORE);
	for (int r = 0; r < chk_size; r++)
		CHECK_EQ(next[r], messages);
	for (int k = 0; k < total; k++)
		free(out[k]);
	free(out);
	free(s);
	free(in);
	free(next);
}

int main(int argc, char **argv)
{
	int b;
	MPI_Request q;
	MPI_Status st;

	chk_begin(&argc, &argv, "cancel", 1);
	right = (chk_rank + 1) % chk_size;
	left = (chk_rank + chk_size - 1) % chk_size;
	unmatched(left);
	unmatched(MPI_ANY_SOURCE);
	passed_over(left);
	passed_over(MPI_ANY_SOURCE);
	complete(left, 2);
	complete(MPI_ANY_SOURCE, 2);
	complete(MPI_ANY_SOURCE, 100000);
	race((int)chk_arg(argc, argv, 1, 20));
	/* freed after the cancel: nothing is left behind that could take the next message */
	MPI_Irecv(&b, 1, MPI_INT, MPI_ANY_SOURCE, 16, MPI_COMM_WORLD, &q);
	MPI_Cancel(&q);
	MPI_Request_free(&q);
	chk_barrier(MPI_COMM_WORLD);
	int out = chk_rank;
	MPI_Sendrecv(&out, 1, MPI_INT, right, 16, &b, 1, MPI_INT, MPI_ANY_SOURCE, 16, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 16, MPI_INT, 1);
	CHECK_EQ(b, left);
	return chk_end();
}
