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

static bool fits(const struct px_match *m, int want_src, int want_tag, int src, int tag)
{
	return (want_src == src || (want_src == MPI_ANY_SOURCE && !m->exact)) &&
	       (want_tag == tag || (want_tag == MPI_ANY_TAG && !m->exact));
}

static struct px_msg *take_out(struct px_match *m, struct px_msg **at)
{
	struct px_msg *u = *at;

	*at = u->next;
	if (!u->next)
		m->arrived_end = at;
	return u;
}

struct px_msg *px_match_find(struct px_match *m, int src, int tag, bool take)
{
	for (struct px_msg **at = &m->arrived; *at; at = &(*at)->next)
		if (fits(m, src, tag, (*at)->src, (*at)->f.tag))
			return take ? take_out(m, at) : *at;
	return NULL;
}

struct px_msg *px_match_pop(struct px_match *m)
{
	return m->arrived ? take_out(m, &m->arrived) : NULL;
}

struct px_req *px_match_next(struct px_req *r, int src, int tag)
{
	while (r && !fits(r->queue, r->peer, r->tag, src, tag))
		r = r->next;
	return r;
}
