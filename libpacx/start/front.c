/* front.c: see front.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "front.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environ.h"
#include "loaded.h"
#include "vendor.h"

px_any_fn *px_front_tool(const char *name)
{
	void *next = px_loaded_behind(name);
	Dl_info where;

	/* The vendor's own, or that of another MPI which the program is wrongly linked with: not a tool. */
	if (!next || !dladdr(next, &where) || px_vendor_owns(where.dli_fname) ||
		px_vendor_front(where.dli_fname))
		return NULL;
	return (px_any_fn *)(uintptr_t)next;
}

void px_front_begin(void)
{
	static bool done;
	char full[128];

	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return;
	px_environ_read();
	px_vendor_first();
	for (size_t i = 0; i < px_exported_count; i++) {
		const struct px_exported *e = &px_exported[i];
		px_any_fn *tool;

		snprintf(full, sizeof full, "MPI%s%s", strncmp(e->name, "X_", 2) ? "_" : "",
			e->name); /* or MPIX_ */
		tool = px_front_tool(full);
		__atomic_store_n(e->to, tool ? tool : e->own, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
}

static int compare(const void *name, const void *entry)
{
	return strcmp(name, ((const struct px_exported *)entry)->name);
}

px_any_fn *px_front_own(const char *name)
{
	const struct px_exported *e;

	name += *name == 'P';
	if (strncmp(name, "MPI_", 4) != 0 && strncmp(name, "MPIX_", 5) != 0)
		return NULL;
	e = bsearch(name + (name[3] == '_' ? 4 : 3), px_exported, px_exported_count, sizeof *e, compare);
	return e ? e->own : NULL;
}
