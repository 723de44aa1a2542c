/* comm_find.h: from a native communicator handle to the struct px_comm behind it.
 *
 * Owns the map. Every trampoline looks up here first, so reading takes no lock and, as long as no communicator
 * spans sites, not even a probe. Written under px_lock by px_comm_insert, px_comm_leave and px_comm_left only. A reader never
 * sees a half-written entry (map.h).
 */
#ifndef PX_COMM_FIND_H
#define PX_COMM_FIND_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "map.h"
#include "yield_hook.h"

struct px_comm;

#define PX_LIKELY(x)   __builtin_expect(!!(x), 1)
#define PX_UNLIKELY(x) __builtin_expect(!!(x), 0)

extern MPI_Comm px_world_native; /* what MPI_COMM_WORLD means: itself until init.c has split it */
extern bool px_active;           /* PACX_SITE is set: this process belongs to a PACX job */
/* Other sites are served from within native calls (progress.h), which therefore may block at any time. The same at all ranks of
 * a site; set once, by progress.c. */
extern bool px_hooked;
extern _Atomic int
	px_duty; /* remote operations that need this process's progress: never block natively, unless hooked */

#define PX_MAP(c) ((c) == MPI_COMM_WORLD ? px_world_native : (c))
/* px_as_known: a communicator of the vendor's, as the program knows it. */
static inline MPI_Comm px_as_known(MPI_Comm c)
{
	return c == px_world_native ? MPI_COMM_WORLD : c;
}

extern _Atomic unsigned px_find_live; /* communicators in the table */
extern struct px_map *px_find_map;    /* handle -> struct px_comm; there is one as soon as one is live */
/* The last handle that was not found: programs use one communicator many times in a row. Cleared by px_comm_insert; a handle
 * that another thread still uses as a local communicator cannot be inserted meanwhile. */
extern _Atomic uintptr_t px_find_missed;
/* Communicators that are being freed: out of the table, as their handles may soon stand for others, but still what they were to the user's functions
 * for attributes, which the vendor calls in the thread that frees them. */
struct px_going {
	MPI_Comm native;
	struct px_comm *c;
	struct px_going *next;
};
extern _Atomic unsigned px_find_going;

/* px_spanning: does this world span sites? The same answer at every rank from Init to Finalize, since MPI_COMM_WORLD itself is in
 * the table then. */
static inline bool px_spanning(void)
{
	return atomic_load_explicit(&px_find_live, memory_order_relaxed) != 0;
}

struct px_comm *px_comm_going(MPI_Comm native); /* of this thread, or NULL */

/* px_comm_find: the object of a native handle, or NULL when that does not span sites. Lock-free. */
static inline struct px_comm *px_comm_find(MPI_Comm native)
{
	uintptr_t key = (uintptr_t)native;
	struct px_comm *c;

	if (PX_LIKELY(atomic_load_explicit(&px_find_live, memory_order_acquire) == 0))
		return NULL;
	if (key == atomic_load_explicit(&px_find_missed, memory_order_relaxed))
		return NULL;
	c = px_map_get(px_find_map, key);
	if (PX_UNLIKELY(!c && atomic_load_explicit(&px_find_going, memory_order_relaxed) != 0))
		return px_comm_going(native);
	if (!c)
		atomic_store_explicit(&px_find_missed, key, memory_order_relaxed);
	return c;
}

/* px_native_begins: a native call begins that may block: it may spin for a moment before it yields. */
static inline void px_native_begins(void)
{
	atomic_store_explicit(&px_idle_polls, 0, memory_order_relaxed);
}

/* px_must_poll: may a native point-to-point call not block, because remote operations need progress meanwhile? */
static inline bool px_must_poll(void)
{
	px_native_begins();
	return !px_hooked && atomic_load_explicit(&px_duty, memory_order_relaxed) != 0;
}

/* px_must_meet: may native collectives not block? Then all members use the nonblocking forms, or meet first. */
static inline bool px_must_meet(void)
{
	px_native_begins();
	return !px_hooked && px_spanning();
}

/* px_comm_insert: native now stands for c (replaces). 0 or PX_ENOMEM. Under px_lock. */
int px_comm_insert(MPI_Comm native, struct px_comm *c);
/* px_comm_leave: native no longer stands for c, but in this thread, until px_comm_left; stays: it does again, as it was not freed. Under px_lock. */
void px_comm_leave(struct px_going *g, MPI_Comm native, struct px_comm *c);
void px_comm_left(struct px_going *g, bool stays);

#endif
