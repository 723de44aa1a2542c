/* p2p.c: blocking and nonblocking sends and receives on communicators that span sites.
 *
 * "Local or remote" is decided in exactly two places: px_send_start for sends and
 * px_recv_start for receives. A receive is local (native), remote (posted with us), or, from any
 * source, a pair of both: whichever matches first cancels the other (MPI standard 3.5: order is
 * kept per sender, and a sender is either local or remote). Blocking calls between two ranks of this site are the vendor's own
 * wherever a native call may block.
 */
#include "p2p.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "channel.h"
#include "comm.h"
#include "datatype.h"
#include "lock.h"
#include "native.h"
#include "raise.h"
#include "state.h"
#include "typemap.h"
#include "unlike.h"

/* Is a blocking call with this rank of c the native MPI's business? */
static bool here(const struct px_comm *c, int peer)
{
	return peer >= 0 && peer < c->size && px_lrank(c, peer) >= 0 && px_may_block();
}

int px_check_args(struct px_comm *c, MPI_Count count, MPI_Datatype t, int peer, int tag, bool recv)
{
	if (count < 0)
		return px_raise_count(c, count);
	if (t == MPI_DATATYPE_NULL)
		return px_raise_type(c);
	if (peer != MPI_PROC_NULL && !(recv && peer == MPI_ANY_SOURCE) && (peer < 0 || peer >= c->size))
		return px_raise(c, MPI_ERR_RANK, "rank %d, the communicator has %d", peer, c->size);
	if (!(recv && tag == MPI_ANY_TAG) && (tag < 0 || tag > px.tag_ub))
		return px_raise(c, MPI_ERR_TAG, "tag %d, the largest is %d (MPI_TAG_UB)", tag, px.tag_ub);
	return MPI_SUCCESS;
}

static int native_isend(struct px_req *r, int to)
{
	MPI_Comm n = r->c->native;

	switch (r->mode) {
	case PX_BUFFERED:
		return PX_N(Ibsend, r->buf, r->count, r->type, to, r->tag, n, &r->native);
	case PX_SYNCHRONOUS:
		return PX_N(Issend, r->buf, r->count, r->type, to, r->tag, n, &r->native);
	case PX_READY:
		return PX_N(Irsend, r->buf, r->count, r->type, to, r->tag, n, &r->native);
	default:
		return PX_N(Isend, r->buf, r->count, r->type, to, r->tag, n, &r->native);
	}
}

/* The vendor looks at the datatypes of its own messages only. MPI error code, raised. */
static int usable(const struct px_req *r)
{
	return r->count > 0 ? px_type_committed(r->type, px_raised_on(r->c)) : MPI_SUCCESS;
}

