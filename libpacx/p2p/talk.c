/* talk.c: see talk.h. */
#include "talk.h"

#include <stdlib.h>

#include "channel.h"
#include "comm.h"
#include "p2p.h"

void px_talk_post(struct px_match *m, struct px_req *r)
{
	struct px_msg *u = px_match_find(m, r->peer, r->tag, true);

	if (u) {
		px_channel_take(r, u);
	} else {
		px_match_post(m, r);
		px_duty_add(1);
	}
}

int px_talk_send(
	struct px_match *m, uint64_t ctx, const void *buf, int bytes, int dst, int tag, unsigned flags)
{
	struct px_req r;
	int rc;

	px_req_init(&r, m->c);
	px_req_args(&r, buf, bytes, MPI_BYTE, dst, tag);
	r.kind = PX_SEND;
	rc = px_channel_send(&r, ctx, px_grank(m->c, dst), flags);
	if (rc == MPI_SUCCESS)
		rc = px_req_wait(&r);
	free(r.why);
	return rc;
}

int px_talk_recv(struct px_match *m, void *buf, int bytes, int src, int tag)
{
	struct px_req r;
	int rc;

	px_req_init(&r, m->c);
	px_req_args(&r, buf, bytes, MPI_BYTE, src, tag);
	r.kind = PX_RECV;
	px_talk_post(m, &r);
	rc = px_req_wait(&r);
	free(r.why);
	return rc;
}
