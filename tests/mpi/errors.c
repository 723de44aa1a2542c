/*
 * errors - wrong arguments under MPI_ERRORS_RETURN give the right class and harm nothing; a handler of the user's is
 * called with the communicator of the call and a code of the right class; handlers are inherited by dup.
 */
#include "check.h"

static MPI_Comm seen_comm;
static int seen_class, calls;

static void handler(MPI_Comm *comm, int *code, ...)
{
	seen_comm = *comm;
	seen_class = chk_class(*code);
	calls++;
}

/* Which call a bad argument is given to. */
static int bad_calls(MPI_Comm comm, int i)
{
	int b[4] = { 0, 0, 0, 0 }, n, flag;
	MPI_Request q = MPI_REQUEST_NULL;

	MPI_Comm_size(comm, &n);
	switch (i) {
	case 0:
		return MPI_Send(b, 1, MPI_INT, n, 0, comm);
	case 1:
		return MPI_Isend(b, 1, MPI_INT, -77, 0, comm, &q);
	case 2:
		return MPI_Recv(b, 1, MPI_INT, n + 3, 0, comm, MPI_STATUS_IGNORE);
	case 3:
		return MPI_Irecv(b, 1, MPI_INT, n, 0, comm, &q);
	case 4:
		return MPI_Send(b, 1, MPI_INT, 0, -44, comm);
	case 5:
		return MPI_Recv(b, 1, MPI_INT, 0, -44, comm, MPI_STATUS_IGNORE);
	case 6:
		return MPI_Send(b, -1, MPI_INT, 0, 0, comm);
	case 7:
		return MPI_Irecv(b, -1, MPI_INT, 0, 0, comm, &q);
	case 8:
		return MPI_Send(b, 1, MPI_DATATYPE_NULL, 0, 0, comm);
	case 9:
		return MPI_Bcast(b, 1, MPI_INT, n, comm);
	case 10:
		return MPI_Reduce(b, b + 1, 1, MPI_INT, MPI_SUM, -5, comm);
	case 11:
		return MPI_Ssend(b, 1, MPI_INT, n, 0, comm);
	case 12:
		return MPI_Send_init(b, 1, MPI_INT, n, 0, comm, &q);
	case 13:
		return MPI_Probe(n, 0, comm, MPI_STATUS_IGNORE);
	case 14:
		return MPI_Iprobe(0, -44, comm, &flag, MPI_STATUS_IGNORE);
	case 15:
		return MPI_Gather(b, 1, MPI_INT, b, 1, MPI_INT, n, comm);
	case 16:
		return MPI_Sendrecv(b, 1, MPI_INT, n, 0, b + 1, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
	default:
		return MPI_Send(b, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm);
	}
}

static const int *class_of(int i)
{
	static int c[18];

	for (int k = 0; k < 18; k++)
		c[k] = MPI_ERR_RANK;
	c[4] = c[5] = c[14] = MPI_ERR_TAG;
	c[6] = c[7] = MPI_ERR_COUNT;
	c[8] = MPI_ERR_TYPE;
	c[9] = c[10] = c[15] = MPI_ERR_ROOT;
	return &c[i];
}

static void still_works(MPI_Comm comm)
{
	int r, n, got = -1;

	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 5, &got, 1, MPI_INT, (r + n - 1) % n, 5, comm,
		MPI_STATUS_IGNORE);
	CHECK_EQ(got, (r + n - 1) % n);
}

static void all_bad(MPI_Comm comm, int with_handler)
{
	for (int i = 0; i < 18; i++) {
		int before = calls, class;

		seen_comm = MPI_COMM_NULL;
		class = chk_class(bad_calls(comm, i));
		if (!CHECK_EQ(class, *class_of(i)))
			fprintf(stderr, "  bad call %d\n", i);
		if (with_handler) {
			CHECK_EQ(calls, before + 1);
			if (!CHECK(seen_comm == comm) || !CHECK_EQ(seen_class, *class_of(i)))
				fprintf(stderr, "  bad call %d\n", i);
		} else {
			CHECK_EQ(calls, before);
		}
	}
	still_works(comm);
}

/* No room for what a call gives back. Those that both vendors check in all their versions. */
static void no_output(void)
{
	MPI_Group group, none = MPI_GROUP_NULL;
	int rank = 0;

	MPI_Comm_group(MPI_COMM_WORLD, &group);
	CHECK_EQ(chk_class(MPI_Comm_size(MPI_COMM_WORLD, NULL)), MPI_ERR_ARG);
	CHECK_EQ(chk_class(MPI_Comm_rank(MPI_COMM_WORLD, NULL)), MPI_ERR_ARG);
	CHECK_EQ(chk_class(MPI_Comm_group(MPI_COMM_WORLD, NULL)), MPI_ERR_ARG);
	CHECK_EQ(chk_class(MPI_Group_size(group, NULL)), MPI_ERR_ARG);
	CHECK_EQ(chk_class(MPI_Group_rank(group, NULL)), MPI_ERR_ARG);
	CHECK_EQ(chk_class(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 0, 1, NULL)), MPI_ERR_ARG);
	MPI_Group_incl(group, 1, &rank, &none);
	CHECK(none != MPI_GROUP_NULL);
	MPI_Group_free(&none);
	MPI_Group_free(&group);
}

