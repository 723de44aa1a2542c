/*
 * handles.c - handles of all kinds as integers and back (MPI-5), used by what came back; what the machine's resources and the ABI are
 * asked for.  If a rank's MPI is older it says "handles: skipped".
 */
#include "check.h"

#if MPI_VERSION >= 5

#define BACK(Kind, handle) CHECK(MPI_##Kind##_fromint(MPI_##Kind##_toint(handle)) == (handle))

static void communicators(void)
{
	MPI_Comm dup, back;
	MPI_Group group;
	int sum = 0;

	BACK(Comm, MPI_COMM_WORLD);
	BACK(Comm, MPI_COMM_SELF);
	BACK(Comm, MPI_COMM_NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	back = MPI_Comm_fromint(MPI_Comm_toint(dup));
	CHECK(back == dup);
	MPI_Allreduce(&chk_rank, &sum, 1, MPI_INT, MPI_SUM, back);
	CHECK_EQ(sum, chk_size * (chk_size - 1) / 2);
	MPI_Comm_group(back, &group);
	BACK(Group, group);
	MPI_Group_size(MPI_Group_fromint(MPI_Group_toint(group)), &sum);
	CHECK_EQ(sum, chk_size);
	MPI_Group_free(&group);
	MPI_Comm_free(&back);
}

static void messages(void)
{
	int left = (chk_rank + chk_size - 1) % chk_size, right = (chk_rank + 1) % chk_size,
	    got[2] = { -1, -1 };
	MPI_Request req[2];
	MPI_Message m;
	MPI_Status st;

	BACK(Request, MPI_REQUEST_NULL);
	BACK(Message, MPI_MESSAGE_NULL);
	BACK(Message, MPI_MESSAGE_NO_PROC);
	MPI_Irecv(&got[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &req[0]);
	BACK(Request, req[0]);
	req[0] = MPI_Request_fromint(MPI_Request_toint(req[0]));
	MPI_Isend(&chk_rank, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	CHECK_EQ(got[0], left);
	MPI_Isend(&chk_rank, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &req[1]);
	MPI_Mprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &m, &st);
	BACK(Message, m);
	m = MPI_Message_fromint(MPI_Message_toint(m));
	MPI_Mrecv(&got[1], 1, MPI_INT, &m, &st);
	CHECK_STATUS(&st, left, 2, MPI_INT, 1);
	CHECK(got[1] == left && m == MPI_MESSAGE_NULL);
	MPI_Wait(&req[1], MPI_STATUS_IGNORE);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void others(void)
{
	MPI_Datatype type;
	MPI_Errhandler handler;
	MPI_Info info;
	MPI_Op op;
	MPI_Win win;
	int sum[2] = { 0 }, mine[2] = { chk_rank, 1 }, room = 0, size = 0;

	BACK(Type, MPI_INT);
	BACK(Op, MPI_SUM);
	BACK(Errhandler, MPI_ERRORS_RETURN);
	BACK(File, MPI_FILE_NULL);
	BACK(Session, MPI_SESSION_NULL);
	MPI_Type_contiguous(2, MPI_INT, &type);
	MPI_Type_commit(&type);
	BACK(Type, type);
	MPI_Type_size(MPI_Type_fromint(MPI_Type_toint(type)), &size);
	CHECK_EQ(size, 2 * (int)sizeof(int));
	MPI_Op_create(add, 1, &op);
	BACK(Op, op);
	MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_Op_fromint(MPI_Op_toint(op)), MPI_COMM_WORLD);
	CHECK(sum[0] == chk_size * (chk_size - 1) / 2 && sum[1] == chk_size);
	MPI_Win_create(&room, sizeof room, sizeof room, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	BACK(Win, win);
	win = MPI_Win_fromint(MPI_Win_toint(win));
	MPI_Win_fence(0, win);
	MPI_Put(&chk_rank, 1, MPI_INT, (chk_rank + 1) % chk_size, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	CHECK_EQ(room, (chk_rank + chk_size - 1) % chk_size);
	MPI_Win_get_errhandler(win, &handler);
	BACK(Errhandler, handler);
	MPI_Errhandler_free(&handler);
	MPI_Win_free(&win);
	MPI_Info_create(&info);
	BACK(Info, info);
	MPI_Info_free(&info);
	MPI_Op_free(&op);
	MPI_Type_free(&type);
}

static void queries(void)
{
	int major = -2, minor = -2, n = -1;
	MPI_Info info = MPI_INFO_NULL;

	CHECK_EQ(MPI_Get_hw_resource_info(&info), MPI_SUCCESS);
	CHECK_EQ(MPI_Info_get_nkeys(info, &n), MPI_SUCCESS);
	CHECK(n >= 0);
	MPI_Info_free(&info);
	CHECK_EQ(MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
	CHECK((major == -1 && minor == -1) || (major >= 1 && minor >= 0));
	CHECK_EQ(MPI_Abi_get_info(&info), MPI_SUCCESS);
	CHECK(info != MPI_INFO_NULL);
	MPI_Info_free(&info);
}

#define HAVE 1
static void all_of_it(void)
{
	communicators();
	messages();
	others();
	queries();
}
#else
#define HAVE 0
static void all_of_it(void)
{
}
#endif

int main(int argc, char **argv)
{
	int have = HAVE, all = 0;

	chk_begin(&argc, &argv, "handles", 2);
	MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!all) {
		if (chk_rank == 0)
			printf("handles: skipped, the MPI of some rank is older than 5.0\n");
		return MPI_Finalize();
	}
	all_of_it();
	return chk_end();
}
