/*
 * lifetimes.c - objects given up early: requests freed while active (synchronous sends, large and small; receives), datatypes
 * freed between MPI_Recv_init/MPI_Send_init and MPI_Start, or while sends wait for their turn, operators freed while a collective runs; and errors that must leave things as they
 * are: a matched message after a bad MPI_Mrecv, a group function with MPI_GROUP_NULL. The program ends with sends still under way.
 */
#include "check.h"

#define BIG 300000

static void freed_sends(int right, int left)
{
	static int out[2][BIG], in[2][BIG];
	MPI_Request q;

	for (int i = 0; i < 2; i++) {
		int n = i ? BIG : 10;

		chk_fill(out[i], sizeof(int) * (size_t)n, chk_seed(chk_rank, right, i, 1));
		MPI_Issend(out[i], n, MPI_INT, right, 40 + i, MPI_COMM_WORLD, &q);
		MPI_Request_free(&q);
		CHECK(q == MPI_REQUEST_NULL);
	}
	for (int i = 1; i >= 0; i--) { /* the second first */
		int n = i ? BIG : 10;

		MPI_Recv(in[i], n, MPI_INT, left, 40 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_BYTES(in[i], sizeof(int) * (size_t)n, chk_seed(left, chk_rank, i, 1));
	}
	/* a freed receive: the answer tells that it has come */
	{
		static int late = -1;
		int token = chk_rank;

		MPI_Irecv(&late, 1, MPI_INT, left, 45, MPI_COMM_WORLD, &q);
		MPI_Request_free(&q);
		MPI_Ssend(&token, 1, MPI_INT, right, 45, MPI_COMM_WORLD);
		chk_barrier(MPI_COMM_WORLD);
		CHECK_EQ(late, left);
	}
}

static void persistent_types(int right, int left)
{
	int out[3000], in[3000];
	MPI_Datatype t;
	MPI_Request q[2];

	MPI_Type_vector(1000, 1, 2, MPI_INT, &t);
	MPI_Type_commit(&t);
	MPI_Recv_init(in, 1, t, left, 50, MPI_COMM_WORLD, &q[0]);
	MPI_Send_init(out, 1, t, right, 50, MPI_COMM_WORLD, &q[1]);
	MPI_Type_free(&t);
	for (int round = 0; round < 3; round++) {
		int bad = 0;

		for (int i = 0; i < 3000; i++) {
			out[i] = chk_rank * 10000 + round * 3000 + i;
			in[i] = -1;
		}
		/* other types come and go meanwhile, and may get the old one's place */
		MPI_Type_contiguous(7, MPI_DOUBLE, &t);
		MPI_Type_commit(&t);
		MPI_Startall(2, q);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		MPI_Type_free(&t);
		for (int i = 0; i < 2000; i++)
			bad += in[i] != (i % 2 == 0 ? left * 10000 + round * 3000 + i : -1);
		CHECK_EQ(bad, 0);
	}
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
}

/* More sends than may be on their way: the last ones have not begun when their datatype is freed. */
static void types_of_sends(int right, int left)
{
	enum { SHORT = 150, LONG = 8, N = SHORT + LONG, MANY = 100000 };
	static int out[N][20], in[N][10], big[LONG][2 * MANY], got[LONG][MANY];
	MPI_Datatype t, l, other;
	MPI_Request q[2 * N];
	int bad = 0;

	MPI_Type_vector(10, 1, 2, MPI_INT, &t);
	MPI_Type_commit(&t);
	MPI_Type_vector(MANY, 1, 2, MPI_INT, &l);
	MPI_Type_commit(&l);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 20; k++)
			out[i][k] = chk_rank * 100000 + i * 20 + k;
		for (int k = 0; i < LONG && k < 2 * MANY; k++)
			big[i][k] = chk_rank + i * 3 * MANY + k;
	}
	for (int i = 0; i < SHORT; i++)
		MPI_Isend(out[i], 1, t, right, 60, MPI_COMM_WORLD, &q[i]);
	for (int i = 0; i < LONG; i++)
		MPI_Isend(big[i], 1, l, right, 61, MPI_COMM_WORLD, &q[SHORT + i]);
	MPI_Type_free(&t);
	MPI_Type_free(&l);
	MPI_Type_contiguous(7, MPI_DOUBLE, &other); /* may get the place of one of them */
	MPI_Type_commit(&other);
	for (int i = 0; i < SHORT; i++)
		MPI_Irecv(in[i], 10, MPI_INT, left, 60, MPI_COMM_WORLD, &q[N + i]);
	for (int i = 0; i < LONG; i++)
		MPI_Irecv(got[i], MANY, MPI_INT, left, 61, MPI_COMM_WORLD, &q[N + SHORT + i]);
	MPI_Waitall(2 * N, q, MPI_STATUSES_IGNORE);
	MPI_Type_free(&other);
	for (int i = 0; i < SHORT; i++)
		for (int k = 0; k < 10; k++)
			bad += in[i][k] != left * 100000 + i * 20 + 2 * k;
	for (int i = 0; i < LONG; i++)
		for (int k = 0; k < MANY; k++)
			bad += got[i][k] != left + i * 3 * MANY + 2 * k;
	CHECK_EQ(bad, 0);
}

static void take_larger(void *in, void *inout, int *n, MPI_Datatype *t)
{
	int *a = in, *b = inout;

	(void)t;
	for (int i = 0; i < *n; i++)
		if (a[i] > b[i])
			b[i] = a[i];
}

static void freed_op(void)
{
	int in = (chk_rank * 7) % chk_size, out = -1, want = 0;
	MPI_Request q;
	MPI_Op op;

	for (int r = 0; r < chk_size; r++)
		want = (r * 7) % chk_size > want ? (r * 7) % chk_size : want;
	MPI_Op_create(take_larger, 1, &op);
	MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Op_free(&op);
	CHECK_EQ(out, want);
}

static void errors(int right, int left)
{
	MPI_Message m;
	MPI_Group world;
	int x = chk_rank, y = -1, r = 0, to;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Send(&x, 1, MPI_INT, right, 60, MPI_COMM_WORLD);
	MPI_Mprobe(left, 60, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
	CHECK_EQ(chk_class(MPI_Mrecv(&y, -1, MPI_INT, &m, MPI_STATUS_IGNORE)), MPI_ERR_COUNT);
	CHECK(m != MPI_MESSAGE_NULL);
	MPI_Mrecv(&y, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
	CHECK_EQ(y, left);
	CHECK(m == MPI_MESSAGE_NULL);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	CHECK(MPI_Group_translate_ranks(world, 1, &r, MPI_GROUP_NULL, &to) != MPI_SUCCESS);
	CHECK(MPI_Group_union(world, MPI_GROUP_NULL, &world) != MPI_SUCCESS);
	MPI_Group_free(&world);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	int right, left;

	chk_begin(&argc, &argv, "lifetimes", 2);
	right = (chk_rank + 1) % chk_size;
	left = (chk_rank + chk_size - 1) % chk_size;
	freed_sends(right, left);
	persistent_types(right, left);
	types_of_sends(right, left);
	freed_op();
	errors(right, left);
	return chk_end();
}