/* The status of a send says only that it was not cancelled. */
int px_send_start(struct px_req *r)
{
	int rc;

	r->kind = PX_SEND;
	px_req_set_status(r, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	if (r->peer == MPI_PROC_NULL) {
		r->done = true;
		return MPI_SUCCESS;
	}
	if (px_lrank(r->c, r->peer) >= 0) {
		rc = native_isend(r, px_lrank(r->c, r->peer));
		r->raised = true;
		return rc;
	}
	rc = usable(r);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = px_channel_send(r, r->c->ctx, px_grank(r->c, r->peer), 0);
	if (rc != MPI_SUCCESS) {
		px_raise_as(r->c, rc, r->why);
		free(r->why);
		r->why = NULL;
	}
	return rc;
}

/* MPICH's ch3 device says at once of a message that has come already that it is too long, and hands out a request all the same, which says it
 * again: that one counts. */
static int recv_natively(struct px_req *r, int source)
{
	int rc = PX_N(Irecv, r->buf, r->count, r->type, source, r->tag, r->c->native, &r->native);

	return r->native != MPI_REQUEST_NULL ? MPI_SUCCESS : rc;
}

/* Messages of other sites wait for this receive from any source, but it is the turn of this one: take a message of its, if there is one. */
static bool take_local(struct px_req *r, int *rc)
{
	MPI_Message message;
	MPI_Status st;
	int flag = 0;

	*rc = px_n.Iprobe(MPI_ANY_SOURCE, r->tag, r->c->native, &flag, &st);
	if (*rc != MPI_SUCCESS || !flag)
		return *rc != MPI_SUCCESS;
	/* One from ourselves has to wait: MPICH over UCX 1.13 may abort in MPI_Mrecv of it ("rdesc->flags"). */
	flag = 0;
	if (st.MPI_SOURCE != px_lrank(r->c, r->c->rank))
		*rc = px_n.Improbe(
			st.MPI_SOURCE, st.MPI_TAG, r->c->native, &flag, &message, MPI_STATUS_IGNORE);
	if (*rc == MPI_SUCCESS && flag)
		*rc = PX_N(Imrecv, r->buf, r->count, r->type, &message, &r->native);
	return *rc != MPI_SUCCESS || flag;
}

/* A message of another site for r, which has come already; NULL: none, or one of this site is taken instead (*local, with *rc). */
static struct px_msg *take_arrived(struct px_req *r, bool *local, int *rc)
{
	struct px_comm *c = r->c;
	struct px_msg *u = px_match_find(&c->p2p, r->peer, r->tag, false);

	*local = false;
	if (r->peer != MPI_ANY_SOURCE) {
		px_comm_asked(c);
	} else {
		*local = u && c->local_first && take_local(r, rc);
		if (u)
			px_comm_took(c, *local);
		c->probed = false;
	}
	return u && !*local ? px_match_find(&c->p2p, r->peer, r->tag, true) : NULL;
}

int px_recv_start(struct px_req *r)
{
	struct px_comm *c = r->c;
	bool any = r->peer == MPI_ANY_SOURCE, local;
	struct px_msg *u;
	int rc;

	r->kind = PX_RECV;
	if (r->peer == MPI_PROC_NULL) {
		px_req_set_status(r, MPI_PROC_NULL, MPI_ANY_TAG, 0);
		r->done = true;
		return MPI_SUCCESS;
	}
	if (!any && px_lrank(c, r->peer) >= 0) {
		px_comm_asked(c);
		return recv_natively(r, px_lrank(c, r->peer));
	}
	if (!px_type_get(r->type))
		return px_raise_type(c);
	rc = usable(r);
	if (rc != MPI_SUCCESS)
		return rc;
	u = take_arrived(r, &local, &rc);
	if (local)
		return rc;
	px_req_hold_types(r);
	if (u) {
		px_channel_take(r, u);
		return MPI_SUCCESS;
	}
	if (any) {
		rc = recv_natively(r, MPI_ANY_SOURCE);
		if (rc != MPI_SUCCESS) {
			if (!r->persistent)
				px_req_drop_types(r);
			return rc;
		}
	}
	px_match_post(&c->p2p, r);
	px_duty_add(1);
	return MPI_SUCCESS;
}

void px_req_args(struct px_req *r, const void *buf, MPI_Count count, MPI_Datatype t, int peer, int tag)
{
	memcpy(&r->buf, &buf, sizeof r->buf); /* a send buffer is never written through r->buf */
	r->count = count;
	r->type = t;
	r->peer = peer;
	r->tag = tag;
}

/* A blocking operation described by r, which is on the stack: start, wait, raise. */
static int finish_blocking(struct px_req *r, int rc, MPI_Status *status)
{
	bool hushed;

	if (rc != MPI_SUCCESS)
		return rc;
	hushed = r->native != MPI_REQUEST_NULL && px_hush(r->c);
	rc = px_req_wait(r);
	if (hushed)
		px_hush_end();
	px_status_copy(status, &r->status);
	if (rc != MPI_SUCCESS && !r->raised)
		px_raise_as(r->c, rc, r->why);
	free(r->why);
	return rc;
}

/* The arguments have been checked. */
static int blocking_send(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag,
	struct px_comm *c, enum px_mode mode)
{
	struct px_req r;

	px_req_init(&r, c);
	px_req_args(&r, buf, count, t, dst, tag);
	r.mode = mode;
	return finish_blocking(&r, px_send_start(&r), MPI_STATUS_IGNORE);
}

int px_Send(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c)
{
	int rc = px_check_args(c, count, t, dst, tag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!here(c, dst))
		return blocking_send(buf, count, t, dst, tag, c, PX_STANDARD);
	px_blocking(rc, PX_N(Send, buf, count, t, px_lrank(c, dst), tag, c->native));
	return rc;
}

int px_Ssend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c)
{
	int rc = px_check_args(c, count, t, dst, tag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!here(c, dst))
		return blocking_send(buf, count, t, dst, tag, c, PX_SYNCHRONOUS);
	px_blocking(rc, PX_N(Ssend, buf, count, t, px_lrank(c, dst), tag, c->native));
	return rc;
}

