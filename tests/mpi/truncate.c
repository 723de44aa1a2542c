/*
 * truncate - too long messages under MPI_ERRORS_RETURN: class MPI_ERR_TRUNCATE, short and long, blocking and not, by
 * name and by wildcard, MPI_ERR_IN_STATUS from Waitall; (for short ones) memory behind the buffer stays, and the messages that follow
 * arrive as if nothing had happened.  No rank sends to itself here: a vendor may keep quiet about that. Where all are MPICH before 5,
 * which checks that natively: a broadcast of fewer or more bytes than a rank expects is an error at it. (MPICH 5.0.2 checks, too, but with 4 ranks
 * does not end.)
 */
#include "check.h"

static int right, left;

/* Sends n ints to the right with tag 1, then a good message with tag 2; the receive takes only m. */
static void one(int n, int m, int how, int src)
{
	int *out = chk_alloc(sizeof(int) * (size_t)n), *in = chk_alloc(sizeof(int) * (size_t)n), after = -1,
	    rc, flag, dirty = 0;
	MPI_Request q[2], r[2];
	MPI_Status st[2];

	chk_fill(out, sizeof(int) * (size_t)n, 5);
	memset(in, 0x33, sizeof(int) * (size_t)n);
	if (how != 1) {
		MPI_Irecv(in, m, MPI_INT, src, 1, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(&after, 1, MPI_INT, src, 2, MPI_COMM_WORLD, &r[1]);
	}
	MPI_Isend(out, n, MPI_INT, right, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Isend(&chk_rank, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &q[1]);
	switch (how) {
	case 0:
		rc = MPI_Wait(&r[0], &st[0]);
		CHECK_EQ(chk_class(rc), MPI_ERR_TRUNCATE);
		CHECK_EQ(st[0].MPI_SOURCE, left);
		CHECK_EQ(st[0].MPI_TAG, 1);
		CHECK_EQ(MPI_Wait(&r[1], &st[1]), MPI_SUCCESS);
		break;
	case 1:
		rc = MPI_Recv(in, m, MPI_INT, src, 1, MPI_COMM_WORLD, &st[0]);
		CHECK_EQ(chk_class(rc), MPI_ERR_TRUNCATE);
		CHECK_EQ(st[0].MPI_SOURCE, left);
		CHECK_EQ(MPI_Recv(&after, 1, MPI_INT, src, 2, MPI_COMM_WORLD, &st[1]), MPI_SUCCESS);
		break;
	case 2:
		rc = MPI_Waitall(2, r, st);
		CHECK_EQ(chk_class(rc), MPI_ERR_IN_STATUS);
		CHECK_EQ(chk_class(st[0].MPI_ERROR), MPI_ERR_TRUNCATE);
		if (st[1].MPI_ERROR == MPI_ERR_PENDING)
			CHECK_EQ(MPI_Wait(&r[1], &st[1]), MPI_SUCCESS);
		else
			CHECK_EQ(st[1].MPI_ERROR, MPI_SUCCESS);
		break;
	default:
		do
			rc = MPI_Test(&r[0], &flag, &st[0]);
		while (rc == MPI_SUCCESS && !flag);
		CHECK_EQ(chk_class(rc), MPI_ERR_TRUNCATE);
		CHECK_EQ(MPI_Wait(&r[1], &st[1]), MPI_SUCCESS);
	}
	CHECK_STATUS(&st[1], left, 2, MPI_INT, 1);
	CHECK_EQ(after, left);
	for (int i = m; i < n; i++)
		dirty += in[i] != 0x33333333;
	if (n <= 1000) /* Open MPI 4.1.4 writes long ones whole, behind the buffer too */
		CHECK_EQ(dirty, 0);
	if (how != 1)
		CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
	CHECK_EQ(MPI_Waitall(2, q, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	free(out);
	free(in);
	chk_barrier(MPI_COMM_WORLD);
}

/* The root broadcasts n ints, the others expect m. */
static void broadcast(int n, int m, int nonblocking)
{
	int buf[600] = { 0 }, count = chk_rank == 0 ? n : m, rc;
	MPI_Request q;

	if (nonblocking) {
		MPI_Ibcast(buf, count, MPI_INT, 0, MPI_COMM_WORLD, &q);
		rc = MPI_Wait(&q, MPI_STATUS_IGNORE);
	} else {
		rc = MPI_Bcast(buf, count, MPI_INT, 0, MPI_COMM_WORLD);
	}
	CHECK((rc == MPI_SUCCESS) == (chk_rank == 0 || n == m));
	chk_barrier(MPI_COMM_WORLD);
}

static void broadcasts(void)
{
	static const int n[][2] = { { 1, 10 }, { 10, 1 }, { 3, 3 }, { 500, 499 }, { 499, 500 },
		{ 600, 600 } };
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
	int mine = 1, all;
#else
	int mine = 0, all;
#endif

	MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	for (int i = 0; i < 6 && all; i++)
		for (int k = 0; k < 2; k++)
			broadcast(n[i][0], n[i][1], k);
}

int main(int argc, char **argv)
{
	static const int n[][2] = { { 2, 1 }, { 3, 0 }, { 1000, 999 }, { 70000, 3 }, { 70000, 69999 },
		{ 400000, 399999 }, { 400000, 1 } };
	int in[4], rc;
	MPI_Status st;

	chk_begin(&argc, &argv, "truncate", 2);
	right = (chk_rank + 1) % chk_size;
	left = (chk_rank + chk_size - 1) % chk_size;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 7; i++)
		for (int how = 0; how < 4; how++)
			one(n[i][0], n[i][1], how, (i + how) % 2 ? MPI_ANY_SOURCE : left);

	/* the sender of a too long message knows nothing of it, also when it waits for the match */
	MPI_Request q;
	int out[4] = { 1, 2, 3, 4 };
	MPI_Irecv(in, 2, MPI_INT, left, 3, MPI_COMM_WORLD, &q);
	CHECK_EQ(MPI_Ssend(out, 4, MPI_INT, right, 3, MPI_COMM_WORLD), MPI_SUCCESS);
	rc = MPI_Wait(&q, &st);
	CHECK_EQ(chk_class(rc), MPI_ERR_TRUNCATE);
	broadcasts();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	return chk_end();
}
