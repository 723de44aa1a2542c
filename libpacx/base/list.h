/* list.h: intrusive doubly linked list: the link is a member of the listed struct.
 *
 * Owns no memory: whoever owns the struct takes it out of the list before it frees it.
 * A head is a px_list linked to itself. Not thread safe.
 */
#ifndef PX_LIST_H
#define PX_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct px_list {
	struct px_list *next, *prev;
};

/* px_list_entry: the struct of `type` whose member `member` is the link p. */
#define px_list_entry(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

/* px_list_each: it runs over all links; the body may take `it` itself out (and free it), nothing else. */
#define px_list_each(it, head)                                                                               \
	for (struct px_list *it = (head)->next, *it##_next = it->next; it != (head);                         \
		it = it##_next, it##_next = it->next)

/* px_list_init: an empty head, or a link that is in no list (px_list_del is then harmless). */
static inline void px_list_init(struct px_list *l)
{
	l->next = l->prev = l;
}

static inline bool px_list_empty(const struct px_list *l)
{
	return l->next == l;
}

/* px_list_insert: put l, which is in no list, behind `at`. */
static inline void px_list_insert(struct px_list *at, struct px_list *l)
{
	l->prev = at;
	l->next = at->next;
	at->next->prev = l;
	at->next = l;
}

static inline void px_list_push(struct px_list *head, struct px_list *l)
{
	px_list_insert(head->prev, l);
}

static inline void px_list_push_front(struct px_list *head, struct px_list *l)
{
	px_list_insert(head, l);
}

/* px_list_del: take l out; it is then in no list, and taking it out again does nothing. */
static inline void px_list_del(struct px_list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	px_list_init(l);
}

/* px_list_pop: take the first link out; NULL when the list is empty. */
static inline struct px_list *px_list_pop(struct px_list *head)
{
	struct px_list *l = head->next;

	if (l == head)
		return NULL;
	px_list_del(l);
	return l;
}

#endif
