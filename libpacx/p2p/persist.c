/* persist.c: persistent requests on communicators that span sites. A send to a local rank stays
 * native; everything else is a px_req that MPI_Start starts again.
 */
#include "bind.h"
#include "comm.h"
#include "native.h"
#include "p2p.h"
#include "raise.h"

static int init(const void *buf, MPI_Count count, MPI_Datatype t, int peer, int tag, struct px_comm *c,
	enum px_kind kind, enum px_mode mode, MPI_Request *req)
{
	struct px_req *r;
	int rc = px_check_args(c, count, t, peer, tag, kind == PX_RECV);

	if (rc != MPI_SUCCESS)
		return rc;
	r = px_req_new(c);
	if (!r)
		return px_raise_memory(c);
	px_req_args(r, buf, count, t, peer, tag);
	r->kind = kind;
	r->mode = mode;
	r->persistent = true;
	px_req_hold_types(r); /* from start to start, until the request is freed */
	*req = r->token;
	return MPI_SUCCESS;
}

static bool local(const struct px_comm *c, int peer)
{
	return peer >= 0 && peer < c->size && px_lrank(c, peer) >= 0;
}

/* The four modes of a send that is started again and again. */
#define SEND_INIT(name, mode)                                                                                \
	int px_##name(const void *buf, MPI_Count count, MPI_Datatype t, int dst, int tag, struct px_comm *c, \
		MPI_Request *req)                                                                            \
	{                                                                                                    \
		if (local(c, dst))                                                                           \
			return PX_N(name, buf, count, t, px_lrank(c, dst), tag, c->native, req);             \
		return init(buf, count, t, dst, tag, c, PX_SEND, mode, req);                                 \
	}
SEND_INIT(Send_init, PX_STANDARD)
SEND_INIT(Bsend_init, PX_BUFFERED)
SEND_INIT(Ssend_init, PX_SYNCHRONOUS)
SEND_INIT(Rsend_init, PX_READY)

int px_Recv_init(
	void *buf, MPI_Count count, MPI_Datatype t, int src, int tag, struct px_comm *c, MPI_Request *req)
{
	return init(buf, count, t, src, tag, c, PX_RECV, PX_STANDARD, req);
}

int px_Start(MPI_Request *req)
{
	struct px_req *r = px_req_find(*req);
	int rc;

	if (!r)
		return px_n.Start(req);
	if (!r->persistent || r->active)
		return px_raise(r->c, MPI_ERR_REQUEST, "the request is %s",
			r->persistent ? "active already" : "not persistent");
	r->active = true;
	r->done = r->acked = r->raised = false;
	r->error = MPI_SUCCESS;
	if (r->again)
		rc = r->again->start(r);
	else
		rc = r->kind == PX_SEND ? px_send_start(r) : px_recv_start(r);
	if (rc != MPI_SUCCESS)
		r->active = false;
	return rc;
}

int px_Startall(int n, MPI_Request req[])
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		rc = px_Start(&req[i]);
	return rc;
}
