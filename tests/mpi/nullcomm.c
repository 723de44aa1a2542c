/*
 * nullcomm - MPI_COMM_NULL is MPI_ERR_COMM for every function that takes a communicator, through the handler of
 * MPI_COMM_WORLD, and harms nothing. (Not here: MPI_Iprobe, MPI_Mprobe,
 * MPI_Improbe and MPI_Allgather, where Open MPI 4.1 itself ends the program or crashes.)
 */
#include "check.h"

static const MPI_Comm null = MPI_COMM_NULL;
static int calls;

static void handler(MPI_Comm *comm, int *code, ...)
{
	CHECK(*comm == MPI_COMM_WORLD ||
		*comm == MPI_COMM_SELF); /* MPI-4: errors without a communicator are SELF's */
	CHECK_EQ(chk_class(*code), MPI_ERR_COMM);
	calls++;
}

#define IS_COMM(call)                                                                                        \
	do {                                                                                                 \
		int before = calls;                                                                          \
		CHECK_EQ(chk_class(call), MPI_ERR_COMM);                                                     \
		CHECK_EQ(calls, before + handled);                                                           \
	} while (0)

static void point_to_point(int handled)
{
	int b[4] = { 0 };
	MPI_Request q;

	IS_COMM(MPI_Send(b, 1, MPI_INT, 0, 0, null));
	IS_COMM(MPI_Bsend(b, 1, MPI_INT, 0, 0, null));
	IS_COMM(MPI_Ssend(b, 1, MPI_INT, 0, 0, null));
	IS_COMM(MPI_Rsend(b, 1, MPI_INT, 0, 0, null));
	IS_COMM(MPI_Recv(b, 1, MPI_INT, 0, 0, null, MPI_STATUS_IGNORE));
	IS_COMM(MPI_Isend(b, 1, MPI_INT, 0, 0, null, &q));
	IS_COMM(MPI_Issend(b, 1, MPI_INT, 0, 0, null, &q));
	IS_COMM(MPI_Irecv(b, 1, MPI_INT, 0, 0, null, &q));
	IS_COMM(MPI_Send_init(b, 1, MPI_INT, 0, 0, null, &q));
	IS_COMM(MPI_Recv_init(b, 1, MPI_INT, 0, 0, null, &q));
	IS_COMM(MPI_Sendrecv(b, 1, MPI_INT, 0, 0, b + 1, 1, MPI_INT, 0, 0, null, MPI_STATUS_IGNORE));
	IS_COMM(MPI_Sendrecv_replace(b, 1, MPI_INT, 0, 0, 0, 0, null, MPI_STATUS_IGNORE));
}

static void collectives(int handled)
{
	int b[8] = { 0 }, one = 1, zero = 0;
	MPI_Datatype t = MPI_INT;
	MPI_Request q;

	IS_COMM(MPI_Barrier(null));
	IS_COMM(MPI_Bcast(b, 1, MPI_INT, 0, null));
	IS_COMM(MPI_Gather(b, 1, MPI_INT, b + 4, 1, MPI_INT, 0, null));
	IS_COMM(MPI_Gatherv(b, 1, MPI_INT, b + 4, &one, &zero, MPI_INT, 0, null));
	IS_COMM(MPI_Scatter(b, 1, MPI_INT, b + 4, 1, MPI_INT, 0, null));
	IS_COMM(MPI_Allgatherv(b, 1, MPI_INT, b + 4, &one, &zero, MPI_INT, null));
	IS_COMM(MPI_Alltoall(b, 1, MPI_INT, b + 4, 1, MPI_INT, null));
	IS_COMM(MPI_Alltoallw(b, &one, &zero, &t, b + 4, &one, &zero, &t, null));
	IS_COMM(MPI_Reduce(b, b + 4, 1, MPI_INT, MPI_SUM, 0, null));
	IS_COMM(MPI_Allreduce(b, b + 4, 1, MPI_INT, MPI_SUM, null));
	IS_COMM(MPI_Reduce_scatter(b, b + 4, &one, MPI_INT, MPI_SUM, null));
	IS_COMM(MPI_Reduce_scatter_block(b, b + 4, 1, MPI_INT, MPI_SUM, null));
	IS_COMM(MPI_Scan(b, b + 4, 1, MPI_INT, MPI_SUM, null));
	IS_COMM(MPI_Exscan(b, b + 4, 1, MPI_INT, MPI_SUM, null));
	IS_COMM(MPI_Ibarrier(null, &q));
	IS_COMM(MPI_Ibcast(b, 1, MPI_INT, 0, null, &q));
	IS_COMM(MPI_Iallreduce(b, b + 4, 1, MPI_INT, MPI_SUM, null, &q));
	IS_COMM(MPI_Ialltoall(b, 1, MPI_INT, b + 4, 1, MPI_INT, null, &q));
}