int px_Rsend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c)
{
	int rc = px_check_args(c, count, t, dst, tag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!here(c, dst))
		return blocking_send(buf, count, t, dst, tag, c, PX_READY);
	px_blocking(rc, PX_N(Rsend, buf, count, t, px_lrank(c, dst), tag, c->native));
	return rc;
}

/* A buffered send is over for the application when its data is copied. */
static int buffered_away(struct px_req *r, int rc)
{
	if (rc == MPI_SUCCESS)
		px_req_detach(r);
	else
		px_req_release(r);
	return rc;
}

int px_Bsend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c)
{
	struct px_req *r;
	int rc = px_check_args(c, count, t, dst, tag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (dst != MPI_PROC_NULL && px_lrank(c, dst) >= 0)
		return PX_N(Bsend, buf, count, t, px_lrank(c, dst), tag, c->native);
	r = px_req_new(c);
	if (!r)
		return px_raise_memory(c);
	px_req_args(r, buf, count, t, dst, tag);
	r->mode = PX_BUFFERED;
	return buffered_away(r, px_send_start(r));
}

/* What was sent from a buffer has left; that it never lies in the user's is our affair. */
void px_Buffer_detach(void)
{
	px_buffered_wait();
}

#ifdef PX_HAVE_Buffer_flush
void px_Buffer_flush(void)
{
	px_buffered_wait();
}

void px_Comm_detach_buffer(void)
{
	px_buffered_wait();
}

void px_Comm_flush_buffer(void)
{
	px_buffered_wait();
}
#endif

static int isend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c,
	enum px_mode mode, MPI_Request *req)
{
	struct px_req *r;
	int rc = px_check_args(c, count, t, dst, tag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (dst != MPI_PROC_NULL && px_lrank(c, dst) >= 0) {
		/* No status to translate: the native request serves the application directly. */
		struct px_req tmp;

		px_req_init(&tmp, c);
		px_req_args(&tmp, buf, count, t, dst, tag);
		tmp.mode = mode;
		rc = native_isend(&tmp, px_lrank(c, dst));
		*req = tmp.native;
		return rc;
	}
	r = px_req_new(c);
	if (!r)
		return px_raise_memory(c);
	px_req_args(r, buf, count, t, dst, tag);
	r->mode = mode;
	rc = px_send_start(r);
	if (rc != MPI_SUCCESS) {
		px_req_release(r);
		return rc;
	}
	if (mode == PX_BUFFERED && !r->done) {
		/* Complete at once for the application; the copy travels on its own. */
		struct px_req *own = px_req_new(c);

		if (!own) {
			px_req_detach(r);
			return px_raise_memory(c);
		}
		px_req_args(own, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0);
		px_send_start(own);
		px_req_detach(r);
		r = own;
	}
	*req = r->token;
	return MPI_SUCCESS;
}

int px_Isend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c,
	MPI_Request *req)
{
	return isend(buf, count, t, dst, tag, c, PX_STANDARD, req);
}

int px_Ibsend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c,
	MPI_Request *req)
{
	return isend(buf, count, t, dst, tag, c, PX_BUFFERED, req);
}

int px_Issend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c,
	MPI_Request *req)
{
	return isend(buf, count, t, dst, tag, c, PX_SYNCHRONOUS, req);
}

