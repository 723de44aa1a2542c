/* map.c: see map.h.
 *
 * Design. Open addressing, linear probing, at most half full. A slot is EMPTY (value NULL),
 * live, or a grave (value &grave). A slot never changes its key while its table is in use, so a reader
 * that finds its key may trust the value beside it; graves are only left behind by moving to another table.
 *
 *   grow   more than a quarter is live: move to a table of twice the size. The old one is kept until free,
 *          since a reader may still be in it. All kept tables together are no larger than the current one.
 *   purge  mostly graves (message numbers come and go): move to the spare table of the same size, which is
 *          the one used before the last purge. A reader may still be in the spare as well: `wiped` is raised
 *          before the spare is touched, and a reader that sees another number after its search than
 *          before starts again. So memory stays bounded and a reader never waits for the writer.
 *
 * Every store to a slot is a release and every load an acquire: a reader that has seen any part of a wiped
 * table therefore sees the raised number as well. (No fences: thread sanitizer does not know them.)
 */
#include "map.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "err.h"

#define FIRST_BITS 6

struct slot {
	_Atomic uint64_t key;
	void *_Atomic value;
};

struct table {
	struct table *older; /* list of kept tables */
	unsigned bits;
	size_t used; /* live slots and graves */
	struct slot slot[];
};

struct px_map {
	struct table *_Atomic table;
	_Atomic unsigned wiped;
	struct table *spare; /* as large as the current one, or NULL */
	struct table *kept;
	size_t count;
};

static char grave;

static size_t table_size(const struct table *t)
{
	return (size_t)1 << t->bits;
}

static size_t table_home(const struct table *t, uint64_t key)
{
	/* Handles are pointers or small numbers: mix the high half in, then multiply (Fibonacci hashing). */
	return (size_t)(((key ^ key >> 32) * 0x9E3779B97F4A7C15u) >> (64 - t->bits));
}

static struct table *table_new(unsigned bits)
{
	struct table *t = malloc(sizeof *t + (sizeof(struct slot) << bits));

	if (!t)
		return NULL;
	t->older = NULL;
	t->bits = bits;
	t->used = 0;
	for (size_t i = 0; i < table_size(t); i++) {
		atomic_init(&t->slot[i].key, 0);
		atomic_init(&t->slot[i].value, NULL);
	}
	return t;
}

static void table_wipe(struct table *t)
{
	t->used = 0;
	for (size_t i = 0; i < table_size(t); i++)
		atomic_store_explicit(&t->slot[i].value, NULL, memory_order_release);
}

/* The slot that holds key, or the empty one where it would go; *value is what was seen there. A table in use
 * always has empty slots, but a reader may be in one that is being refilled: so the walk is bounded. */
static struct slot *table_find(struct table *t, uint64_t key, void **value)
{
	size_t mask = table_size(t) - 1, i = table_home(t, key);

	for (size_t n = 0; n <= mask; n++, i = (i + 1) & mask) {
		*value = atomic_load_explicit(&t->slot[i].value, memory_order_acquire);
		if (!*value || atomic_load_explicit(&t->slot[i].key, memory_order_acquire) == key)
			return &t->slot[i];
	}
	*value = NULL;
	return NULL;
}

static void table_add(struct table *t, struct slot *s, uint64_t key, void *value)
{
	atomic_store_explicit(&s->key, key, memory_order_release);
	atomic_store_explicit(&s->value, value, memory_order_release);
	t->used++;
}

struct px_map *px_map_new(void)
{
	struct px_map *m = calloc(1, sizeof *m);
	struct table *t = m ? table_new(FIRST_BITS) : NULL;

	if (!t) {
		free(m);
		return NULL;
	}
	atomic_init(&m->table, t);
	atomic_init(&m->wiped, 0);
	return m;
}

void px_map_free(struct px_map *m)
{
	if (!m)
		return;
	while (m->kept) {
		struct table *t = m->kept;

		m->kept = t->older;
		free(t);
	}
	free(m->spare);
	free(atomic_load_explicit(&m->table, memory_order_relaxed));
	free(m);
}

void *px_map_get(struct px_map *m, uint64_t key)
{
	unsigned before, after;
	void *v;

	after = atomic_load_explicit(&m->wiped, memory_order_acquire);
	do {
		before = after;
		table_find(atomic_load_explicit(&m->table, memory_order_acquire), key, &v);
		after = atomic_load_explicit(&m->wiped, memory_order_acquire);
	} while (before != after);
	return v == &grave ? NULL : v;
}

static void keep(struct px_map *m, struct table *t)
{
	if (t) {
		t->older = m->kept;
		m->kept = t;
	}
}

/* Move the live entries to another table, larger if a quarter of the slots is live. */
static int move(struct px_map *m)
{
	struct table *old = atomic_load_explicit(&m->table, memory_order_relaxed), *to;
	bool grow = m->count > table_size(old) / 4;

	if (grow || !m->spare) {
		to = table_new(old->bits + grow);
		if (!to)
			return PX_ENOMEM;
	} else {
		to = m->spare;
		atomic_store_explicit(&m->wiped, atomic_load_explicit(&m->wiped, memory_order_relaxed) + 1,
			memory_order_release);
		table_wipe(to);
	}
	for (size_t i = 0; i < table_size(old); i++) {
		void *v = atomic_load_explicit(&old->slot[i].value, memory_order_relaxed), *none;
		uint64_t key = atomic_load_explicit(&old->slot[i].key, memory_order_relaxed);

		if (v && v != &grave)
			table_add(to, table_find(to, key, &none), key, v);
	}
	atomic_store_explicit(&m->table, to, memory_order_release);
	if (grow) {
		keep(m, m->spare);
		keep(m, old);
		m->spare = NULL;
	} else {
		m->spare = old;
	}
	return 0;
}

int px_map_put(struct px_map *m, uint64_t key, void *value)
{
	struct table *t = atomic_load_explicit(&m->table, memory_order_relaxed);
	struct slot *s;
	void *was;
	int rc;

	if (!value)
		return PX_EINVAL;
	s = table_find(t, key, &was);
	if (was) {
		m->count += was == &grave;
		atomic_store_explicit(&s->value, value, memory_order_release);
		return 0;
	}
	if (t->used + 1 > table_size(t) / 2) {
		rc = move(m);
		if (rc < 0)
			return rc;
		t = atomic_load_explicit(&m->table, memory_order_relaxed);
		s = table_find(t, key, &was);
	}
	table_add(t, s, key, value);
	m->count++;
	return 0;
}

void *px_map_del(struct px_map *m, uint64_t key)
{
	void *was;
	struct slot *s = table_find(atomic_load_explicit(&m->table, memory_order_relaxed), key, &was);

	if (!was || was == &grave)
		return NULL;
	atomic_store_explicit(&s->value, &grave, memory_order_release);
	m->count--;
	return was;
}

size_t px_map_count(const struct px_map *m)
{
	return m->count;
}

void px_map_each(struct px_map *m, void (*f)(uint64_t key, void *value, void *arg), void *arg)
{
	struct table *t = atomic_load_explicit(&m->table, memory_order_relaxed);

	for (size_t i = 0; i < table_size(t); i++) {
		void *v = atomic_load_explicit(&t->slot[i].value, memory_order_relaxed);

		if (v && v != &grave)
			f(atomic_load_explicit(&t->slot[i].key, memory_order_relaxed), v, arg);
	}
}
