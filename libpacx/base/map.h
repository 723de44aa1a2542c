/* map.h: hash table from 64-bit keys (handles, context ids, message numbers) to pointers.
 *
 * One writer, any number of readers: px_map_get may run in any thread at any time between
 * new and free and takes no lock; all other calls are the writer's, one at a time (callers with several
 * writing threads hold their own lock). Owns its tables, never the values: a reader may still hold a
 * pointer that has just been deleted, so who frees values has to know that nobody looks them up.
 */
#ifndef PX_MAP_H
#define PX_MAP_H

#include <stddef.h>
#include <stdint.h>

struct px_map;

struct px_map *px_map_new(void);    /* NULL: out of memory */
void px_map_free(struct px_map *m); /* NULL is fine; the values are not freed */

/* px_map_get: the value of key, NULL = none. */
void *px_map_get(struct px_map *m, uint64_t key);
/* px_map_put: set or replace; value != NULL. 0, PX_EINVAL, PX_ENOMEM (then nothing changed). */
int px_map_put(struct px_map *m, uint64_t key, void *value);
/* px_map_del: remove; the value that was there, NULL = none. */
void *px_map_del(struct px_map *m, uint64_t key);
size_t px_map_count(const struct px_map *m);

/* px_map_each: call f for every entry, in no particular order. f may put keys that exist and delete
 * any, but add none. */
void px_map_each(struct px_map *m, void (*f)(uint64_t key, void *value, void *arg), void *arg);

#endif
