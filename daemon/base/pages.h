/* pages.h: records by number, which come into being when they are first asked for, PXD_PAGE at a time: a daemon pays for the ranks that are
 * spoken to, not for those of the world. A record stays where it is until the end. No thread safety. */
#ifndef PXD_PAGES_H
#define PXD_PAGES_H

#include <stddef.h>
#include <stdint.h>

#define PXD_PAGE 64

struct pxd_pages {
	size_t size; /* of a record */
	uint32_t n;  /* records */
	void **page; /* [n / PXD_PAGE, rounded up]; NULL: none of it was asked for */
	/* begin: record i, all zero, comes into being with its page. NULL: nothing to do. */
	void (*begin)(void *owner, void *record, uint32_t i);
	void *owner;
};

/* pxd_pages_init: n records of size bytes; size, n, begin and owner are kept. 0 or PX_ENOMEM. fini also takes one that is all zero. */
int pxd_pages_init(struct pxd_pages *p, size_t size, uint32_t n);
void pxd_pages_fini(struct pxd_pages *p);
/* pxd_pages_get: record i < n, made if need be; NULL: no memory. */
void *pxd_pages_get(struct pxd_pages *p, uint32_t i);
/* pxd_pages_next: the first record from *i on that is there, *i behind it; NULL: no more. */
void *pxd_pages_next(const struct pxd_pages *p, uint32_t *i);

#endif
