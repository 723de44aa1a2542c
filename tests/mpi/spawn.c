/*
 * spawn.c - processes that are started by others: from all of MPI_COMM_WORLD, from the processes that share memory, from each by
 * itself, and of two kinds at once. Where that is not possible it is an error, never a hang.
 */
#include "check.h"

#define CHILDREN 2

/* Both sides: every parent with every child, and a sum over all. */
static void meet(MPI_Comm inter, int child)
{
	int me, n, far, sum, rank, one;
	MPI_Comm both;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_size(inter, &n);
	MPI_Comm_remote_size(inter, &far);
	for (int i = 0; i < far; i++) {
		int out = 100 * me + i, in = -1;

		MPI_Sendrecv(&out, 1, MPI_INT, i, 3, &in, 1, MPI_INT, i, 3, inter, MPI_STATUS_IGNORE);
		CHECK_EQ(in, 100 * i + me);
	}
	MPI_Intercomm_merge(inter, child, &both);
	MPI_Comm_rank(both, &rank);
	CHECK_EQ(rank, child ? far + me : me);
	one = rank + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
	CHECK_EQ(sum, (n + far) * (n + far + 1) / 2);
	/* what failed at the children is known to their parents */
	one = child ? (int)chk_failed : 0;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
	CHECK_EQ(sum, 0);
	MPI_Comm_free(&both);
	MPI_Comm_disconnect(&inter);
}

static int child(MPI_Comm parent, int argc, char **argv)
{
	chk_start("spawn, a child", CHILDREN);
	CHECK_EQ(chk_size, CHILDREN);
	CHECK(argc == 2 && !strcmp(argv[1], "a child"));
	meet(parent, 1);
	MPI_Finalize();
	return 0;
}

/* Did that work? If not, it is an error that says so: MPICH 4.0 over UCX starts nothing. */
static int started(int rc, MPI_Comm inter)
{
	if (rc == MPI_SUCCESS)
		return 1;
	CHECK(chk_class(rc) == MPI_ERR_UNSUPPORTED_OPERATION || chk_class(rc) == MPI_ERR_OTHER ||
		chk_class(rc) == MPI_ERR_SPAWN);
	CHECK(inter == MPI_COMM_NULL || chk_class(rc) != MPI_ERR_UNSUPPORTED_OPERATION);
	return 0;
}

static void from(MPI_Comm c, int root, char *program)
{
	char *argv[] = { "a child", NULL }, *programs[] = { program, program }, **argvs[] = { argv, argv };
	int one[] = { 1, 1 }, codes[CHILDREN] = { -1, -1 };
	MPI_Info infos[] = { MPI_INFO_NULL, MPI_INFO_NULL };
	MPI_Comm inter = MPI_COMM_NULL;

	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	if (!started(MPI_Comm_spawn(program, argv, CHILDREN, MPI_INFO_NULL, root, c, &inter, codes), inter))
		return;
	CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
	meet(inter, 0);
	if (started(MPI_Comm_spawn_multiple(2, programs, argvs, one, infos, root, c, &inter, codes), inter))
		meet(inter, 0);
}

int main(int argc, char **argv)
{
	MPI_Comm parent, c;
	int n;

	MPI_Init(&argc, &argv);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		return child(parent, argc, argv);
	chk_start("spawn", 2);
	from(MPI_COMM_WORLD, chk_size - 1, argv[0]);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -chk_rank, MPI_INFO_NULL, &c);
	MPI_Comm_size(c, &n);
	from(c, n - 1, argv[0]);
	MPI_Comm_free(&c);
	for (int r = 0; r < 2; r++) { /* one after the other: a launcher has only so much room */
		if (r == chk_rank)
			from(MPI_COMM_SELF, 0, argv[0]);
		chk_barrier(MPI_COMM_WORLD);
	}
	return chk_end();
}
