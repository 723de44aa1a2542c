/*
 * probe - probe, iprobe, mprobe, improbe with any and named sources; sizes from Get_count and Get_elements; a message
 * taken by a matched probe is invisible to everybody else.
 */
#include "check.h"

enum { MESSAGES = 12 };

static int ints_of(int src, int dst, int i)
{
	static const int some[] = { 0, 1, 3, 491, 492, 493, 1024, 16384, 20001 };

	return some[chk_seed(src, dst, i, 3) % (sizeof some / sizeof some[0])];
}

/* Receives one message in one of six ways and checks it; next[] counts the messages seen of each source. */
static void take_one(int way, int *next)
{
	MPI_Status st, st2;
	MPI_Message m = MPI_MESSAGE_NULL;
	MPI_Request q;
	int flag = 0, n = -1, e = -1, s;

	switch (way) {
	case 0:
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		break;
	case 1:
		while (!flag)
			MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &st);
		break;
	case 2:
		MPI_Mprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &m, &st);
		break;
	default:
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &st);
	}
	s = st.MPI_SOURCE;
	if (!CHECK(s >= 0 && s < chk_size))
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Get_count(&st, MPI_INT, &n);
	MPI_Get_elements(&st, MPI_INT, &e);
	CHECK_EQ(n, ints_of(s, chk_rank, next[s]));
	CHECK_EQ(e, n);
	CHECK_EQ(st.MPI_TAG, 3);
	int *buf = chk_alloc((size_t)n * sizeof *buf);
	if (way < 2) {
		MPI_Recv(buf, n, MPI_INT, s, st.MPI_TAG, MPI_COMM_WORLD, &st2);
	} else if (way == 2 || way == 3) {
		MPI_Mrecv(buf, n, MPI_INT, &m, &st2);
	} else {
		MPI_Imrecv(buf, n, MPI_INT, &m, &q);
		MPI_Wait(&q, &st2);
	}
	if (way >= 2)
		CHECK(m == MPI_MESSAGE_NULL);
	CHECK_STATUS(&st2, s, 3, MPI_INT, n);
	CHECK_BYTES(buf, (size_t)n * sizeof *buf, chk_seed(s, chk_rank, next[s], 4));
	next[s]++;
	free(buf);
}

