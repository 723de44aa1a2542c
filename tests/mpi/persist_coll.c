/*
 * persist_coll.c - persistent collectives: every one is made once and started several times with other data; datatypes may
 * go after it is made. Under the names of MPI-4, or those of the extension that came before.
 */
#include "check.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define P(name) MPI_##name
#else
#include <mpi-ext.h>
#define P(name) MPIX_##name
#endif

static int n, me;

#define MOST  64
#define TIMES 3
#define I     MPI_INFO_NULL
#define W     MPI_COMM_WORLD

static int in[MOST * 4], out[MOST * 4];

static int value(int from, int to, int time)
{
	return from * 1000 + to * 10 + time;
}

static void fill(int time)
{
	for (int r = 0; r < n; r++)
		in[r] = value(me, r, time);
	for (int r = 0; r < 4 * n; r++)
		out[r] = -1;
}

/* What each operation must have left, at this time. */
static void good(int op, int time)
{
	int sum = n * (n - 1) / 2 * 1000, before = me * (me - 1) / 2 * 1000;

	for (int r = 0; r < n; r++) {
		switch (op) {
		case 1: /* bcast, in place: root 1 */
			CHECK_EQ(in[r], value(1, r, time));
			break;
		case 2: /* gather(v): root 0 */
		case 3:
			if (me == 0)
				CHECK_EQ(out[r], value(r, 0, time));
			break;
		case 4: /* scatter(v): root 1 */
		case 5:
			CHECK_EQ(out[0], value(1, me, time));
			break;
		case 6: /* allgather(v) */
		case 7:
			CHECK_EQ(out[r], value(r, 0, time));
			break;
		case 8: /* alltoall(v, w) */
		case 9:
		case 10:
			CHECK_EQ(out[r], value(r, me, time));
			break;
		case 11: /* reduce: root 0; allreduce */
		case 12:
			if (op == 12 || me == 0)
				CHECK_EQ(out[r], sum + n * (r * 10 + time));
			break;
		case 13: /* reduce_scatter(_block) */
		case 14:
			CHECK_EQ(out[0], sum + n * (me * 10 + time));
			break;
		case 15: /* scan, exscan */
			CHECK_EQ(out[r], before + me * 1000 + (me + 1) * (r * 10 + time));
			break;
		case 16:
			if (me > 0)
				CHECK_EQ(out[r], before + me * (r * 10 + time));
			break;
		default:
			break;
		}
	}
}