static void communicators(int handled)
{
	int x, y, flag, zero = 0, one = 1;
	char name[MPI_MAX_OBJECT_NAME] = "";
	MPI_Errhandler h;
	MPI_Comm c = MPI_COMM_NULL, d;
	MPI_Group g, world;
	MPI_Request q;
	MPI_Info info;
	void *v;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	IS_COMM(MPI_Comm_rank(null, &x));
	IS_COMM(MPI_Comm_size(null, &x));
	IS_COMM(MPI_Comm_remote_size(null, &x));
	IS_COMM(MPI_Comm_test_inter(null, &x));
	IS_COMM(MPI_Comm_group(null, &g));
	IS_COMM(MPI_Comm_remote_group(null, &g));
	IS_COMM(MPI_Comm_compare(null, MPI_COMM_WORLD, &x));
	IS_COMM(MPI_Comm_compare(MPI_COMM_WORLD, null, &x));
	IS_COMM(MPI_Comm_compare(null, MPI_COMM_SELF, &x));
	IS_COMM(MPI_Comm_dup(null, &d));
	IS_COMM(MPI_Comm_idup(null, &d, &q));
	IS_COMM(MPI_Comm_dup_with_info(null, MPI_INFO_NULL, &d));
	IS_COMM(MPI_Comm_split(null, 0, 0, &d));
	IS_COMM(MPI_Comm_split_type(null, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &d));
	IS_COMM(MPI_Comm_create(null, world, &d));
	IS_COMM(MPI_Comm_create_group(null, world, 0, &d));
	IS_COMM(MPI_Comm_free(&c));
	IS_COMM(MPI_Comm_disconnect(&c));
	IS_COMM(MPI_Comm_set_name(null, "x"));
#if MPI_VERSION * 10 + MPI_SUBVERSION < 41 /* from then on it has a name */
	IS_COMM(MPI_Comm_get_name(null, name, &x));
#else
	(void)name;
#endif
	IS_COMM(MPI_Comm_get_info(null, &info));
	IS_COMM(MPI_Comm_get_attr(null, MPI_TAG_UB, &v, &flag));
	IS_COMM(MPI_Comm_get_attr(null, MPI_APPNUM, &v, &flag));
	IS_COMM(MPI_Comm_set_errhandler(null, MPI_ERRORS_RETURN));
	IS_COMM(MPI_Comm_get_errhandler(null, &h));
	IS_COMM(MPI_Intercomm_create(null, 0, MPI_COMM_WORLD, 0, 0, &d));
	IS_COMM(MPI_Intercomm_merge(null, 0, &d));
	IS_COMM(MPI_Cart_create(null, 1, &one, &zero, 0, &d));
	IS_COMM(MPI_Cartdim_get(null, &x));
	IS_COMM(MPI_Cart_rank(null, &zero, &x));
	IS_COMM(MPI_Cart_shift(null, 0, 1, &x, &y));
	IS_COMM(MPI_Cart_sub(null, &one, &d));
	IS_COMM(MPI_Graph_create(null, 1, &zero, &zero, 0, &d));
	IS_COMM(MPI_Dist_graph_create_adjacent(null, 0, &zero, &one, 0, &zero, &one, MPI_INFO_NULL, 0, &d));
	IS_COMM(MPI_Topo_test(null, &x));
	IS_COMM(MPI_Pack_size(1, MPI_INT, null, &x));
	MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
	MPI_Errhandler h;

	chk_begin(&argc, &argv, "nullcomm", 1);
	MPI_Comm_create_errhandler(handler, &h);
	for (int handled = 0; handled < 2; handled++) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, handled ? h : MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, handled ? h : MPI_ERRORS_RETURN);
		point_to_point(handled);
		collectives(handled);
		communicators(handled);
		chk_barrier(MPI_COMM_WORLD);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&h);
	return chk_end();
}
