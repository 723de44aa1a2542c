/* pages.c: see pages.h. */
#include "pages.h"

#include <stdlib.h>

#include "err.h"

static uint32_t pages(const struct pxd_pages *p)
{
	return p->n / PXD_PAGE + (p->n % PXD_PAGE != 0);
}

static void *record(const struct pxd_pages *p, uint32_t i)
{
	return (char *)p->page[i / PXD_PAGE] + i % PXD_PAGE * p->size;
}

int pxd_pages_init(struct pxd_pages *p, size_t size, uint32_t n)
{
	p->size = size;
	p->n = n;
	p->page = calloc((size_t)pages(p) + 1, sizeof *p->page);
	return p->page ? PX_OK : PX_ENOMEM;
}

void pxd_pages_fini(struct pxd_pages *p)
{
	for (uint32_t k = 0; p->page && k < pages(p); k++)
		free(p->page[k]);
	free(p->page);
	p->page = NULL;
}

void *pxd_pages_get(struct pxd_pages *p, uint32_t i)
{
	uint32_t first = i - i % PXD_PAGE;

	if (!p->page[i / PXD_PAGE]) {
		p->page[i / PXD_PAGE] = calloc(PXD_PAGE, p->size);
		if (!p->page[i / PXD_PAGE])
			return NULL;
		for (uint32_t k = first; p->begin && k < p->n && k - first < PXD_PAGE; k++)
			p->begin(p->owner, record(p, k), k);
	}
	return record(p, i);
}

void *pxd_pages_next(const struct pxd_pages *p, uint32_t *i)
{
	while (p->page && *i < p->n) {
		if (p->page[*i / PXD_PAGE])
			return record(p, (*i)++);
		*i = (*i / PXD_PAGE + 1) * PXD_PAGE;
	}
	return NULL;
}