static void make(int op, MPI_Request *req)
{
	int *one = chk_alloc(MOST * 4), *at = chk_alloc(MOST * 4), *bytes = chk_alloc(MOST * 4);
	MPI_Datatype *t = chk_alloc(MOST * sizeof *t), pair;

	MPI_Type_contiguous(1, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	for (int r = 0; r < n; r++) {
		one[r] = 1;
		at[r] = r;
		bytes[r] = r * (int)sizeof(int);
		t[r] = MPI_INT;
	}
	switch (op) {
	case 0:
		P(Barrier_init)(W, I, req);
		break;
	case 1:
		P(Bcast_init)(in, n, pair, 1, W, I, req);
		break;
	case 2:
		P(Gather_init)(in, 1, MPI_INT, out, 1, MPI_INT, 0, W, I, req);
		break;
	case 3:
		P(Gatherv_init)(in, 1, MPI_INT, out, one, at, MPI_INT, 0, W, I, req);
		break;
	case 4:
		P(Scatter_init)(in, 1, MPI_INT, out, 1, MPI_INT, 1, W, I, req);
		break;
	case 5:
		P(Scatterv_init)(in, one, at, MPI_INT, out, 1, MPI_INT, 1, W, I, req);
		break;
	case 6:
		P(Allgather_init)(in, 1, MPI_INT, out, 1, MPI_INT, W, I, req);
		break;
	case 7:
		P(Allgatherv_init)(in, 1, MPI_INT, out, one, at, MPI_INT, W, I, req);
		break;
	case 8:
		P(Alltoall_init)(in, 1, MPI_INT, out, 1, MPI_INT, W, I, req);
		break;
	case 9:
		P(Alltoallv_init)(in, one, at, MPI_INT, out, one, at, MPI_INT, W, I, req);
		break;
	case 10:
		P(Alltoallw_init)(in, one, bytes, t, out, one, bytes, t, W, I, req);
		break;
	case 11:
		P(Reduce_init)(in, out, n, MPI_INT, MPI_SUM, 0, W, I, req);
		break;
	case 12:
		P(Allreduce_init)(in, out, n, MPI_INT, MPI_SUM, W, I, req);
		break;
	case 13:
		P(Reduce_scatter_init)(in, out, one, MPI_INT, MPI_SUM, W, I, req);
		break;
	case 14:
		P(Reduce_scatter_block_init)(in, out, 1, MPI_INT, MPI_SUM, W, I, req);
		break;
	case 15:
		P(Scan_init)(in, out, n, MPI_INT, MPI_SUM, W, I, req);
		break;
	default:
		P(Exscan_init)(in, out, n, MPI_INT, MPI_SUM, W, I, req);
		break;
	}
	MPI_Type_free(&pair);
	/* the vendors keep the callers' arrays, as MPI-4 lets them: they stay */
}

/* A ring: each tells both neighbours. */
static void neighbors(void)
{
	MPI_Comm ring;
	MPI_Request req;
	int left, right, here, one[2] = { 1, 1 }, at[2] = { 0, 1 };
	MPI_Aint bytes[2] = { 0, sizeof(int) };
	MPI_Datatype t[2] = { MPI_INT, MPI_INT };

	MPI_Cart_create(W, 1, &n, one, 0, &ring);
	MPI_Cart_shift(ring, 0, 1, &left, &right);
	MPI_Comm_rank(ring, &here);
	for (int op = 0; op < 5; op++) {
		switch (op) {
		case 0:
			P(Neighbor_allgather_init)(in, 1, MPI_INT, out, 1, MPI_INT, ring, I, &req);
			break;
		case 1:
			P(Neighbor_allgatherv_init)(in, 1, MPI_INT, out, one, at, MPI_INT, ring, I, &req);
			break;
		case 2:
			P(Neighbor_alltoall_init)(in, 1, MPI_INT, out, 1, MPI_INT, ring, I, &req);
			break;
		case 3:
			P(Neighbor_alltoallv_init)
			(in, one, at, MPI_INT, out, one, at, MPI_INT, ring, I, &req);
			break;
		default:
			P(Neighbor_alltoallw_init)(in, one, bytes, t, out, one, bytes, t, ring, I, &req);
			break;
		}
		for (int time = 0; time < TIMES; time++) {
			in[0] = here * 10 + time; /* for the left one */
			in[1] = op < 2 ? -1 : here * 10 + time + 5;
			out[0] = out[1] = -1;
			MPI_Start(&req);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			if (n > 2) { /* between two it is open which message is whose */
				CHECK_EQ(out[0], left * 10 + time + (op < 2 ? 0 : 5));
				CHECK_EQ(out[1], right * 10 + time);
			}
		}
		MPI_Request_free(&req);
		CHECK(req == MPI_REQUEST_NULL);
	}
	MPI_Comm_free(&ring);
}

/* Several at a time, with a message of each kind between. */
static void together(void)
{
	int a = me, sum = 0, most = 0, got = -1, next = (me + 1) % n, last = (me + n - 1) % n, flag;
	MPI_Request req[5];
	MPI_Status st[5];

	P(Allreduce_init)(&a, &sum, 1, MPI_INT, MPI_SUM, W, I, &req[0]);
	MPI_Send_init(&a, 1, MPI_INT, next, 3, W, &req[1]);
	P(Allreduce_init)(&a, &most, 1, MPI_INT, MPI_MAX, W, I, &req[2]);
	MPI_Recv_init(&got, 1, MPI_INT, MPI_ANY_SOURCE, 3, W, &req[3]);
	P(Barrier_init)(W, I, &req[4]);
	MPI_Test(&req[0], &flag, &st[0]); /* inactive */
	CHECK(flag);
	CHECK_EMPTY(&st[0]);
	for (int time = 0; time < TIMES; time++) {
		a = me + time;
		sum = most = got = -1;
		MPI_Startall(5, req);
		MPI_Waitall(5, req, st);
		CHECK_EQ(sum, n * (n - 1) / 2 + n * time);
		CHECK_EQ(most, n - 1 + time);
		CHECK_EQ(got, last + time);
		CHECK_STATUS(&st[3], last, 3, MPI_INT, 1);
		for (int i = 0; i < 5; i++)
			CHECK(req[i] != MPI_REQUEST_NULL);
	}
	for (int i = 0; i < 5; i++)
		MPI_Request_free(&req[i]);
}

/* Started in another order at each rank, beside nonblocking ones of the same communicator; MPI-4.0, 6.13. */
static void any_order(void)
{
	enum { ALL = 4 };
	int word, sum = -1, got[MOST], plain = -1;
	MPI_Request req[ALL], other;

	P(Bcast_init)(&word, 1, MPI_INT, 0, W, I, &req[0]);
	P(Allreduce_init)(&me, &sum, 1, MPI_INT, MPI_SUM, W, I, &req[1]);
	P(Barrier_init)(W, I, &req[2]);
	P(Allgather_init)(&me, 1, MPI_INT, got, 1, MPI_INT, W, I, &req[3]);
	for (int time = 0; time < 2 * TIMES; time++) {
		word = me == 0 ? 42 + time : -1;
		sum = -1;
		memset(got, -1, sizeof got);
		for (int k = 0; k < ALL; k++) {
			MPI_Start(&req[me % 2 ? (me + k + time) % ALL : (me + time + ALL - k) % ALL]);
			if (k == 1)
				MPI_Iallreduce(&n, &plain, 1, MPI_INT, MPI_SUM, W, &other);
		}
		MPI_Waitall(ALL, req, MPI_STATUSES_IGNORE);
		MPI_Wait(&other, MPI_STATUS_IGNORE);
		CHECK_EQ(word, 42 + time);
		CHECK_EQ(sum, n * (n - 1) / 2);
		CHECK_EQ(plain, n * n);
		for (int r = 0; r < n; r++)
			CHECK_EQ(got[r], r);
	}
	for (int k = 0; k < ALL; k++)
		MPI_Request_free(&req[k]);
}

int main(int argc, char **argv)
{
	MPI_Request req;

	chk_begin(&argc, &argv, "persist_coll", 2);
	n = chk_size;
	me = chk_rank;
	for (int op = 0; op <= 16; op++) {
		make(op, &req);
		for (int time = 0; time < TIMES; time++) {
			fill(time);
			MPI_Start(&req);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
			CHECK(req != MPI_REQUEST_NULL);
			good(op, time);
		}
		MPI_Request_free(&req);
	}
	neighbors();
	together();
	any_order();
	return chk_end();
}