static void any_source(void)
{
	int total = MESSAGES * chk_size, *next = calloc((size_t)chk_size, sizeof *next);
	MPI_Request *q = chk_alloc(sizeof *q * (size_t)total);
	int **out = chk_alloc(sizeof *out * (size_t)total);

	for (int k = 0; k < total; k++) {
		int dst = (chk_rank + k) % chk_size, i = k / chk_size, n = ints_of(chk_rank, dst, i);

		out[k] = chk_alloc((size_t)n * sizeof(int));
		chk_fill(out[k], (size_t)n * sizeof(int), chk_seed(chk_rank, dst, i, 4));
		MPI_Isend(out[k], n, MPI_INT, dst, 3, MPI_COMM_WORLD, &q[k]);
	}
	for (int k = 0; k < total; k++)
		take_one((k + chk_rank) % 5, next);
	MPI_Waitall(total, q, MPI_STATUSES_IGNORE);
	for (int s = 0; s < chk_size; s++)
		CHECK_EQ(next[s], MESSAGES);
	for (int k = 0; k < total; k++)
		free(out[k]);
	free(out);
	free(q);
	free(next);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Named source and tag: tags are received in the reverse order of sending; nothing is there for other tags. */
static void named(void)
{
	int right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size, flag, n;
	double out[4][5], in[5];
	MPI_Request q[4];
	MPI_Status st;

	for (int t = 0; t < 4; t++) {
		chk_fill(out[t], sizeof out[t], chk_seed(chk_rank, right, t, 8));
		MPI_Issend(out[t], t + 1, MPI_DOUBLE, right, 20 + t, MPI_COMM_WORLD, &q[t]);
	}
	for (int t = 3; t >= 0; t--) {
		MPI_Probe(left, 20 + t, MPI_COMM_WORLD, &st);
		CHECK_STATUS(&st, left, 20 + t, MPI_DOUBLE, t + 1);
		MPI_Iprobe(left, 20 + t, MPI_COMM_WORLD, &flag, &st); /* still there */
		CHECK_EQ(flag, 1);
		CHECK_STATUS(&st, left, 20 + t, MPI_DOUBLE, t + 1);
		MPI_Iprobe(left, 40, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		CHECK_EQ(flag, 0);
		MPI_Recv(in, 5, MPI_DOUBLE, left, 20 + t, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_DOUBLE, &n);
		CHECK_EQ(n, t + 1);
		CHECK_BYTES(in, sizeof(double) * (size_t)(t + 1), chk_seed(left, chk_rank, t, 8));
		MPI_Iprobe(left, 20 + t, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); /* gone */
		CHECK_EQ(flag, 0);
	}
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
}

/* Three equal envelopes: a matched probe takes the first; receive and probe see the second and third. */
static void matched_is_taken(int count)
{
	int right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size, flag;
	int *out = chk_alloc(sizeof(int) * 3 * (size_t)count),
	    *in = chk_alloc(sizeof(int) * 3 * (size_t)count);
	MPI_Message m = MPI_MESSAGE_NULL, m2 = MPI_MESSAGE_NULL;
	MPI_Request q[3];
	MPI_Status st;

	for (int i = 0; i < 3; i++) {
		chk_fill(out + i * count, sizeof(int) * (size_t)count, chk_seed(chk_rank, i, count, 9));
		MPI_Isend(out + i * count, count, MPI_INT, right, 50, MPI_COMM_WORLD, &q[i]);
	}
	MPI_Mprobe(left, 50, MPI_COMM_WORLD, &m, &st);
	CHECK(m != MPI_MESSAGE_NULL);
	CHECK_STATUS(&st, left, 50, MPI_INT, count);
	MPI_Recv(in + count, count, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	do
		MPI_Improbe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &flag, &m2, MPI_STATUS_IGNORE);
	while (!flag);
	MPI_Mrecv(in + 2 * count, count, MPI_INT, &m2, &st);
	CHECK_STATUS(&st, left, 50, MPI_INT, count);
	MPI_Iprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(flag, 0);
	MPI_Mrecv(in, count, MPI_INT, &m, &st);
	CHECK_STATUS(&st, left, 50, MPI_INT, count);
	for (int i = 0; i < 3; i++)
		CHECK_BYTES(in + i * count, sizeof(int) * (size_t)count, chk_seed(left, i, count, 9));
	MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
}

static void proc_null(void)
{
	MPI_Status st;
	MPI_Message m = MPI_MESSAGE_NULL;
	MPI_Request q;
	int flag = 0;

	MPI_Probe(MPI_PROC_NULL, 7, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	MPI_Iprobe(MPI_PROC_NULL, 7, MPI_COMM_WORLD, &flag, &st);
	CHECK_EQ(flag, 1);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	MPI_Mprobe(MPI_PROC_NULL, 7, MPI_COMM_WORLD, &m, &st);
	CHECK(m == MPI_MESSAGE_NO_PROC);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	MPI_Mrecv(NULL, 0, MPI_INT, &m, &st);
	CHECK(m == MPI_MESSAGE_NULL);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	flag = 0;
	MPI_Improbe(MPI_PROC_NULL, 7, MPI_COMM_WORLD, &flag, &m, &st);
	CHECK_EQ(flag, 1);
	CHECK(m == MPI_MESSAGE_NO_PROC);
	MPI_Imrecv(NULL, 0, MPI_INT, &m, &q);
	CHECK(m == MPI_MESSAGE_NULL);
	MPI_Wait(&q, &st);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "probe", 1);
	any_source();
	named();
	chk_barrier(MPI_COMM_WORLD);
	matched_is_taken(10);
	chk_barrier(MPI_COMM_WORLD);
	matched_is_taken(100000);
	proc_null();
	return chk_end();
}
