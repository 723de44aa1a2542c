/* keyval.c: the user's functions for attributes see MPI_COMM_WORLD, not the native communicator that stands for it.
 *
 * Each pair of them is put behind two of ours, whose extra state says what they stand for. It is kept for ever, as nobody can tell when the last
 * attribute of a keyval is gone; keyvals that are alike share it. MPICH's C++ and Fortran bindings make keyvals by the C function,
 * and then say how such functions are to be called, so there that is put behind functions of ours, too. (Those of Open MPI: its Fortran
 * functions are in fortran_attr.c; what its C++ bindings make sees the native communicator, which every MPI function takes.)
 */
#include <stdint.h>
#include <stdlib.h>

#include "bind.h"
#include "comm_find.h"
#include "lock.h"
#include "vendor.h"

#ifdef MPICH_VERSION
typedef int copy_proxy(MPI_Comm_copy_attr_function *fn, int handle, int keyval, void *extra, int type,
	void *value, void **copy, int *flag);
typedef int delete_proxy(
	MPI_Comm_delete_attr_function *fn, int handle, int keyval, int type, void *value, void *extra);
#endif

struct functions {
	struct functions *next;
	MPI_Comm_copy_attr_function *copy;
	MPI_Comm_delete_attr_function *del;
	void *extra;
#ifdef MPICH_VERSION
	copy_proxy *call_copy; /* NULL: as a C function */
	delete_proxy *call_delete;
#endif
};

static struct functions *known;

static int on_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
	const struct functions *f = extra;

	return f->copy(px_as_known(comm), keyval, f->extra, value, copy, flag);
}

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
	const struct functions *f = extra;

	return f->del(px_as_known(comm), keyval, value, f->extra);
}

/* MPI_COMM_NULL_COPY_FN and its kin are functions of the vendor's like any other, or, in MPICH and in the standard ABI, 0 and 1. (Their names would bind
 * libpacx to one library of the vendor's.) */
static bool function(uintptr_t fn)
{
	return fn > 1;
}

static struct functions *functions_of(
	MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *del, void *extra)
{
	struct functions *f = known;

	while (f && (f->copy != copy || f->del != del || f->extra != extra))
		f = f->next;
	if (!f && (f = malloc(sizeof *f))) {
		*f = (struct functions){ .next = known, .copy = copy, .del = del, .extra = extra };
		known = f;
	}
	return f;
}

#ifdef MPICH_VERSION
/* What this thread has made last. */
static _Thread_local struct {
	int keyval;
	struct functions *f;
} made = { MPI_KEYVAL_INVALID, NULL };

static int call_copy(MPI_Comm_copy_attr_function *fn, int handle, int keyval, void *extra, int type,
	void *value, void **copy, int *flag)
{
	const struct functions *f = extra;

	return f->call_copy(
		fn == on_copy ? f->copy : fn, px_as_known(handle), keyval, f->extra, type, value, copy, flag);
}

static int call_delete(
	MPI_Comm_delete_attr_function *fn, int handle, int keyval, int type, void *value, void *extra)
{
	const struct functions *f = extra;

	return f->call_delete(
		fn == on_delete ? f->del : fn, px_as_known(handle), keyval, type, value, f->extra);
}

void MPII_Keyval_set_proxy(int keyval, copy_proxy *copy, delete_proxy *del);

/* Called by the C++ and Fortran bindings right behind the creation of a keyval of any kind. */
void MPII_Keyval_set_proxy(int keyval, copy_proxy *copy, delete_proxy *del)
{
	void (*vendors)(int, copy_proxy *, delete_proxy *) =
		(void (*)(int, copy_proxy *, delete_proxy *))px_vendor_symbol("MPII_Keyval_set_proxy");

	if (made.f && made.keyval == keyval) {
		made.f->call_copy = copy;
		made.f->call_delete = del;
		copy = call_copy;
		del = call_delete;
	}
	if (vendors)
		vendors(keyval, copy, del);
}
#endif

int px_Comm_create_keyval(
	MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *del, int *keyval, void *extra)
{
	struct functions *f = NULL;
	int rc;

	if (function((uintptr_t)copy) || function((uintptr_t)del)) {
		f = functions_of(copy, del, extra);
		if (!f)
			return MPI_ERR_NO_MEM;
	}
	rc = px_n.Comm_create_keyval(function((uintptr_t)copy) ? on_copy : copy,
		function((uintptr_t)del) ? on_delete : del, keyval, f ? f : extra);
#ifdef MPICH_VERSION
	made.keyval = rc == MPI_SUCCESS ? *keyval : MPI_KEYVAL_INVALID;
	made.f = f;
#endif
	return rc;
}

#ifdef PX_HAVE_Keyval_create /* not in the standard ABI */
int px_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *del, int *keyval, void *extra)
{
	return px_Comm_create_keyval(copy, del, keyval, extra);
}
#endif
