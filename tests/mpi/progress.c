/*
 * progress - legal patterns that hang when an implementation waits for one thing only: while a rank blocks in a local
 * operation its earlier nonblocking one with somebody far away must go on, and the other way round.
 * "Far" is the rank half the world away, "near" a split by halves (with two equal sites: the sites).
 */
#include "check.h"

static MPI_Comm near;
static int nr, nn; /* rank and size in near */

/* Each rank of the lower half has a partner in the upper half; an odd one left over has none. */
static int partner(void)
{
	int h = chk_size / 2;

	return chk_rank < h ? chk_rank + h : chk_rank < 2 * h ? chk_rank - h : MPI_PROC_NULL;
}

/* Receive from far, then block near in one of several ways; the far side sends synchronously before it blocks near. */
static void far_then_near(int way, int n)
{
	int p = partner(), lower = chk_rank < chk_size / 2, one = nr, got = -1, sum;
	char *buf = chk_alloc((size_t)n);
	MPI_Request q = MPI_REQUEST_NULL;

	if (lower || p == MPI_PROC_NULL) {
		MPI_Irecv(buf, n, MPI_BYTE, p, 1, MPI_COMM_WORLD, &q);
	} else {
		chk_fill(buf, (size_t)n, chk_seed(chk_rank, way, n, 0));
		if (nr == nn - 1 || way % 2)
			MPI_Ssend(buf, n, MPI_BYTE, p, 1, MPI_COMM_WORLD);
		else
			MPI_Issend(buf, n, MPI_BYTE, p, 1, MPI_COMM_WORLD, &q);
	}
	switch (way) {
	case 0:
		MPI_Barrier(near);
		break;
	case 1: /* a chain: each waits for the one before */
		if (nr > 0)
			MPI_Recv(&got, 1, MPI_INT, nr - 1, 2, near, MPI_STATUS_IGNORE);
		if (nr + 1 < nn)
			MPI_Ssend(&one, 1, MPI_INT, nr + 1, 2, near);
		CHECK_EQ(got, nr - 1);
		break;
	case 2:
		MPI_Bcast(&one, 1, MPI_INT, nn - 1, near);
		CHECK_EQ(one, nn - 1);
		break;
	case 3:
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, near);
		CHECK_EQ(sum, nn * (nn - 1) / 2);
		break;
	case 4: /* any source, near only */
		if (nr > 0)
			MPI_Ssend(&one, 1, MPI_INT, 0, 3, near);
		else
			for (int i = 1; i < nn; i++)
				MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 3, near, MPI_STATUS_IGNORE);
		break;
	default: /* probe */
		if (nr > 0)
			MPI_Send(&one, 1, MPI_INT, nr - 1, 4, near);
		if (nr + 1 < nn) {
			MPI_Probe(nr + 1, 4, near, MPI_STATUS_IGNORE);
			MPI_Recv(&got, 1, MPI_INT, nr + 1, 4, near, MPI_STATUS_IGNORE);
			CHECK_EQ(got, nr + 1);
		}
	}
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	if (lower && p != MPI_PROC_NULL)
		CHECK_BYTES(buf, (size_t)n, chk_seed(p, way, n, 0));
	free(buf);
	chk_barrier(MPI_COMM_WORLD);
}

