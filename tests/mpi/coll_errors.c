/*
 * coll_errors - wrong arguments that only some vendors mind, and only in collectives: one buffer for both directions, an operator that
 * is not for a type. What a vendor says of them on MPI_COMM_SELF is what every rank is told on communicators of all, at once, and by
 * the nonblocking forms; and what is right goes on.
 */
#include "check.h"

enum { CALLS = 15, K = 3 };

/* Call i with in and out, or its nonblocking form; counts of K elements. */
static int call(int i, int nonblocking, int *in, int *out, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
	MPI_Request q = MPI_REQUEST_NULL;
	int n, me, rc;

	MPI_Comm_size(c, &n);
	MPI_Comm_rank(c, &me);
	int counts[64], displs[64], bytes[64];
	MPI_Datatype types[64];
	for (int r = 0; r < n; r++) {
		counts[r] = K;
		displs[r] = K * r;
		bytes[r] = (int)sizeof(int) * K * r;
		types[r] = t;
	}
#define FORM(blocking, starts)                                                                               \
	rc = nonblocking ? (starts) : (blocking);                                                            \
	break
	switch (i) {
	case 0:
		FORM(MPI_Allreduce(in, out, K, t, op, c), MPI_Iallreduce(in, out, K, t, op, c, &q));
	case 1:
		FORM(MPI_Scan(in, out, K, t, op, c), MPI_Iscan(in, out, K, t, op, c, &q));
	case 2:
		FORM(MPI_Exscan(in, out, K, t, op, c), MPI_Iexscan(in, out, K, t, op, c, &q));
	case 3:
		FORM(MPI_Reduce_scatter(in, out, counts, t, op, c),
			MPI_Ireduce_scatter(in, out, counts, t, op, c, &q));
	case 4:
		FORM(MPI_Reduce_scatter_block(in, out, K, t, op, c),
			MPI_Ireduce_scatter_block(in, out, K, t, op, c, &q));
	case 5:
		FORM(MPI_Reduce(in, out, K, t, op, 0, c), MPI_Ireduce(in, out, K, t, op, 0, c, &q));
	case 6:
		FORM(MPI_Alltoall(in, K, t, out, K, t, c), MPI_Ialltoall(in, K, t, out, K, t, c, &q));
	case 7:
		FORM(MPI_Alltoallv(in, counts, displs, t, out, counts, displs, t, c),
			MPI_Ialltoallv(in, counts, displs, t, out, counts, displs, t, c, &q));
	case 8:
		FORM(MPI_Alltoallw(in, counts, bytes, types, out, counts, bytes, types, c),
			MPI_Ialltoallw(in, counts, bytes, types, out, counts, bytes, types, c, &q));
	case 9:
		FORM(MPI_Gather(in, K, t, out, K, t, 0, c), MPI_Igather(in, K, t, out, K, t, 0, c, &q));
	case 10:
		FORM(MPI_Gatherv(in, K, t, out, counts, displs, t, 0, c),
			MPI_Igatherv(in, K, t, out, counts, displs, t, 0, c, &q));
	case 11:
		FORM(MPI_Scatter(in, K, t, out, K, t, 0, c), MPI_Iscatter(in, K, t, out, K, t, 0, c, &q));
	case 12:
		FORM(MPI_Scatterv(in, counts, displs, t, out, K, t, 0, c),
			MPI_Iscatterv(in, counts, displs, t, out, K, t, 0, c, &q));
	case 13: /* a rank's own place, for which the address is not the same */
		FORM(MPI_Allgather(in + K * me, K, t, out, K, t, c),
			MPI_Iallgather(in + K * me, K, t, out, K, t, c, &q));
	default:
		FORM(MPI_Allgatherv(in + K * me, K, t, out, counts, displs, t, c),
			MPI_Iallgatherv(in + K * me, K, t, out, counts, displs, t, c, &q));
	}
	if (rc == MPI_SUCCESS && q != MPI_REQUEST_NULL)
		rc = MPI_Wait(&q, MPI_STATUS_IGNORE);
	return chk_class(rc);
}

static int reduces(int i)
{
	return i < 6;
}

/* Those in which only the root is wrong, and the others would wait for it. */
static int rooted(int i)
{
	return i == 5 || (i >= 9 && i <= 12);
}

/* Do all ranks get the same from call i on a communicator of their own? Then what. */
static int everywhere(int i, int nonblocking, int *in, int *out, MPI_Datatype t, MPI_Op op)
{
	int mine = call(i, nonblocking, in, out, t, op, MPI_COMM_SELF), low, high;

	MPI_Allreduce(&mine, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	return low == high ? low : MPI_SUCCESS;
}

static void right(MPI_Comm c)
{
	int n, r, *in, *out;

	MPI_Comm_size(c, &n);
	MPI_Comm_rank(c, &r);
	in = chk_alloc(sizeof *in * (size_t)(K * n));
	out = chk_alloc(sizeof *out * (size_t)(K * n));
	for (int i = 0; i < K * n; i++)
		in[i] = r + 1;
	CHECK_EQ(call(0, 0, in, out, MPI_INT, MPI_SUM, c), MPI_SUCCESS);
	CHECK_EQ(out[0], n * (n + 1) / 2);
	CHECK_EQ(call(6, 1, in, out, MPI_INT, MPI_SUM, c), MPI_SUCCESS);
	CHECK_EQ(out[K * (n - 1)], n);
	CHECK_EQ(MPI_Allreduce(in, out, 1, MPI_BYTE, MPI_BOR, c), MPI_SUCCESS);
	free(in);
	free(out);
}

/* op MPI_OP_NULL: all calls, which are right but for their buffers. */
static void wrong(MPI_Comm c, MPI_Datatype t, MPI_Op op, int *in, int *out, const char *what)
{
	MPI_Op with = op == MPI_OP_NULL ? MPI_SUM : op;
	int me;

	MPI_Comm_rank(c, &me);
	for (int i = 0; i < CALLS; i++)
		for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
			int class;

			if (op != MPI_OP_NULL && !reduces(i))
				continue;
			class = everywhere(i, nonblocking, in, out, t, with);
			/* What the vendor lets pass is not defined to have a result. */
			if (class == MPI_SUCCESS || (rooted(i) && me != 0))
				continue;
			if (!CHECK_EQ(call(i, nonblocking, in, out, t, with, c), class))
				fprintf(stderr, "  %s, call %d%s\n", what, i,
					nonblocking ? ", nonblocking" : "");
		}
	right(c);
}

int main(int argc, char **argv)
{
	MPI_Comm turned;
	int *b;

	chk_begin(&argc, &argv, "coll_errors", 1);
	b = chk_alloc(sizeof *b * 2 * (size_t)(K * chk_size));
	memset(b, 0, sizeof *b * 2 * (size_t)(K * chk_size));
	MPI_Comm_split(MPI_COMM_WORLD, 0, -chk_rank, &turned);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(turned, MPI_ERRORS_RETURN);
	wrong(MPI_COMM_WORLD, MPI_INT, MPI_OP_NULL, b, b, "one buffer");
	wrong(turned, MPI_INT, MPI_OP_NULL, b, b, "one buffer");
	wrong(MPI_COMM_WORLD, MPI_BYTE, MPI_MAX, b, b + K * chk_size, "MPI_MAX of bytes");
	wrong(turned, MPI_DOUBLE, MPI_BXOR, b, b + K * chk_size, "MPI_BXOR of doubles");
	wrong(turned, MPI_2INT, MPI_SUM, b, b + K * chk_size, "MPI_SUM of pairs");
	MPI_Comm_free(&turned);
	free(b);
	return chk_end();
}