int px_Irsend(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c,
	MPI_Request *req)
{
	return isend(buf, count, t, dst, tag, c, PX_READY, req);
}

int px_Recv(
	void *buf, MPI_Count count, MPI_Datatype t, int src, int tag, struct px_comm *c, MPI_Status *status)
{
	struct px_req r;
	int rc = px_check_args(c, count, t, src, tag, true);

	if (rc != MPI_SUCCESS)
		return rc;
	if (here(c, src)) {
		px_comm_asked(c);
		px_blocking(rc, PX_N(Recv, buf, count, t, px_lrank(c, src), tag, c->native, status));
		if (status != MPI_STATUS_IGNORE)
			status->MPI_SOURCE = src;
		return rc;
	}
	px_req_init(&r, c);
	px_req_args(&r, buf, count, t, src, tag);
	return finish_blocking(&r, px_recv_start(&r), status);
}

int px_Irecv(
	void *buf, MPI_Count count, MPI_Datatype t, int src, int tag, struct px_comm *c, MPI_Request *req)
{
	struct px_req *r;
	int rc = px_check_args(c, count, t, src, tag, true);

	if (rc != MPI_SUCCESS)
		return rc;
	r = px_req_new(c);
	if (!r)
		return px_raise_memory(c);
	px_req_args(r, buf, count, t, src, tag);
	rc = px_recv_start(r);
	if (rc != MPI_SUCCESS) {
		px_req_release(r);
		return rc;
	}
	*req = r->token;
	return MPI_SUCCESS;
}

static int native_sendrecv(const void *sbuf, MPI_Count scount, MPI_Datatype st, int dst, int stag, void *rbuf,
	MPI_Count rcount, MPI_Datatype rt, int src, int rtag, MPI_Comm n, MPI_Status *status)
{
#ifdef PX_HAVE_Sendrecv_c
	return px_n.Sendrecv_c(sbuf, scount, st, dst, stag, rbuf, rcount, rt, src, rtag, n, status);
#else
	return px_n.Sendrecv(sbuf, (int)scount, st, dst, stag, rbuf, (int)rcount, rt, src, rtag, n, status);
#endif
}

/* sig: of what is sent, if that is packed; else NULL. */
static int sendrecv(const void *sbuf, MPI_Count scount, MPI_Datatype st, const struct px_sig *sig, int dst,
	int stag, void *rbuf, MPI_Count rcount, MPI_Datatype rt, int src, int rtag, struct px_comm *c,
	MPI_Status *status)
{
	struct px_req s, r;
	int rc, rc2;

	if (here(c, dst) && here(c, src)) {
		px_blocking(rc, native_sendrecv(sbuf, scount, st, px_lrank(c, dst), stag, rbuf, rcount, rt,
					px_lrank(c, src), rtag, c->native, status));
		if (status != MPI_STATUS_IGNORE)
			status->MPI_SOURCE = src;
		return rc;
	}
	rc = px_check_args(c, scount, st, dst, stag, false);
	if (rc == MPI_SUCCESS)
		rc = px_check_args(c, rcount, rt, src, rtag, true);
	if (rc != MPI_SUCCESS)
		return rc;
	px_req_init(&r, c);
	px_req_args(&r, rbuf, rcount, rt, src, rtag);
	rc = px_recv_start(&r);
	if (rc != MPI_SUCCESS)
		return rc;
	px_req_init(&s, c);
	px_req_args(&s, sbuf, scount, st, dst, stag);
	s.sig = sig;
	rc2 = finish_blocking(&s, px_send_start(&s), MPI_STATUS_IGNORE);
	rc = finish_blocking(&r, rc, status);
	return rc != MPI_SUCCESS ? rc : rc2;
}

int px_Sendrecv(const void *sbuf, MPI_Count scount, MPI_Datatype st, int dst, int stag, void *rbuf,
	MPI_Count rcount, MPI_Datatype rt, int src, int rtag, struct px_comm *c, MPI_Status *status)
{
	return sendrecv(sbuf, scount, st, NULL, dst, stag, rbuf, rcount, rt, src, rtag, c, status);
}

