/* dlsym_hook.c: MPI found by dlopen and dlsym is libpacx's, too.
 *
 * Programs find MPI by a handle of the vendor's library (ctypes, Julia, numba, plug-ins that probe), where the linker would
 * give them the vendor's functions, past us. So dlsym stands here in front of libc's: when it has found the vendor's MPI_X or
 * PMPI_X and libpacx has its own, that is the answer. Everything else is left as it was, RTLD_NEXT and the caller's
 * RUNPATH included: those depend on the return address, so the real function is reached by a jump (a sibling call,
 * which tests/daemon/interpose_test.py proves), never by a call. RTLD_NEXT of a tool that stands behind us in the search
 * order would pass us by; there the search is done by loaded.h.
 *
 * (dlvsym finds nothing in the vendors' libraries: their symbols have no versions.)
 *
 * dlopen drops RTLD_DEEPBIND, with which a plug-in would bind to the vendor's functions before it sees ours. A second copy of the MPI
 * library, from another file or in a namespace of its own (dlmopen), has a world of its own: that ends the job. Who looks up libc's
 * dlopen to stand in front of it gets ours: UCX does from 1.18 on, in its own scope, where we are not, and writes a wrapper of
 * what it has found into the tables of all that is loaded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef __GNUC__
#ifndef __clang__
#pragma GCC optimize("O2") /* sibling calls also in a build without optimisation */
#endif
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "comm_find.h"
#include "front.h"
#include "init.h"
#include "loaded.h"
#include "vendor.h"

#if defined __has_attribute
#if __has_attribute(musttail)
#define JUMP __attribute__((musttail)) return
#endif
#endif
#ifndef JUMP
#define JUMP return
#endif
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

typedef void *sym_fn(void *handle, const char *name);
typedef void *open_fn(const char *file, int mode);
typedef void *mopen_fn(Lmid_t where, const char *file, int mode);

/* The next function of that name behind libpacx. Works before any constructor, allocates nothing. */
static void *real(void **cache, const char *name)
{
	void *f = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (!f) {
		f = px_loaded_behind(name);
		__atomic_store_n(cache, f, __ATOMIC_RELAXED);
	}
	return f;
}

static void *sym, *opens, *mopens;
#define REAL(type, cache, name) ((type *)(uintptr_t)real(&(cache), name))

/* own: libpacx's own function of that name. All other names leave by the first test, before anything is called. */
static px_any_fn *own(const char *name)
{
	const char *n = name + (*name == 'P' || *name == 'p' || *name == 'o');
	px_any_fn *f;

	if ((n[0] != 'M' || n[1] != 'P' || n[2] != 'I') && (n[0] != 'm' || n[1] != 'p' || n[2] != 'i'))
		return NULL;
	f = px_front_own(name);
	return f ? f : px_fortran_own(name);
}

/* ours: what a search that found `found` for name gets. */
static void *ours(void *found, const char *name)
{
	Dl_info where;
	char why[300];

	if (!found)
		return NULL;
	if (found == px_vendor_symbol(name))
		return (void *)(uintptr_t)own(name);
	if (!dladdr(found, &where))
		return found;
	if (!px_front_own(name)) /* Fortran: the vendor's front end, whichever it is */
		return px_vendor_front(where.dli_fname) ? (void *)(uintptr_t)own(name) : found;
	if (px_active && px_vendor_owns(where.dli_fname)) {
		snprintf(why, sizeof why,
			"a second copy of an MPI library is loaded: %s was found in %s, but PACX stands in "
			"front of the one "
			"that the dynamic linker finds by its name",
			name, where.dli_fname);
		px_give_up(why);
	}
	return found;
}

/* behind: RTLD_NEXT for a caller that stands behind libpacx in the search order; NULL when the real one knows better. */
static void *behind(const void *caller, const char *name)
{
	if (!px_loaded_before((const void *)(uintptr_t)behind, caller))
		return NULL;
	return ours(px_loaded_next(caller, name), name);
}

/* is_dlopen: without strcmp, which a sanitizer may not have ready yet. */
static bool is_dlopen(const char *name)
{
	static const char want[] = "dlopen";
	size_t i = 0;

	while (i < sizeof want - 1 && name[i] == want[i])
		i++;
	return name[i] == want[i];
}

/* opener: our dlopen for the one that it goes on to; what is behind that one (another tool's next) is left as it is. */
static void *opener(void *found)
{
	return found && found == real(&opens, "dlopen") ? (void *)(uintptr_t)dlopen : found;
}

PLAIN void *dlsym(void *restrict handle, const char *restrict name)
{
	void *found;

	if (px_active && handle != RTLD_DEFAULT && handle != RTLD_NEXT && is_dlopen(name))
		return opener(REAL(sym_fn, sym, "dlsym")(handle, name));
	if (handle == RTLD_DEFAULT || !own(name)) /* the default order has us before the vendor */
		JUMP REAL(sym_fn, sym, "dlsym")(handle, name);
	if (handle != RTLD_NEXT)
		return ours(REAL(sym_fn, sym, "dlsym")(handle, name), name);
	if ((found = behind(__builtin_return_address(0), name)))
		return found;
	JUMP REAL(sym_fn, sym, "dlsym")(handle, name);
}

PLAIN void *dlopen(const char *file, int mode)
{
	JUMP REAL(open_fn, opens, "dlopen")(file, px_active ? mode & ~RTLD_DEEPBIND : mode);
}

/* Is an MPI library among what was loaded together with this handle? */
static const char *mpi_beside(void *handle)
{
	struct link_map *m = NULL;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &m) != 0)
		return NULL;
	while (m && m->l_prev)
		m = m->l_prev;
	while (m && !px_vendor_owns(m->l_name))
		m = m->l_next;
	return m ? m->l_name : NULL;
}

PLAIN void *dlmopen(Lmid_t where, const char *file, int mode)
{
	void *handle = NULL;
	const char *mpi;
	char why[300];

	if (!px_active || where == LM_ID_BASE)
		JUMP REAL(mopen_fn, mopens, "dlmopen")(where, file, px_active ? mode & ~RTLD_DEEPBIND : mode);
	handle = REAL(mopen_fn, mopens, "dlmopen")(where, file, mode);
	if (!handle) /* perhaps only the caller's RUNPATH has it; then this goes unseen */
		JUMP REAL(mopen_fn, mopens, "dlmopen")(where, file, mode);
	if ((mpi = mpi_beside(handle))) {
		snprintf(why, sizeof why,
			"dlmopen of %s loaded a second MPI library, %s, where PACX cannot reach it",
			file ? file : "", mpi);
		px_give_up(why);
	}
	return handle;
}
