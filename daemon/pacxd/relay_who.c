/* relay_who.c: who is at a relay: SIGUSR1 makes it tell, one line for each pair and each end that waits, and one in all.
 *
 * At most LINES of each kind: of a crowd of strangers the number and some examples are enough.
 */
#include <stdio.h>

#include "relay_end.h"

#define LINES 100

static void job_text(const struct px_preamble *p, char text[2 * PX_JOBHASH_SIZE + 1])
{
	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", p->jobhash[i]);
}

void pxd_relay_who(const struct pxd_relay *r)
{
	char stream[120], job[2 * PX_JOBHASH_SIZE + 1];
	int pairs = 0, waiting = 0;
	uint64_t now = uv_now(&r->loop);

	px_list_each(it, &r->ends)
	{
		const struct pxd_end *e = px_list_entry(it, struct pxd_end, l);
		int seconds = (int)((now - e->since) / 1000);

		/* Ends that lead to the next relay have no preamble of their own. */
		if (e->pre.kind == 0 || (e->state == PAIRED && e->pre.reversed && r->nnext == 0))
			continue; /* the other end tells of it */
		pxd_stream_text(&e->pre, stream);
		job_text(&e->pre, job);
		if (e->state == PAIRED && e->other && pairs++ < LINES)
			px_log(PX_LOG_INFO, "job %s: %s: %s and %s, for %d s, %llu bytes there and %llu back",
				job, stream, e->peer, e->other->peer, seconds, (unsigned long long)e->bytes,
				(unsigned long long)e->other->bytes);
		else if (e->state == WAITING && waiting++ < LINES)
			px_log(PX_LOG_INFO, "job %s: %s: %s waits for the other site, for %d s", job, stream,
				e->peer, seconds);
	}
	px_log(PX_LOG_INFO,
		"%d pairs, %d connections that wait for the other site, %d that wait for their preamble",
		pairs, waiting, r->door.callers.n);
}
