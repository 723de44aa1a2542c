/* vendor.c: see vendor.h.
 *
 * Design. The vendor library is found by asking the dynamic linker for the object that is already loaded
 * (RTLD_NOLOAD): dlsym on that handle searches the library and what it depends on, never us. That happens when the
 * first function of px_n is called, be it in a constructor of a library that is initialised before this one: px_n starts
 * full of functions that load and then call what has taken their place. px_vendor_seal
 * repairs the other direction: the vendor's own calls of public names, which the dynamic linker has bound to us,
 * are bound back. The Fortran, C++ and Java front ends are not sealed: their calls are the application's.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vendor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "err.h"
#include "hello.h"
#include "loaded.h"

#include "vendor_first.h" /* px_n, full of functions that load first */

static void *vendor; /* set when px_n is complete */

/* By which names the library may be loaded: its own first, then those of the same ABI. */
static const char *const libs[] = {
	PX_MPI_SONAME,
#if !defined(OPEN_MPI) && !defined(PX_ABI)
	"libmpich.so.12",
	"libmpi.so.12",
#endif
};

#define X(name) #name,
static const char *const names[] = { PX_NATIVE_NAMES(X) };
#undef X

void *px_vendor_find(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		real = (void *(*)(void *, const char *))(uintptr_t)px_loaded_behind("dlsym");
	return real(handle, name);
}

/* No lock, on purpose: it may be called within dlopen, whose lock another thread that waits for ours would want. Two
 * threads at once do the same twice. */
int px_vendor_load(void)
{
	void *lib = NULL;
	void **table = (void **)(void *)&px_n; /* nothing but function pointers, in the order of names[] */
	char full[128];
	void *const *lacking = (void *const *)(const void *)&px_lacking;
	unsigned missing = 0;

	if (vendor)
		return PX_OK;
	for (size_t i = 0; i < sizeof libs / sizeof libs[0] && !lib; i++)
		lib = dlopen(libs[i], RTLD_NOLOAD | RTLD_LAZY);
	if (!lib) {
		px_log(PX_LOG_ERROR,
			"no " PX_VENDOR " library (%s) is loaded in this process; "
			"use the libpacx of the MPI the program is linked with",
			libs[0]);
		return PX_EMPI;
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *f;

		full[0] = 'P';
		strcpy(full + 1, strncmp(names[i], "X_", 2) ? "MPI_" : "MPI"); /* MPIX_ */
		strncat(full, names[i], sizeof full - 6);
		f = px_vendor_find(lib, full);
		if (!f)
			f = px_vendor_find(lib, full + 1);
		__atomic_store_n(&table[i], f ? f : lacking[i], __ATOMIC_RELEASE);
		missing += !f;
	}
	if (missing)
		px_log(PX_LOG_DEBUG, "%u functions of mpi.h are not in the " PX_VENDOR " library", missing);
	__atomic_store_n(&vendor, lib, __ATOMIC_RELEASE);
	return PX_OK;
}

void px_vendor_first(void)
{
	if (px_vendor_load() < 0)
		abort(); /* nothing works without it; it has said why */
}

int px_vendor_open(void)
{
	const char *named = getenv("PACX_LIBMPI");
	void *lib = NULL;

	if (named && *named) {
		lib = dlopen(named, RTLD_NOW | RTLD_GLOBAL);
		if (!lib) {
			px_log(PX_LOG_ERROR, "PACX_LIBMPI: %s", dlerror());
			return PX_EMPI;
		}
	}
	for (size_t i = 0; i < sizeof libs / sizeof libs[0] && !lib; i++)
		lib = dlopen(libs[i], RTLD_NOW | RTLD_GLOBAL);
	if (!lib)
		px_log(PX_LOG_ERROR, "no " PX_VENDOR " library can be loaded: %s", dlerror());
	return lib ? px_vendor_load() : PX_EMPI;
}

