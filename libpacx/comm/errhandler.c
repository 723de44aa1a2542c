/* errhandler.c: the user's error handlers see MPI_COMM_WORLD, not the native communicator that stands for it.
 *
 * A handler gets no argument of its own, so each of the user's functions is put behind one of SLOTS wrappers. A
 * program with more than SLOTS different handlers gets the native handle in the rest of them, which every MPI function takes.
 * What calls the handlers of C++ bindings is put behind a function of ours, too.
 */
#include <dlfcn.h>

#include "bind.h"
#include "comm_find.h"
#include "raise.h"
#include "vendor.h"

#define SLOTS 32

static MPI_Comm_errhandler_function *user[SLOTS];

static void call(int slot, MPI_Comm *comm, int *code)
{
	MPI_Comm c = px_as_known(*comm);

	user[slot](&c, code);
}

/* clang-format off */
#define EACH(X) \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
	X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
/* clang-format on */

#define WRAPPER(i)                                                                                           \
	static void wrapper##i(MPI_Comm *comm, int *code, ...)                                               \
	{                                                                                                    \
		call(i, comm, code);                                                                         \
	}
EACH(WRAPPER)

#define NAME(i) wrapper##i,
static MPI_Comm_errhandler_function *const wrapper[SLOTS] = { EACH(NAME) };

int px_Comm_create_errhandler(MPI_Comm_errhandler_function *fn, MPI_Errhandler *errhandler)
{
	int slot = 0;

	while (slot < SLOTS && user[slot] && user[slot] != fn)
		slot++;
	if (slot == SLOTS)
		return px_n.Comm_create_errhandler(fn, errhandler);
	user[slot] = fn;
	return px_n.Comm_create_errhandler(wrapper[slot], errhandler);
}

#ifdef MPICH_VERSION
/* Of MPICH's C++ bindings: what calls a handler of C++ with a handle of C; kind 0: a communicator's. */
typedef void cxx_call(int kind, int *handle, int *code, void (*fn)(void));

static cxx_call *cxx;

/* What the vendor calls instead. After an error of a native call, the vendor gives MPI_SUCCESS to the bindings, which call the
 * handler themselves otherwise; after one of ours they do, and it has been called. */
static void call_cxx(int kind, int *handle, int *code, void (*fn)(void))
{
	static _Thread_local struct {
		MPI_Comm comm;
		int code; /* or 0 */
	} told;
	int h = *handle;

	if (kind == 0) {
		h = px_as_known(h);
		for (int i = 0; i < SLOTS; i++)
			if (fn == (void (*)(void))wrapper[i])
				fn = (void (*)(void))user[i];
		if (!px_raising && told.code == *code && told.comm == h) {
			told.code = 0;
			return;
		}
		told.code = px_raising ? *code : 0;
		told.comm = h;
	}
	cxx(kind, &h, code, fn);
}

void MPII_Errhandler_set_cxx(MPI_Errhandler errhandler, cxx_call *how);

/* Called by the C++ bindings right behind the creation of an error handler of any kind. */
void MPII_Errhandler_set_cxx(MPI_Errhandler errhandler, cxx_call *how)
{
	void (*vendors)(MPI_Errhandler, cxx_call *) =
		(void (*)(MPI_Errhandler, cxx_call *))px_vendor_symbol("MPII_Errhandler_set_cxx");

	cxx = how;
	if (vendors)
		vendors(errhandler, call_cxx);
}
#endif

#ifdef OPEN_MPI
typedef void cxx_call(MPI_Comm *comm, int *code, const char *message, void *fn);

cxx_call ompi_mpi_cxx_comm_errhandler_invoke;

/* Of Open MPI's C++ bindings, which give the address of it to the library. */
void ompi_mpi_cxx_comm_errhandler_invoke(MPI_Comm *comm, int *code, const char *message, void *fn)
{
	cxx_call *next = (cxx_call *)px_vendor_find(RTLD_NEXT, "ompi_mpi_cxx_comm_errhandler_invoke");
	MPI_Comm c = px_as_known(*comm);

	next(&c, code, message, fn);
}
#endif

#ifdef PX_HAVE_Errhandler_create /* not in the standard ABI */
int px_Errhandler_create(MPI_Comm_errhandler_function *fn, MPI_Errhandler *errhandler)
{
	return px_Comm_create_errhandler(fn, errhandler);
}
#endif