/* A datatype that is not committed, among all pairs of sites; committed, it is as good as any. */
static void not_committed(MPI_Comm comm)
{
	int to = (chk_rank + chk_size / 2) % chk_size, b[2] = { 1, 2 }, got[2] = { 0 };
	int from = (chk_rank + chk_size - chk_size / 2) % chk_size;
	MPI_Request q = MPI_REQUEST_NULL;
	MPI_Datatype t;

	MPI_Type_contiguous(2, MPI_INT, &t);
	CHECK_EQ(chk_class(MPI_Send(b, 1, t, to, 5, comm)), MPI_ERR_TYPE);
	CHECK_EQ(chk_class(MPI_Irecv(got, 1, t, from, 5, comm, &q)), MPI_ERR_TYPE);
	CHECK(q == MPI_REQUEST_NULL);
	CHECK_EQ(chk_class(MPI_Recv(got, 1, t, MPI_ANY_SOURCE, 5, comm, MPI_STATUS_IGNORE)), MPI_ERR_TYPE);
	MPI_Type_commit(&t);
	MPI_Irecv(got, 1, t, from, 5, comm, &q);
	CHECK_EQ(chk_class(MPI_Send(b, 1, t, to, 5, comm)), MPI_SUCCESS);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	CHECK_EQ(got[0] + 10 * got[1], 21);
	MPI_Type_free(&t);
}

/* An empty message of no datatype: some MPIs look at it, others do not, but the same in every communicator. */
static void no_type(void)
{
	MPI_Datatype none = MPI_DATATYPE_NULL;
	MPI_Request q[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	int to = (chk_rank + 1) % chk_size, from = (chk_rank + chk_size - 1) % chk_size, class;

	class = chk_class(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_SELF));
	CHECK(class == MPI_SUCCESS || class == MPI_ERR_TYPE);
	CHECK_EQ(chk_class(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD)), class);
	CHECK_EQ(chk_class(MPI_Recv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)),
		class);
	if (class != MPI_SUCCESS)
		none = MPI_INT;
	MPI_Irecv(NULL, 0, none, from, 6, MPI_COMM_WORLD, &q[0]);
	MPI_Isend(NULL, 0, none, to, 6, MPI_COMM_WORLD, &q[1]);
	CHECK_EQ(chk_class(MPI_Waitall(2, q, MPI_STATUSES_IGNORE)), MPI_SUCCESS);
	MPI_Send_init(NULL, 0, none, to, 6, MPI_COMM_WORLD, &q[1]);
	CHECK_EQ(chk_class(MPI_Start(&q[1])), MPI_SUCCESS);
	CHECK_EQ(chk_class(MPI_Recv(NULL, 0, none, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPI_SUCCESS);
	MPI_Wait(&q[1], MPI_STATUS_IGNORE);
	MPI_Request_free(&q[1]);
}

int main(int argc, char **argv)
{
	MPI_Errhandler h, got;
	MPI_Comm dup, dup2, half;
	char text[MPI_MAX_ERROR_STRING];
	int len, class, code;

	chk_begin(&argc, &argv, "errors", 1);
	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
	CHECK(got == MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&got);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	all_bad(MPI_COMM_WORLD, 0);
	no_output();
	no_type();
	not_committed(MPI_COMM_WORLD);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	all_bad(dup, 0); /* inherited */
	not_committed(dup);

	MPI_Comm_create_errhandler(handler, &h);
	MPI_Comm_set_errhandler(dup, h);
	all_bad(dup, 1);
	MPI_Comm_dup(dup, &dup2);
	all_bad(dup2, 1);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 2, 0, &half);
	MPI_Comm_set_errhandler(half, h);
	all_bad(half, 1);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	MPI_Errhandler_free(&h); /* the communicators keep it */
	CHECK(h == MPI_ERRHANDLER_NULL);
	all_bad(MPI_COMM_WORLD, 1);
	all_bad(dup, 1);
	MPI_Comm_get_errhandler(dup, &got);
	CHECK(got != MPI_ERRORS_RETURN && got != MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(dup2, got);
	MPI_Errhandler_free(&got);
	all_bad(dup2, 1);

	/* called by hand, and user-defined classes and codes */
	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Add_error_string(code, "seven");
	calls = 0;
	MPI_Comm_call_errhandler(dup, code);
	CHECK_EQ(calls, 1);
	CHECK_EQ(seen_class, class);
	CHECK(seen_comm == dup);
	MPI_Error_string(code, text, &len);
	CHECK(!strcmp(text, "seven"));
	MPI_Error_string(MPI_ERR_RANK, text, &len);
	CHECK(len > 0 && text[0]);

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	calls = 0;
	MPI_Comm gone = MPI_COMM_NULL;
	CHECK_EQ(chk_class(MPI_Send(text, 1, MPI_CHAR, 0, 0, gone)), MPI_ERR_COMM);
	CHECK_EQ(calls, 0);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&half);
	MPI_Comm_free(&dup2);
	MPI_Comm_free(&dup);
	return chk_end();
}