/* The file of the loaded MPI library, NULL when none is. */
static const char *library_path(void)
{
	Dl_info where;
	void *f = px_vendor_symbol("MPI_Init");

	return f && dladdr(f, &where) ? where.dli_fname : NULL;
}

int px_vendor_lacking(const char *name)
{
	const char *path = library_path();

	px_log(PX_LOG_ERROR, "%s: the MPI library of this program, %s (%s), has no such function", name,
		px_vendor_name(), path ? path : "?");
	px_n.Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_UNSUPPORTED_OPERATION);
	return MPI_ERR_UNSUPPORTED_OPERATION;
}

/* The compiler command that belongs to an MPI library, as well as its path tells. */
static void compiler_of(const char *path, char *text, size_t cap)
{
	const char *lib = path ? strstr(path, "/lib") : NULL;

	if (!lib || strncmp(path, "/usr/lib", 8) == 0 || strncmp(path, "/lib", 4) == 0)
		snprintf(text, cap, "mpicc." PX_VENDOR);
	else
		snprintf(text, cap, "%.*s/bin/mpicc", (int)(lib - path), path);
}

/* fits: versions of one ABI. MPICH and its kin have kept theirs since 3.1; Open MPI keeps it within a major version; the
 * standard's is in the name of the library. */
static bool fits(const char *loaded)
{
#ifdef OPEN_MPI
	return strncmp(loaded, "Open MPI ", 9) == 0 && atoi(loaded + 9) == OMPI_MAJOR_VERSION;
#elif defined(PX_ABI)
	return *loaded != '\0';
#else
	return strncmp(loaded, "Open MPI ", 9) != 0;
#endif
}

bool px_vendor_fits(char *why, size_t cap)
{
	const char *loaded = px_vendor_name(), *path = library_path();
	char compiler[512];

	if (fits(loaded))
		return true;
	compiler_of(path, compiler, sizeof compiler);
	snprintf(why, cap,
		"this program has loaded %s (%s), and this libpacx is built for " PX_MPI_IDENTITY
		"; `make MPI=%s` in PACX's source builds the one that fits (pacxctl mpis shows which are "
		"there)",
		loaded, path ? path : "?", compiler);
	return false;
}

void *px_vendor_symbol(const char *name)
{
	return px_vendor_load() < 0 ? NULL : px_vendor_find(vendor, name);
}

static bool begins(const char *path, const char *const prefix[])
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	for (; *prefix; prefix++)
		if (strncmp(base, *prefix, strlen(*prefix)) == 0)
			return true;
	return false;
}

/* The library of the standard ABI, in Debian libmpi_abi_VENDOR.so, too. */
static const char *const standard[] = { "libmpi_abi", NULL };

bool px_vendor_front(const char *path)
{
	static const char *const front[] = { "libmpi_", "libmpichfort", "libmpichcxx", "libmpichf90",
		"libmpifort", "libmpicxx", NULL };

	return begins(path, front) && !begins(path, standard);
}

bool px_vendor_owns(const char *path)
{
	static const char *const own[] = { "libmpi.so", "libmpich.so", "mca_", "libopen-", "libopen_mpi",
		"libmca_", NULL };

	return begins(path, own) || begins(path, standard);
}

/* MPICH's Fortran MPI-IO lies inside libmpich.so and calls MPI_File_X (never PMPI_): that is the application calling.
 * Of the file functions libpacx exports only those that take a communicator; they keep their binding to us. */
static bool is_front_end_call(const char *name)
{
	return !PX_OVER_OPENMPI && strncmp(name, "MPI_File_", 9) == 0;
}

/* Store one pointer on a page that may be read-only after relocation (RELRO). */
static void patch(void **slot, void *to, const ElfW(Phdr) * relro, ElfW(Addr) base)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)slot;
	void *start = (void *)(at & ~(page - 1));
	bool locked = relro && at >= base + relro->p_vaddr && at < base + relro->p_vaddr + relro->p_memsz;

	if (locked && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
		return;
	__atomic_store_n(slot, to, __ATOMIC_RELEASE);
	if (locked)
		mprotect(start, page, PROT_READ);
}

