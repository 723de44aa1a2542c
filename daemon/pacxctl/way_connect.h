/* way_connect.h: the first hops of a way (way.h): name, command, connection, proxy; and what its hops say. */
#ifndef PXD_WAY_CONNECT_H
#define PXD_WAY_CONNECT_H

#include "way.h"

/* pxd_way_connect: a connection on which the preamble can be sent. 0, or PX_E... after the hop that failed. */
int pxd_way_connect(struct pxd_way *w);

uint64_t pxd_way_until(const struct pxd_way *w); /* px_now_ns when a hop that begins now has taken too long */
void pxd_way_good(struct pxd_way *w, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* pxd_way_because: w->why. pxd_way_bad: the hop has failed with it; fmt says what to do. Returns rc. */
void pxd_way_because(struct pxd_way *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int pxd_way_bad(struct pxd_way *w, int rc, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static inline const struct pxd_link_opts *pxd_way_opts(const struct pxd_way *w)
{
	return pxd_hosts_link(w->ctl->h, w->self, w->peer);
}

static inline const char *pxd_way_peer(const struct pxd_way *w)
{
	return w->ctl->h->sites[w->peer].name;
}

#endif
