/* fortran_attr.c: the attribute functions of Fortran, which reach no C function of MPI.
 *
 * Both vendors' Fortran attr_{put,get}, comm_{set,get}_attr and win_get_attr call internals, and so do Open MPI's keyval_create and
 * comm_create_keyval. Here they are exported under every name a compiler may call. A user's attribute on MPI_COMM_WORLD goes to the
 * communicator that stands for it; the predefined ones are those of the C function. Called by Fortran code only; with no ierror by mpi_f08 programs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vendor.h"

#ifndef PX_ABI /* which has no Fortran yet */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "bind.h"
#include "comm_find.h"
#include "err.h"
#include "front.h"
#include "loaded.h"
#include "lock.h"
#include "win_attr.h"
#include "win_find.h"

typedef void put_fn(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *ierr);
typedef void get_fn(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr);

#ifdef OPEN_MPI
static const char *const libs[] = { "libmpi_mpifh.so.40", "libmpi_usempif08.so.40" };
#else
static const char *const libs[] = { "libmpichfort.so.12", "libmpich.so.12" };
#endif

/* The vendor's function: first by its library, for the next one of that name may be another tool's, or none, if the Fortran library
 * came with a private dlopen. */
static void *vendors(const char *name)
{
	void *p = NULL, *lib;

	for (size_t i = 0; !p && i < sizeof libs / sizeof libs[0]; i++)
		if ((lib = dlopen(libs[i], RTLD_NOLOAD | RTLD_LAZY)))
			p = px_vendor_find(lib, name);
	if (!p && !(p = px_loaded_behind(name))) {
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
	MPI_Fint c = *comm == fortran(MPI_COMM_WORLD) ? fortran(px_world_native) : *comm, nobody;

	if (!ierr)
		ierr = &nobody;
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
	MPI_Fint nobody;

	if (!ierr)
		ierr = &nobody;
	if (px_active && predefined(key))
		*ierr = get_predefined(real, aint, *comm, key, value, flag);
	else
		real(&c, keyval, value, flag, ierr);
}

#ifdef OPEN_MPI
/* The user's functions for attributes see MPI_COMM_WORLD: as in keyval.c; but MPI_KEYVAL_CREATE's extra state has no room for a pointer, so
 * it says which of `behind`. Arrays that have become too short stay, as other threads may be reading them. */
typedef void copy_fn(MPI_Fint *comm, MPI_Fint *keyval, void *extra, void *value, void *copy, MPI_Fint *flag,
	MPI_Fint *ierr);
typedef void delete_fn(MPI_Fint *comm, MPI_Fint *keyval, void *value, void *extra, MPI_Fint *ierr);
typedef void keyval_fn(copy_fn *copy, delete_fn *del, MPI_Fint *keyval, void *extra, MPI_Fint *ierr);

struct functions {
	copy_fn *copy;
	delete_fn *del;
	MPI_Aint extra;
};

static struct functions *_Atomic behind;
static int nbehind, room;

/* Their place in `behind`, or -1: no memory. */
static int place_of(copy_fn *copy, delete_fn *del, MPI_Aint extra)
{
	struct functions *f = behind, *more;

	for (int i = 0; i < nbehind; i++)
		if (f[i].copy == copy && f[i].del == del && f[i].extra == extra)
			return i;
	if (nbehind == room) {
		more = malloc((size_t)(2 * room + 8) * sizeof *more);
		if (!more)
			return -1;
		if (f)
			memcpy(more, f, (size_t)nbehind * sizeof *f);
		room = 2 * room + 8;
		behind = f = more;
	}
	f[nbehind] = (struct functions){ copy, del, extra };
	return nbehind++;
}

static MPI_Fint as_known(MPI_Fint comm)
{
	return comm == fortran(px_world_native) ? fortran(MPI_COMM_WORLD) : comm;
}

/* type: that of extra states and values. */
#define BEHIND(kind, type)                                                                                   \
	static void copy_##kind(MPI_Fint *comm, MPI_Fint *keyval, void *extra, void *value, void *copy,      \
		MPI_Fint *flag, MPI_Fint *ierr)                                                              \
	{                                                                                                    \
		const struct functions *f = behind + *(type *)extra;                                         \
		MPI_Fint c = as_known(*comm);                                                                \
		type x = (type)f->extra;                                                                     \
		f->copy(&c, keyval, &x, value, copy, flag, ierr);                                            \
	}                                                                                                    \
	static void delete_##kind(                                                                           \
		MPI_Fint *comm, MPI_Fint *keyval, void *value, void *extra, MPI_Fint *ierr)                  \
	{                                                                                                    \
		const struct functions *f = behind + *(type *)extra;                                         \
		MPI_Fint c = as_known(*comm);                                                                \
		type x = (type)f->extra;                                                                     \
		f->del(&c, keyval, value, &x, ierr);                                                         \
	}                                                                                                    \
	static void create_##kind(keyval_fn *real, copy_fn *copy, delete_fn *del, MPI_Fint *keyval,          \
		void *extra, MPI_Fint *ierr)                                                                 \
	{                                                                                                    \
		type place;                                                                                  \
		MPI_Fint nobody;                                                                             \
		if (!ierr)                                                                                   \
			ierr = &nobody;                                                                      \
		if (!px_active) {                                                                            \
			real(copy, del, keyval, extra, ierr);                                                \
			return;                                                                              \
		}                                                                                            \
		px_lock();                                                                                   \
		place = (type)place_of(copy, del, *(type *)extra);                                           \
		px_unlock();                                                                                 \
		if (place < 0)                                                                               \
			*ierr = MPI_ERR_NO_MEM;                                                              \
		else                                                                                         \
			real(copy_##kind, delete_##kind, keyval, &place, ierr);                              \
	}
BEHIND(fint, MPI_Fint)
BEHIND(aint, MPI_Aint)
#endif

/* own_X is libpacx's; X goes to another tool's function if one stands behind us (front.h), else to own_X. */
#define ENTRY(name, type, ours, args, ...)                                                                   \
	type name;                                                                                           \
	static void own_##name args                                                                          \
	{                                                                                                    \
		static type *real;                                                                           \
                                                                                                             \
		if (!real)                                                                                   \
			real = (type *)(uintptr_t)vendors(#name);                                            \
		ours;                                                                                        \
	}                                                                                                    \
	void name args                                                                                       \
	{                                                                                                    \
		static type *to;                                                                             \
                                                                                                             \
		if (!to && !(to = (type *)px_front_tool(#name)))                                             \
			to = own_##name;                                                                     \
		to(__VA_ARGS__);                                                                             \
	}

#define PUT(name)                                                                                            \
	ENTRY(name, put_fn, put(real, comm, keyval, value, ierr),                                            \
		(MPI_Fint * comm, MPI_Fint * keyval, void *value, MPI_Fint *ierr), comm, keyval, value,      \
		ierr)
#define GET(name, aint)                                                                                      \
	ENTRY(name, get_fn, get(real, aint, comm, keyval, value, flag, ierr),                                \
		(MPI_Fint * comm, MPI_Fint * keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr), comm,     \
		keyval, value, flag, ierr)
#define GET_FINT(name) GET(name, false)
#define GET_AINT(name) GET(name, true)

/* Predefined attributes of our windows are not the vendor's; the user's are on the native window. */
static void get_win(
	get_fn *real, MPI_Fint *win, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr)
{
	bool ours = false;
	struct px_win *w;
	MPI_Fint nobody;
	void *p;

	if (!ierr)
		ierr = &nobody;
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
	ENTRY(name, get_fn, get_win(real, comm, keyval, value, flag, ierr),                                  \
		(MPI_Fint * comm, MPI_Fint * keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr), comm,     \
		keyval, value, flag, ierr)

#ifdef OPEN_MPI
#define KEYVAL(name, kind)                                                                                   \
	ENTRY(name, keyval_fn, create_##kind(real, copy, del, keyval, extra, ierr),                          \
		(copy_fn * copy, delete_fn * del, MPI_Fint * keyval, void *extra, MPI_Fint *ierr), copy,     \
		del, keyval, extra, ierr)
#define KEYVAL_FINT(name) KEYVAL(name, fint)
#define KEYVAL_AINT(name) KEYVAL(name, aint)
#endif

#define ALL(X, lower, upper)                                                                                 \
	X(mpi_##lower)                                                                                       \
	X(mpi_##lower##_)                                                                                    \
	X(mpi_##lower##__)                                                                                   \
	X(MPI_##upper) X(pmpi_##lower) X(pmpi_##lower##_) X(pmpi_##lower##__) X(PMPI_##upper)

/* The last ones are what the mpi_f08 modules call. */
#ifdef OPEN_MPI
#define F08(P, GF, GA, GW)                                                                                   \
	P(ompi_attr_put_f)                                                                                   \
	P(ompi_comm_set_attr_f) GF(ompi_attr_get_f) GA(ompi_comm_get_attr_f) GW(ompi_win_get_attr_f)
#define KEYVALS(KF, KA)                                                                                      \
	ALL(KF, keyval_create, KEYVAL_CREATE)                                                                \
	ALL(KA, comm_create_keyval, COMM_CREATE_KEYVAL)                                                      \
	KF(ompi_keyval_create_f) KA(ompi_comm_create_keyval_f)
#else
#define KEYVALS(KF, KA) /* reach the C function */
#define F08(P, GF, GA, GW)                                                                                   \
	P(mpi_comm_set_attr_f08_)                                                                            \
	P(pmpir_comm_set_attr_f08_)                                                                          \
	GA(mpi_comm_get_attr_f08_)                                                                           \
	GA(pmpir_comm_get_attr_f08_) GW(mpi_win_get_attr_f08_) GW(pmpir_win_get_attr_f08_)
#endif
#define NAMES(P, GF, GA, GW)                                                                                 \
	ALL(P, attr_put, ATTR_PUT)                                                                           \
	ALL(P, comm_set_attr, COMM_SET_ATTR)                                                                 \
	ALL(GF, attr_get, ATTR_GET)                                                                          \
	ALL(GA, comm_get_attr, COMM_GET_ATTR)                                                                \
	ALL(GW, win_get_attr, WIN_GET_ATTR)                                                                  \
	F08(P, GF, GA, GW)
NAMES(PUT, GET_FINT, GET_AINT, GET_WIN)
KEYVALS(KEYVAL_FINT, KEYVAL_AINT)

px_any_fn *px_fortran_own(const char *name)
{
#define ROW(n) { #n, (px_any_fn *)own_##n },
	static const struct {
		const char *name;
		px_any_fn *own;
	} names[] = { NAMES(ROW, ROW, ROW, ROW) KEYVALS(ROW, ROW) };

	if (!strstr(name, "attr") && !strstr(name, "ATTR") && !strstr(name, "keyval") &&
		!strstr(name, "KEYVAL"))
		return NULL;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i].name) == 0)
			return names[i].own;
	return NULL;
}
#endif