/* Rank A: Irecv from far, then a blocking receive from a near rank who sends only after the far one is served. */
static void dependent(int n)
{
	int last = chk_size - 1, go = 1;
	char *buf = chk_alloc((size_t)n);
	MPI_Request q;

	/* 0 waits for 1 (near), 1 waits for last (far), last waits until 0 has taken its long message */
	if (chk_size >= 3) {
		if (chk_rank == 0) {
			MPI_Irecv(buf, n, MPI_BYTE, last, 5, MPI_COMM_WORLD, &q);
			MPI_Recv(&go, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_EQ(go, 42);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
			CHECK_BYTES(buf, (size_t)n, 3);
		} else if (chk_rank == last) {
			chk_fill(buf, (size_t)n, 3);
			MPI_Ssend(buf, n, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
			go = 42;
			MPI_Send(&go, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
		} else if (chk_rank == 1) {
			MPI_Recv(&go, 1, MPI_INT, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Ssend(&go, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
		}
	}
	free(buf);
	chk_barrier(MPI_COMM_WORLD);
}

/* A buffered send is complete without further calls about it: the sender then only blocks near. */
static void buffered(void)
{
	int p = partner(), n = 30000, bytes = n + MPI_BSEND_OVERHEAD + 64, dummy;
	char *buf = chk_alloc((size_t)n), *in = chk_alloc((size_t)n), *att = chk_alloc((size_t)bytes);

	MPI_Buffer_attach(att, bytes);
	chk_fill(buf, (size_t)n, (uint64_t)chk_rank);
	MPI_Bsend(buf, n, MPI_BYTE, p, 7, MPI_COMM_WORLD);
	memset(buf, 0, (size_t)n);
	MPI_Barrier(near);
	if (chk_rank >=
		chk_size /
			2) { /* the upper half hears first, then releases the lower half, which waits near */
		MPI_Recv(in, n, MPI_BYTE, p, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&n, 1, MPI_INT, p, 8, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&dummy, 1, MPI_INT, p, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Barrier(near);
		MPI_Recv(in, n, MPI_BYTE, p, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (p != MPI_PROC_NULL)
		CHECK_BYTES(in, (size_t)n, (uint64_t)p);
	void *back;
	MPI_Buffer_detach(&back, &dummy);
	CHECK(back == att);
	free(att);
	free(buf);
	free(in);
	chk_barrier(MPI_COMM_WORLD);
}

/* Everybody sends everybody a long message before anybody receives; the sends are nonblocking, the receives block. */
static void flood(int n)
{
	MPI_Request *q = chk_alloc(sizeof *q * (size_t)chk_size);
	char *out = chk_alloc((size_t)n), *in = chk_alloc((size_t)n);

	chk_fill(out, (size_t)n, (uint64_t)chk_rank);
	for (int d = 0; d < chk_size; d++)
		MPI_Isend(out, n, MPI_BYTE, (chk_rank + d) % chk_size, 9, MPI_COMM_WORLD, &q[d]);
	for (int d = chk_size - 1; d >= 0; d--) {
		int s = (chk_rank + d) % chk_size;
		MPI_Recv(in, n, MPI_BYTE, s, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_BYTES(in, (size_t)n, (uint64_t)s);
	}
	MPI_Waitall(chk_size, q, MPI_STATUSES_IGNORE);
	free(q);
	free(out);
	free(in);
}

/* Many small unexpected messages from all to rank 0, which takes a later tag first. */
static void unexpected(int messages)
{
	if (chk_rank == 0) {
		int *next = calloc((size_t)chk_size, sizeof(int)), x[2];
		MPI_Status st;

		for (int r = 1; r < chk_size; r++)
			MPI_Recv(NULL, 0, MPI_INT, r, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < messages * (chk_size - 1); i++) {
			MPI_Recv(x, 2, MPI_INT, MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &st);
			CHECK_EQ(x[0], st.MPI_SOURCE);
			CHECK_EQ(x[1], next[st.MPI_SOURCE]++);
		}
		free(next);
	} else {
		int(*x)[2] = chk_alloc(sizeof *x * (size_t)messages);
		MPI_Request *q = chk_alloc(sizeof *q * (size_t)messages);

		for (int i = 0; i < messages; i++) {
			x[i][0] = chk_rank;
			x[i][1] = i;
			MPI_Isend(x[i], 2, MPI_INT, 0, 10, MPI_COMM_WORLD, &q[i]);
		}
		MPI_Send(NULL, 0, MPI_INT, 0, 11, MPI_COMM_WORLD);
		MPI_Waitall(messages, q, MPI_STATUSES_IGNORE);
		free(x);
		free(q);
	}
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "progress", 2);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank < chk_size / 2, 0, &near);
	MPI_Comm_rank(near, &nr);
	MPI_Comm_size(near, &nn);
	for (int way = 0; way < 6; way++) {
		far_then_near(way, 10);
		far_then_near(way, 200000);
	}
	dependent(4);
	dependent(500000);
	buffered();
	flood(300000);
	unexpected((int)chk_arg(argc, argv, 1, 300));
	MPI_Comm_free(&near);
	return chk_end();
}
