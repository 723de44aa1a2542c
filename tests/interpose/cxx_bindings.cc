// cxx_bindings.cc - the MPI:: bindings, directly and through a library: communicators, reductions, a message in a ring; operators, attributes, error
// handlers and exceptions of C++.
#include <cstdio>

#include "ring.h"

static int handled, copied;
static MPI::Intracomm expected;

static void handler(MPI::Comm &comm, int *, ...)
{
	handled += comm == expected;
}

static int copy(const MPI::Comm &comm, int, void *, void *in, void *out, bool &flag)
{
	copied += comm.Get_size() == expected.Get_size();
	*(void **)out = in;
	flag = true;
	return MPI::SUCCESS;
}

static void larger(const void *in, void *inout, int n, const MPI::Datatype &t)
{
	for (int i = 0; i < n && t == MPI::INT; i++)
		if (((const int *)in)[i] > ((int *)inout)[i])
			((int *)inout)[i] = ((const int *)in)[i];
}

/* Handlers of the world, of a duplicate, and its own again; true: each was called with its communicator. */
static bool callbacks(int rank, int size)
{
	MPI::Errhandler e = MPI::Comm::Create_errhandler(handler);
	int key = MPI::Comm::Create_keyval(copy, MPI::Comm::NULL_DELETE_FN, 0), out = -1, flag;
	void *value;
	bool thrown = false;
	MPI::Op op;

	expected = MPI::COMM_WORLD;
	expected.Set_errhandler(e);
	expected.Set_attr(key, &handled);
	expected.Call_errhandler(MPI_ERR_OTHER);
	MPI::Intracomm dup = MPI::COMM_WORLD.Dup();
	flag = dup.Get_attr(key, &value);
	expected = dup;
	dup.Call_errhandler(MPI_ERR_OTHER);
	dup.Send(&rank, 1, MPI::INT, size, 0); /* no such rank */
#ifdef MPICH_VERSION
	MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
	try {
		MPI::COMM_WORLD.Send(&rank, 1, MPI::INT, size, 0);
	} catch (MPI::Exception &x) {
		thrown = x.Get_error_class() == MPI::ERR_RANK;
	}
#else /* Debian's Open MPI is built without exceptions */
	thrown = true;
#endif
	op.Init(larger, true);
	dup.Allreduce(&rank, &out, 1, MPI::INT, op);
	op.Free();
	dup.Free();
	MPI::Comm::Free_keyval(key);
	e.Free();
	return handled == 3 && copied == 1 && flag && value == &handled && thrown && out == size - 1;
}

int main(int argc, char **argv)
{
	MPI::Init(argc, argv);
	int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
	MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
	int sum = 0, all = ring_sum(MPI::COMM_WORLD, rank);
	half.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
	/* One write: MPICH makes stdout unbuffered, and the pieces of std::cout would mingle with those of other ranks, as natively. */
	std::printf("cxx rank %d of %d clean %d all %d half %d callbacks %d\n", rank, size, ring_clean(), all, sum,
		callbacks(rank, size));
	half.Free();
	MPI::Finalize();
	return 0;
}
