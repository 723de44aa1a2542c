/*
 * hush - too long messages in blocking receives on a communicator whose error handler is not that of MPI_COMM_WORLD, which ends the job: by name
 * and by wildcard, alone and with a send to the other neighbour or to nobody. The handler is called once, with the communicator; where
 * it is MPI_ERRORS_RETURN the class comes back. MPI_COMM_WORLD's own handler is what it was behind it.
 */
#include "check.h"

static int calls, class;
static MPI_Comm seen;

static void on_error(MPI_Comm *comm, int *code, ...)
{
	calls++;
	seen = *comm;
	class = chk_class(*code);
}

/* A message of 20 ints from the left, for which there is room for 2. */
static void one(MPI_Comm d, int how, int any, int counted)
{
	int n = chk_size, left = (chk_rank + n - 1) % n, right = (chk_rank + 1) % n, out[20] = { 0 }, in[2],
	    rc, token = 7, src = any ? MPI_ANY_SOURCE : left;
	MPI_Request q;
	MPI_Status st;

	MPI_Barrier(d);
	calls = class = 0;
	seen = MPI_COMM_NULL;
	MPI_Isend(out, 20, MPI_INT, right, 6, d, &q);
	switch (how) {
	case 0:
		rc = MPI_Recv(in, 2, MPI_INT, src, 6, d, &st);
		break;
	case 1:
		rc = MPI_Sendrecv(&token, 1, MPI_INT, right, 7, in, 2, MPI_INT, src, 6, d, &st);
		MPI_Recv(&token, 1, MPI_INT, left, 7, d, MPI_STATUS_IGNORE);
		break;
	default:
		rc = MPI_Sendrecv(&token, 1, MPI_INT, MPI_PROC_NULL, 7, in, 2, MPI_INT, src, 6, d, &st);
	}
	CHECK_EQ(chk_class(rc), MPI_ERR_TRUNCATE);
	CHECK_EQ(calls, counted);
	if (counted) {
		CHECK_EQ(class, MPI_ERR_TRUNCATE);
		CHECK(seen == d);
	}
	MPI_Wait(&q, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	MPI_Errhandler h, w;
	MPI_Comm d;

	chk_begin(&argc, &argv, "hush", 2);
	MPI_Comm_dup(MPI_COMM_WORLD, &d);
	for (int own = 0; own < 2; own++) {
		if (own)
			MPI_Comm_create_errhandler(on_error, &h);
		MPI_Comm_set_errhandler(d, own ? h : MPI_ERRORS_RETURN);
		for (int how = 0; how < 3; how++)
			for (int any = 0; any < 2; any++)
				one(d, how, any, own);
	}
	MPI_Errhandler_free(&h);
	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &w);
	CHECK(w == MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&d);
	return chk_end();
}
