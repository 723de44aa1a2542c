/*
 * spawn.c - processes that are started by others: from all of MPI_COMM_WORLD, from the processes that share memory, from each by
 * itself, and of two kinds at once. Where that is not possible it is an error, never a hang; with two arguments it has to be
 * possible from MPI_COMM_WORLD: the value of an info key (that a plain MPI does not know), and the program. With a third argument that
 * is all, and the last parent and the first child swap so many bytes.
 */
#include "check.h"

#define CHILDREN 2
#define LONG     300000 /* numbers */

static long long huge; /* bytes */

/* The last parent and the first child, one after the other. */
static void swap_huge(MPI_Comm inter, int me, int far, int child)
{
	enum { ITEM = 65536 };
	int count = (int)(huge / ITEM), there = child ? far - 1 : 0, n;
	MPI_Datatype item;
	MPI_Status st;
	char *p;

	MPI_Comm_size(inter, &n);
	if (count == 0 || me != (child ? 0 : n - 1))
		return;
	p = chk_alloc((size_t)count * ITEM);
	MPI_Type_contiguous(ITEM, MPI_BYTE, &item);
	MPI_Type_commit(&item);
	for (int way = 0; way < 2; way++) {
		if (way == child) {
			for (int i = 0; i < count; i++)
				chk_fill(p + (size_t)i * ITEM, ITEM, chk_seed(way, i, 0, 0));
			MPI_Send(p, count, item, there, 7, inter);
		} else {
			memset(p, 0x55, (size_t)count * ITEM);
			MPI_Recv(p, count, item, there, 7, inter, &st);
			CHECK_STATUS(&st, there, 7, item, count);
			for (int i = 0; i < count; i++)
				CHECK_BYTES(p + (size_t)i * ITEM, ITEM, chk_seed(way, i, 0, 0));
		}
	}
	MPI_Type_free(&item);
	free(p);
}

/* Every parent and every child swap a long message, after a synchronous one that is taken from any source. */
static void swap_long(MPI_Comm inter, int me, int far)
{
	double *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
	MPI_Request *r = malloc((size_t)far * sizeof *r);
	MPI_Status st;
	int k;

	for (int i = 0; i < far; i++)
		MPI_Issend(&me, 1, MPI_INT, i, 5, inter, &r[i]);
	for (int i = 0; i < far; i++) {
		MPI_Recv(&k, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &st);
		CHECK_EQ(k, st.MPI_SOURCE);
	}
	MPI_Waitall(far, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < far; i++) {
		chk_fill(out, LONG * sizeof *out, chk_seed(me, i, 0, 0));
		MPI_Sendrecv(out, LONG, MPI_DOUBLE, i, 6, in, LONG, MPI_DOUBLE, i, 6, inter, &st);
		CHECK_STATUS(&st, i, 6, MPI_DOUBLE, LONG);
		CHECK_BYTES(in, LONG * sizeof *in, chk_seed(i, me, 0, 0));
	}
	free(out);
	free(in);
	free(r);
}

/* What is collective over parents and children, and what they make of their communicator. */
static void together(MPI_Comm inter, MPI_Comm both, int child, int rank, int size)
{
	int x = child ? -1 : 77, far, *all = malloc((size_t)size * sizeof *all), root, me;
	MPI_Comm copy, half;

	MPI_Comm_remote_size(inter, &far);
	MPI_Comm_rank(inter, &me);
	root = child ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
	MPI_Bcast(&x, 1, MPI_INT, root, inter);
	CHECK_EQ(x, 77);
	MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, inter);
	for (int i = 0; i < far; i++)
		CHECK_EQ(all[i], i);
	MPI_Comm_dup(inter, &copy);
	MPI_Barrier(copy);
	MPI_Comm_free(&copy);
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, both);
	for (int i = 0; i < size; i++)
		CHECK_EQ(all[i], i);
	MPI_Comm_split(both, rank % 2, -rank, &half); /* parents and children, in the other order */
	MPI_Comm_rank(half, &me);
	MPI_Comm_size(half, &far);
	CHECK_EQ(me, far - 1 - rank / 2);
	MPI_Scan(&rank, &x, 1, MPI_INT, MPI_MAX, half);
	CHECK_EQ(x, 2 * (far - 1) + rank % 2);
	MPI_Comm_free(&half);
	free(all);
}

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
	swap_long(inter, me, far);
	MPI_Bcast(&huge, 1, MPI_LONG_LONG, child ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
	swap_huge(inter, me, far, child);
	together(inter, both, child, rank, n + far);
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

static void from(MPI_Comm c, int root, char *program, const char *where)
{
	char *argv[] = { "a child", NULL }, *programs[] = { program, program }, **argvs[] = { argv, argv };
	int one[] = { 1, 1 }, codes[CHILDREN] = { -1, -1 };
	MPI_Info infos[] = { MPI_INFO_NULL, MPI_INFO_NULL };
	MPI_Comm inter = MPI_COMM_NULL;
	int rc;

	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	if (where) {
		MPI_Info_create(&infos[0]);
		MPI_Info_set(infos[0], "pacx_site", where);
	}
	rc = MPI_Comm_spawn(program, argv, CHILDREN, infos[0], root, c, &inter, codes);
	CHECK(!where || rc == MPI_SUCCESS);
	if (!started(rc, inter))
		return;
	CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
	meet(inter, 0);
	if (!huge && started(MPI_Comm_spawn_multiple(2, programs, argvs, one, infos, root, c, &inter, codes),
			     inter))
		meet(inter, 0);
	if (where)
		MPI_Info_free(&infos[0]);
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
	huge = chk_arg(argc, argv, 3, 0);
	from(MPI_COMM_WORLD, chk_size - 1, argc > 2 ? argv[2] : argv[0], argc > 2 ? argv[1] : NULL);
	if (huge)
		return chk_end();
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -chk_rank, MPI_INFO_NULL, &c);
	MPI_Comm_size(c, &n);
	from(c, n - 1, argv[0], NULL);
	MPI_Comm_free(&c);
	for (int r = 0; r < 2; r++) { /* one after the other: a launcher has only so much room */
		if (r == chk_rank)
			from(MPI_COMM_SELF, 0, argv[0], NULL);
		chk_barrier(MPI_COMM_WORLD);
	}
	return chk_end();
}