#ifdef PX_HAVE_Isendrecv
static int isendrecv(const void *sbuf, MPI_Count scount, MPI_Datatype st, const struct px_sig *sig, int dst,
	int stag, void *rbuf, MPI_Count rcount, MPI_Datatype rt, int src, int rtag, struct px_comm *c,
	MPI_Request *req)
{
	struct px_req *s, *r;
	int rc = px_check_args(c, scount, st, dst, stag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	s = px_req_new(c);
	if (!s)
		return px_raise_memory(c);
	px_req_args(s, sbuf, scount, st, dst, stag);
	s->sig = sig;
	rc = px_Irecv(rbuf, rcount, rt, src, rtag, c, req);
	if (rc != MPI_SUCCESS) {
		px_req_release(s);
		return rc;
	}
	r = px_req_find(*req);
	r->also = s;
	rc = px_send_start(s);
	if (rc != MPI_SUCCESS) {
		s->done = true;
		px_Cancel(req);
		px_Request_free(req);
	}
	return rc;
}

int px_Isendrecv(const void *sbuf, MPI_Count scount, MPI_Datatype st, int dst, int stag, void *rbuf,
	MPI_Count rcount, MPI_Datatype rt, int src, int rtag, struct px_comm *c, MPI_Request *req)
{
	return isendrecv(sbuf, scount, st, NULL, dst, stag, rbuf, rcount, rt, src, rtag, c, req);
}
#endif

/* Both replace forms send a packed copy, so that the receive may fill the buffer at any time. */
struct packed {
	void *copy;
	MPI_Count n;
	MPI_Datatype type;        /* MPI_PACKED; or that of the buffer, with its layout */
	const struct px_sig *sig; /* of what is packed, where a site is unlike us; else NULL */
};

/* MPI error code, raised. */
static int pack_copy(struct px_comm *c, const void *buf, MPI_Count count, MPI_Datatype t, struct packed *k)
{
	const struct px_type *p = px_type_get(t);
	MPI_Count bytes;
	int rc;

	*k = (struct packed){ .type = MPI_PACKED, .sig = px_unlike_any ? px_signature_get(t) : NULL };
	if (count < 0)
		return px_raise_count(c, count);
	if (!p || (px_unlike_any && !k->sig))
		return px_raise_type(c);
	k->n = bytes = count * p->size;
	if (!px_fits(bytes)) { /* a local native send counts in int */
		if (!p->contig)
			return px_raise_count(c, count);
		*k = (struct packed){ .n = count, .type = t };
	}
	k->copy = malloc((size_t)bytes + 1);
	if (!k->copy)
		return px_raise_memory(c);
	rc = px_type_pack(buf, count, t, k->copy);
	if (rc != MPI_SUCCESS) {
		free(k->copy);
		return px_raise_as(c, rc, NULL);
	}
	return MPI_SUCCESS;
}

int px_Sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype t, int dst, int stag, int src, int rtag,
	struct px_comm *c, MPI_Status *status)
{
	struct packed k;
	int rc = pack_copy(c, buf, count, t, &k);

	if (rc != MPI_SUCCESS)
		return rc;
	rc = sendrecv(k.copy, k.n, k.type, k.sig, dst, stag, buf, count, t, src, rtag, c, status);
	free(k.copy);
	return rc;
}

#ifdef PX_HAVE_Isendrecv
int px_Isendrecv_replace(void *buf, MPI_Count count, MPI_Datatype t, int dst, int stag, int src, int rtag,
	struct px_comm *c, MPI_Request *req)
{
	struct packed k;
	int rc = pack_copy(c, buf, count, t, &k);

	if (rc != MPI_SUCCESS)
		return rc;
	rc = isendrecv(k.copy, k.n, k.type, k.sig, dst, stag, buf, count, t, src, rtag, c, req);
	if (rc == MPI_SUCCESS)
		px_req_find(*req)->copy = k.copy;
	else
		free(k.copy);
	return rc;
}
#endif
