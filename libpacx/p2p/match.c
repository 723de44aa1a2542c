/* match.c: see match.h. */
#include "match.h"

#include <mpi.h>
#include <string.h>

#include "request.h"

void px_match_init(struct px_match *m, struct px_comm *c)
{
	memset(m, 0, sizeof *m);
	m->c = c;
	m->arrived_end = &m->arrived;
}

void px_match_post(struct px_match *m, struct px_req *r)
{
	r->queue = m;
	r->next = NULL;
	r->prev = m->posted_last;
	if (m->posted_last)
		m->posted_last->next = r;
	else
		m->posted = r;
	m->posted_last = r;
	r->posted = true;
}

void px_match_unpost(struct px_match *m, struct px_req *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		m->posted = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		m->posted_last = r->prev;
	r->next = r->prev = NULL;
	r->posted = false;
}

void px_match_arrive(struct px_match *m, struct px_msg *u)
{
	u->next = NULL;
	*m->arrived_end = u;
	m->arrived_end = &u->next;
}

static bool fits(int want_src, int want_tag, int src, int tag)
{
	return (want_src == MPI_ANY_SOURCE || want_src == src) &&
	       (want_tag == MPI_ANY_TAG || want_tag == tag);
}

struct px_msg *px_match_find(struct px_match *m, int src, int tag, bool take)
{
	for (struct px_msg **at = &m->arrived; *at; at = &(*at)->next) {
		struct px_msg *u = *at;

		if (!fits(src, tag, u->src, u->f.tag))
			continue;
		if (take) {
			*at = u->next;
			if (!u->next)
				m->arrived_end = at;
		}
		return u;
	}
	return NULL;
}

struct px_req *px_match_next(struct px_req *r, int src, int tag)
{
	while (r && !fits(r->peer, r->tag, src, tag))
		r = r->next;
	return r;
}
