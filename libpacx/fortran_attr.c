/* fortran_attr.c: the attribute functions of Fortran, which reach no C function of MPI.
 *
 * Both vendors' Fortran attr_{put,get}, comm_{set,get}_attr and win_get_attr call internals. Here they are exported under every
 * name a compiler may call. A user's attribute on MPI_COMM_WORLD goes to the communicator that stands for it; the
 * predefined ones are those of the C function. Called by Fortran code only; the real function is the next one of the same name.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "attr.h"
#include "bind.h"
#include "comm_find.h"
#include "err.h"
#include "lock.h"
#include "rma/win_attr.h"
#include "rma/win_find.h"
#include "vendor.h"

typedef void put_fn(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *ierr);
typedef void get_fn(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr);

#ifdef OPEN_MPI
static const char *const front[] = { "libmpi_mpifh.so.40", "libmpi_usempif08.so.40" };
#else
static const char *const front[] = { "libmpichfort.so.12", "libmpich.so.12" };
#endif

static void *next(const char *name)
{
	void *p = dlsym(RTLD_NEXT, name), *lib;

	/* A Fortran library that came with a private dlopen is not in the search order after us. */
	for (size_t i = 0; !p && i < sizeof front / sizeof front[0]; i++) {
		lib = dlopen(front[i], RTLD_NOLOAD | RTLD_LAZY);
		if (lib)
			p = dlsym(lib, name);
	}
	if (!p) {
		px_log(PX_LOG_ERROR, "the MPI library's Fortran function %s is not loaded", name);
		abort(); /* a Fortran program without its MPI library cannot have called us */
	}
	return p;
}

static MPI_Fint fortran(MPI_Comm comm)
{
#ifdef OPEN_MPI
	return px_n.Comm_c2f(comm);
#else
	return (MPI_Fint)comm;
#endif
}

/* The C number of a Fortran keyval: MPICH's predefined ones are one apart. */
static int c_keyval(MPI_Fint keyval)
{
#ifdef OPEN_MPI
	return keyval;
#else
	bool comm = keyval > MPI_TAG_UB && keyval <= MPI_APPNUM + 1;
	bool win = keyval > MPI_WIN_BASE && keyval <= MPI_WIN_MODEL + 1;

	return (keyval & 1) == 0 && (comm || win) ? keyval - 1 : keyval;
#endif
}

static bool predefined(int keyval)
{
	return keyval == MPI_TAG_UB || keyval == MPI_HOST || keyval == MPI_IO ||
	       keyval == MPI_WTIME_IS_GLOBAL || keyval == MPI_UNIVERSE_SIZE || keyval == MPI_APPNUM ||
	       keyval == MPI_LASTUSEDCODE;
}

static void put(put_fn *real, MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *ierr)
{
	MPI_Fint c = *comm == fortran(MPI_COMM_WORLD) ? fortran(px_world_native) : *comm;

	real(&c, keyval, value, ierr);
	if (px_active && *ierr == MPI_SUCCESS) {
		px_lock();
		if (c == fortran(px_world_native) || c == fortran(MPI_COMM_SELF))
			*ierr = px_attr_note(
				c == fortran(MPI_COMM_SELF) ? MPI_COMM_SELF : px_world_native, *keyval);
		px_unlock();
	}
}

static MPI_Comm from_fortran(MPI_Fint comm)
{
#ifdef OPEN_MPI
	return px_n.Comm_f2c(comm);
#else
	return (MPI_Comm)comm;
#endif
}

/* A predefined attribute: what the C function says. The vendor's own function is asked only for what .TRUE. is. */
static MPI_Fint get_predefined(get_fn *real, bool aint, MPI_Fint comm, int key, void *value, MPI_Fint *flag)
{
	MPI_Fint world = fortran(MPI_COMM_WORLD), tag_ub = MPI_TAG_UB, yes = 1, ierr;
	int *v, found = 0, rc;
	MPI_Aint scratch;

	px_lock();
	rc = px_Comm_get_attr(PX_MAP(from_fortran(comm)), key, (void *)&v, &found);
	px_unlock();
	if (rc != MPI_SUCCESS)
		return rc;
	real(&world, &tag_ub, &scratch, &yes, &ierr);
	*flag = found ? yes : 0;
	if (found && aint)
		*(MPI_Aint *)value = *v;
	else if (found)
		*(MPI_Fint *)value = *v;
	return MPI_SUCCESS;
}

