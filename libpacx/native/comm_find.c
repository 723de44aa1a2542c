/* comm_find.c: see comm_find.h. */
#include "comm_find.h"

#include "err.h"

MPI_Comm px_world_native = MPI_COMM_WORLD;
bool px_active, px_hooked;
_Atomic int px_duty;
_Atomic unsigned px_find_live;
struct px_map *px_find_map;
_Atomic uintptr_t px_find_missed;

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

void px_comm_remove(MPI_Comm native, const struct px_comm *c)
{
	if (!px_find_map || px_map_get(px_find_map, (uintptr_t)native) != c)
		return;
	px_map_del(px_find_map, (uintptr_t)native);
	live_set();
}