static void fix(const struct px_loaded *o, const px_reloc *rel, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof *rel; i++) {
		unsigned type = (unsigned)PX_R_TYPE(rel[i].r_info);
		const char *name = o->str + o->sym[PX_R_SYM(rel[i].r_info)].st_name;
		void **slot = (void **)(o->base + rel[i].r_offset), *to;

		if (type != PX_R_JUMP_SLOT && type != PX_R_GLOB_DAT)
			continue;
		if ((strncmp(name, "MPI_", 4) != 0 && strncmp(name, "PMPI_", 5) != 0) ||
			is_front_end_call(name))
			continue;
		to = px_vendor_symbol(name);
		if (to && *slot != to)
			patch(slot, to, o->relro, o->base);
	}
}

static int seal_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct px_loaded o;

	(void)size;
	(void)arg;
	if (!info->dlpi_name || !px_vendor_owns(info->dlpi_name) || !px_loaded_read(info, &o))
		return 0;
	if (o.plt)
		fix(&o, o.plt, o.plt_bytes);
	if (o.rel)
		fix(&o, o.rel, o.rel_bytes);
	return 0;
}

void px_vendor_seal(void)
{
	static pthread_mutex_t one =
		PTHREAD_MUTEX_INITIALIZER; /* page protections must not be changed by two at once */

	if (px_vendor_load() < 0)
		return;
	pthread_mutex_lock(&one);
	dl_iterate_phdr(seal_object, NULL);
	pthread_mutex_unlock(&one);
}

const void *px_unweighted(void)
{
#if defined(OPEN_MPI) || defined(PX_ABI)
	return MPI_UNWEIGHTED;
#else
	static int *const *where;

	if (!where)
		where = px_vendor_symbol("MPI_UNWEIGHTED");
	return where ? *where : NULL;
#endif
}

/* name_of: "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\nMPICH Release date: ..."; MPICH's relatives have other words in the
 * first line. */
static void name_of(const char *full, char *text, size_t cap)
{
	if (strncmp(full, "Open MPI v", 10) == 0)
		snprintf(text, cap, "Open MPI %.*s", (int)strcspn(full + 10, ", \n"), full + 10);
	else if (strncmp(full, "MPICH Version:", 14) == 0) {
		full += 14;
		full += strspn(full, " \t");
		snprintf(text, cap, "MPICH %.*s", (int)strcspn(full, " \t\n"), full);
	} else {
		snprintf(text, cap, "%.*s", (int)strcspn(full, "\t\n"), full);
	}
}

const char *px_vendor_name(void)
{
	static char text[64];

	if (!text[0]) {
		char full[MPI_MAX_LIBRARY_VERSION_STRING] = "";
		int len = 0;

		if (px_vendor_load() < 0)
			return PX_VENDOR;
		px_n.Get_library_version(full, &len);
		name_of(full, text, sizeof text);
	}
	return text;
}

int px_vendor_flavor(void)
{
#ifdef OPEN_MPI
	return PX_MPI_OPENMPI;
#elif defined(PX_ABI)
	static _Atomic int flavor; /* found once: asked at every poll */

	if (!flavor)
		flavor = strncmp(px_vendor_name(), "Open MPI", 8) == 0 ? PX_MPI_OPENMPI : PX_MPI_MPICH;
	return flavor;
#else
	return PX_MPI_MPICH;
#endif
}

void px_vendor_poll(bool on)
{
	static bool (*set)(bool yield);
	static bool asked, before;
	static int depth;

	if (!PX_OVER_OPENMPI)
		return; /* MPICH never yields by itself: yield_hook.c */
	if (!asked) {
		asked = true;
		set = (bool (*)(bool))(uintptr_t)dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	}
	if (!set)
		return;
	if (on && depth++ == 0)
		before = set(false);
	else if (!on && --depth == 0)
		set(before);
}
