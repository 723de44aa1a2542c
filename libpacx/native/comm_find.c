/* comm_find.c: see comm_find.h. */
#include "comm_find.h"

#include "err.h"

MPI_Comm px_world_native = MPI_COMM_WORLD;
bool px_active, px_hooked;
_Atomic int px_duty;
_Atomic unsigned px_find_live;
struct px_map *px_find_map;
_Atomic uintptr_t px_find_missed;
_Atomic unsigned px_find_going;
static _Thread_local struct px_going *going;

/* Readers look at the map when they have seen that something lives in it. */
static void live_set(void)
{
	atomic_store_explicit(&px_find_live, (unsigned)px_map_count(px_find_map), memory_order_release);
}

int px_comm_insert(MPI_Comm native, struct px_comm *c)
{
	if (!px_find_map && !(px_find_map = px_map_new()))
		return PX_ENOMEM;
	if (px_map_put(px_find_map, (uintptr_t)native, c) < 0)
		return PX_ENOMEM;
	live_set();
	atomic_store_explicit(&px_find_missed, 0, memory_order_release);
	return PX_OK;
}

struct px_comm *px_comm_going(MPI_Comm native)
{
	for (const struct px_going *g = going; g; g = g->next)
		if (g->native == native)
			return g->c;
	return NULL;
}

void px_comm_leave(struct px_going *g, MPI_Comm native, struct px_comm *c)
{
	*g = (struct px_going){ native, c, going };
	going = g;
	atomic_fetch_add_explicit(&px_find_going, 1, memory_order_relaxed);
	px_map_del(px_find_map, (uintptr_t)native);
	live_set();
}

void px_comm_left(struct px_going *g, bool stays)
{
	if (stays)
		px_comm_insert(g->native, g->c); /* where it was: needs no memory */
	atomic_fetch_sub_explicit(&px_find_going, 1, memory_order_relaxed);
	going = g->next;
}
