/* comm_find.c: see comm_find.h. */
#include "comm_find.h"

#include <stdlib.h>

#include "err.h"
#include "lock.h"

#define FIRST_SHIFT 58 /* 64 slots */

MPI_Comm px_world_native = MPI_COMM_WORLD;
bool px_active, px_hooked;
_Atomic int px_duty;
_Atomic unsigned px_find_live;
struct px_find_table *_Atomic px_find_table;
_Atomic uintptr_t px_find_missed;

static size_t slots(const struct px_find_table *t)
{
	return (size_t)1 << (64 - t->shift);
}

/* The slot of key, or the free one where it belongs. */
static struct px_find_slot *place(struct px_find_table *t, uintptr_t key)
{
	for (size_t i = px_find_hash(key, t->shift);; i = (i + 1) & (slots(t) - 1)) {
		uintptr_t k = atomic_load_explicit(&t->slot[i].key, memory_order_relaxed);

		if (k == key || k == 0)
			return &t->slot[i];
	}
}

static void put(struct px_find_table *t, uintptr_t key, struct px_comm *c)
{
	struct px_find_slot *s = place(t, key);

	atomic_store_explicit(&s->comm, c, memory_order_release);
	if (atomic_load_explicit(&s->key, memory_order_relaxed) == 0) {
		t->used++;
		atomic_store_explicit(&s->key, key, memory_order_release);
	}
}

/* A table with room for one more: removed keys are left behind, so it grows only if the living need it. */
static int renew(struct px_find_table *old)
{
	unsigned live = atomic_load_explicit(&px_find_live, memory_order_relaxed), shift = FIRST_SHIFT;
	struct px_find_table *t;

	while (((size_t)1 << (64 - shift)) < 4 * ((size_t)live + 1))
		shift--;
	t = calloc(1, sizeof *t + ((size_t)1 << (64 - shift)) * sizeof t->slot[0]);
	if (!t)
		return PX_ENOMEM;
	t->shift = shift;
	for (size_t i = 0; old && i < slots(old); i++) {
		struct px_comm *c = atomic_load_explicit(&old->slot[i].comm, memory_order_relaxed);

		if (c)
			put(t, atomic_load_explicit(&old->slot[i].key, memory_order_relaxed), c);
	}
	t->older = px_threaded ? old : NULL;
	atomic_store_explicit(&px_find_table, t, memory_order_release);
	if (!px_threaded)
		free(old);
	return PX_OK;
}

int px_comm_insert(MPI_Comm native, struct px_comm *c)
{
	struct px_find_table *t = atomic_load_explicit(&px_find_table, memory_order_relaxed);
	struct px_find_slot *s;

	if (!t || 2 * ((size_t)t->used + 1) > slots(t)) {
		if (renew(t) < 0)
			return PX_ENOMEM;
		t = atomic_load_explicit(&px_find_table, memory_order_relaxed);
	}
	s = place(t, (uintptr_t)native);
	if (!atomic_load_explicit(&s->comm, memory_order_relaxed))
		atomic_fetch_add_explicit(&px_find_live, 1, memory_order_release);
	put(t, (uintptr_t)native, c);
	atomic_store_explicit(&px_find_missed, 0, memory_order_release);
	return PX_OK;
}

void px_comm_remove(MPI_Comm native)
{
	struct px_find_table *t = atomic_load_explicit(&px_find_table, memory_order_relaxed);
	struct px_find_slot *s;

	if (!t)
		return;
	s = place(t, (uintptr_t)native);
	if (!atomic_load_explicit(&s->comm, memory_order_relaxed))
		return;
	atomic_store_explicit(&s->comm, NULL, memory_order_release);
	atomic_fetch_sub_explicit(&px_find_live, 1, memory_order_release);
}