/* aint: the value is INTEGER(KIND=MPI_ADDRESS_KIND), not INTEGER. */
static void get(get_fn *real, bool aint, MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag,
	MPI_Fint *ierr)
{
	MPI_Fint c = *comm == fortran(MPI_COMM_WORLD) ? fortran(px_world_native) : *comm;
	int key = c_keyval(*keyval);

	if (px_active && predefined(key))
		*ierr = get_predefined(real, aint, *comm, key, value, flag);
	else
		real(&c, keyval, value, flag, ierr);
}

#define PUT(name)                                                                                            \
	put_fn name;                                                                                         \
	void name(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *ierr)                             \
	{                                                                                                    \
		static put_fn *real;                                                                         \
                                                                                                             \
		if (!real)                                                                                   \
			real = (put_fn *)(uintptr_t)next(#name);                                             \
		put(real, comm, keyval, value, ierr);                                                        \
	}

#define GET(name, aint)                                                                                      \
	get_fn name;                                                                                         \
	void name(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr)             \
	{                                                                                                    \
		static get_fn *real;                                                                         \
                                                                                                             \
		if (!real)                                                                                   \
			real = (get_fn *)(uintptr_t)next(#name);                                             \
		get(real, aint, comm, keyval, value, flag, ierr);                                            \
	}

/* Predefined attributes of our windows are not the vendor's; the user's are on the native window. */
static void get_win(
	get_fn *real, MPI_Fint *win, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr)
{
	bool ours = false;
	struct px_win *w;
	void *p;

#ifdef OPEN_MPI
	w = px_win_find(px_n.Win_f2c(*win));
#else
	w = px_win_find((MPI_Win)*win);
#endif
	real(win, keyval, value, flag, ierr);
	if (!w)
		return;
	px_lock();
	ours = px_win_predefined(w, c_keyval(*keyval), &p);
	px_unlock();
	if (!ours || !*flag)
		return;
	if (c_keyval(*keyval) == MPI_WIN_BASE)
		*(MPI_Aint *)value = (MPI_Aint)(intptr_t)p;
	else if (c_keyval(*keyval) == MPI_WIN_SIZE)
		*(MPI_Aint *)value = *(MPI_Aint *)p;
	else
		*(MPI_Aint *)value = *(int *)p;
}

#define GET_WIN(name)                                                                                        \
	get_fn name;                                                                                         \
	void name(MPI_Fint *win, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr)              \
	{                                                                                                    \
		static get_fn *real;                                                                         \
                                                                                                             \
		if (!real)                                                                                   \
			real = (get_fn *)(uintptr_t)next(#name);                                             \
		get_win(real, win, keyval, value, flag, ierr);                                               \
	}

#define ALL(X, lower, upper)                                                                                 \
	X(mpi_##lower)                                                                                       \
	X(mpi_##lower##_)                                                                                    \
	X(mpi_##lower##__)                                                                                   \
	X(MPI_##upper) X(pmpi_##lower) X(pmpi_##lower##_) X(pmpi_##lower##__) X(PMPI_##upper)
#define GET_FINT(name) GET(name, false)
#define GET_AINT(name) GET(name, true)

ALL(PUT, attr_put, ATTR_PUT)
ALL(PUT, comm_set_attr, COMM_SET_ATTR)
ALL(GET_FINT, attr_get, ATTR_GET)
ALL(GET_AINT, comm_get_attr, COMM_GET_ATTR)
ALL(GET_WIN, win_get_attr, WIN_GET_ATTR)

/* What the mpi_f08 modules call. */
#ifdef OPEN_MPI
PUT(ompi_attr_put_f)
PUT(ompi_comm_set_attr_f)
GET_FINT(ompi_attr_get_f)
GET_AINT(ompi_comm_get_attr_f)
GET_WIN(ompi_win_get_attr_f)
#else
PUT(mpi_comm_set_attr_f08_)
GET_AINT(mpi_comm_get_attr_f08_)
PUT(pmpir_comm_set_attr_f08_)
GET_AINT(pmpir_comm_get_attr_f08_)
GET_WIN(mpi_win_get_attr_f08_)
GET_WIN(pmpir_win_get_attr_f08_)
#endif
