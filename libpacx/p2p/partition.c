/* partition.c: partitioned communication (MPI-4, chapter 4) on communicators that span sites.
 *
 * Design. Sends and receives match when they are made: MPI_Psend_init sends a notice under the user's tag, MPI_Precv_init takes the
 * next one. Messages have a context of their own (ctx | 3), and it is never the application's. The notice names a channel, a
 * pair of negative tags; each MPI_Pready then sends the number of its partition with the first and the partition with the
 * second tag, whether the receiver has started or not: both come in the order sent, so the receiver knows where the next partition
 * goes before it posts the receive for it. The two sides may divide the data differently; where a partition of the sender's does
 * not consist of whole elements of the receiver's, and those are not contiguous, the data is unpacked when all has come. Between
 * machines that store data in different ways partitions have to be whole elements of the receiver's, which its receives convert.
 *
 *   notice   0 channel (4)  4 partitions (4)  8 bytes of each (8); little endian
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "vendor.h"

#ifdef PX_HAVE_Psend_init

#include "channel.h"
#include "comm.h"
#include "datatype.h"
#include "endian.h"
#include "err.h"
#include "p2p.h"
#include "raise.h"
#include "request.h"
#include "talk.h"
#include "typemap.h"
#include "unlike.h"

#define NOTICE_BYTES 16

/* One partition of the sender's, at either end. */
struct piece {
	uint8_t number[4];
	struct px_req head, data;
	bool begun, done; /* sender: it is ready; receiver: its head has come */
};

struct parts {
	struct px_again again;
	struct px_req *r;
	bool send;
	int here; /* partitions at this end */
	uint32_t channel;
	int n;               /* partitions of the sender; -1: the notice has not come */
	uint64_t bytes;      /* of each of them, as stored here */
	struct piece *piece; /* [n] */
	int begun, done;
	/* Receiver. */
	struct px_req notice;
	uint8_t told[NOTICE_BYTES];
	char *packed; /* all data until it is complete, or NULL */
	bool head_posted, converts;
};

static int tag_of(const struct parts *p, bool data)
{
	return -1 - (int)(p->channel << 1 | (data ? 1u : 0u));
}

static void parts_free(struct px_again *again)
{
	struct parts *p = (struct parts *)again;

	if (!p->send && p->n < 0)
		px_req_cancel(&p->notice);
	free(p->piece);
	free(p->packed);
	free(p);
}

/* The context of c's partitioned messages exists from the first of them on. */
static int context(struct px_comm *c)
{
	if (c->parted)
		return MPI_SUCCESS;
	px_match_init(&c->parts, c);
	if (px_channel_ctx_add(c->ctx | 3, &c->parts) < 0)
		return MPI_ERR_NO_MEM;
	c->parted = true;
	return MPI_SUCCESS;
}

static void post(
	struct px_comm *c, struct px_req *q, void *buf, MPI_Count count, MPI_Datatype t, int src, int tag)
{
	px_req_init(q, c);
	px_req_args(q, buf, count, t, src, tag);
	q->kind = PX_RECV;
	px_talk_post(&c->parts, q);
}

static int leave(struct px_comm *c, struct px_req *q, const void *buf, MPI_Count count, MPI_Datatype t,
	int dst, int tag)
{
	px_req_init(q, c);
	px_req_args(q, buf, count, t, dst, tag);
	q->kind = PX_SEND;
	return px_channel_send(q, c->ctx | 3, px_grank(c, dst), 0);
}

static void ended(struct px_req *r)
{
	r->done = true;
	if (r->windowed)
		px_req_rest(r);
}

static bool send_look(struct px_req *r)
{
	struct parts *p = r->job;

	for (int i = 0; i < p->n && p->done < p->begun; i++) {
		struct piece *k = &p->piece[i];

		if (!k->begun || k->done || !px_req_test(&k->head) || !px_req_test(&k->data))
			continue;
		k->done = true;
		p->done++;
		if (r->error == MPI_SUCCESS)
			r->error = k->data.error;
	}
	if (p->done == p->n)
		ended(r);
	return r->done;
}

/* Partitions of a machine that stores them in another way: how long they are here. */
static void convert(struct px_req *r)
{
	const struct px_repr *from = px_unlike(px_grank(r->c, r->peer)), *here = px_unlike_here();
	const struct px_sig *s = from ? px_signature_get(r->type) : NULL;
	struct parts *p = r->job;
	uint64_t bytes = p->bytes, one = s ? px_sig_size(s, here) : 0;

	if (!s || px_sig_same(s, from, here))
		return;
	p->converts = true;
	p->bytes = px_sig_length(s, from, here, bytes);
	if (one == 0 || p->bytes % one != 0 || px_sig_length(s, here, from, p->bytes) != bytes) {
		r->error = MPI_ERR_TYPE;
		r->why = px_text(
			"partitions of rank %d, which stores data in another way, are not whole elements "
			"of the receive",
			r->peer);
		p->bytes = 0;
		p->n = 0;
	}
}

/* The notice has come: what it says must be what this end has room for. */
static void noticed(struct px_req *r)
{
	struct parts *p = r->job;
	const struct px_type *t = px_type_get(r->type);
	uint64_t room = (uint64_t)(r->count * t->size) * (uint64_t)p->here;

	p->channel = px_get32(p->told);
	p->n = (int)px_get32(p->told + 4);
	p->bytes = px_get64(p->told + 8);
	convert(r);
	p->piece = calloc((size_t)p->n + 1, sizeof *p->piece);
	if (!t->contig && t->size > 0 && p->bytes % (uint64_t)t->size != 0)
		p->packed = malloc(p->bytes * (uint64_t)p->n);
	if (!p->piece || (!p->packed && !t->contig && t->size > 0 && p->bytes % (uint64_t)t->size != 0))
		px_channel_abort(1, "out of memory for a partitioned receive");
	if (p->bytes * (uint64_t)p->n > room) {
		r->error = MPI_ERR_TRUNCATE;
		r->why = px_text(
			"%d partitions of %llu bytes come from rank %d, the receive has room for %llu bytes",
			p->n, (unsigned long long)p->bytes, r->peer, (unsigned long long)room);
		p->n = 0; /* whatever comes stays where it is */
	}
}

/* The receive for the data of partition i. */
static void data_post(struct px_req *r, struct piece *k, uint32_t i)
{
	struct parts *p = r->job;
	const struct px_type *t = px_type_get(r->type);
	uint64_t at = p->bytes * i;
	char *buf = r->buf;

	if (p->packed) {
		post(r->c, &k->data, p->packed + at, (MPI_Count)p->bytes, MPI_BYTE, r->peer, tag_of(p, true));
	} else if (t->contig && !p->converts) {
		post(r->c, &k->data, buf + at, (MPI_Count)p->bytes, MPI_BYTE, r->peer, tag_of(p, true));
	} else {
		MPI_Count before = t->size > 0 ? (MPI_Count)(at / (uint64_t)t->size) : 0;
		MPI_Count count = t->size > 0 ? (MPI_Count)(p->bytes / (uint64_t)t->size) : 0;

		post(r->c, &k->data, buf + before * t->extent, count, r->type, r->peer, tag_of(p, true));
	}
}

/* Heads come in the order of their data. */
static void heads_take(struct px_req *r)
{
	struct parts *p = r->job;

	while (p->begun < p->n) {
		struct px_req *head = &p->piece[p->begun].head;
		uint32_t i;

		if (!p->head_posted)
			post(r->c, head, p->piece[p->begun].number, 4, MPI_BYTE, r->peer, tag_of(p, false));
		p->head_posted = true;
		if (!px_req_test(head))
			return;
		p->head_posted = false;
		i = px_get32(p->piece[p->begun].number);
		p->begun++;
		if (i >= (uint32_t)p->n || p->piece[i].begun)
			px_channel_abort(1, "a partition that is none came");
		p->piece[i].begun = true;
		data_post(r, &p->piece[i], i);
	}
}

static bool recv_look(struct px_req *r)
{
	struct parts *p = r->job;

	if (p->n < 0) {
		if (!px_req_test(&p->notice))
			return false;
		noticed(r);
	}
	heads_take(r);
	for (int i = 0; i < p->n && p->done < p->begun; i++) {
		struct piece *k = &p->piece[i];

		if (!k->begun || k->done || !px_req_test(&k->data))
			continue;
		k->done = true;
		p->done++;
		if (r->error == MPI_SUCCESS)
			r->error = k->data.error;
	}
	if (p->done < p->n)
		return false;
	if (p->packed && r->error == MPI_SUCCESS)
		r->error = px_type_unpack(
			p->packed, p->bytes * (uint64_t)p->n, r->buf, r->count * p->here, r->type);
	px_req_set_status(r, r->peer, r->tag, (MPI_Count)(p->bytes * (uint64_t)p->n));
	ended(r);
	return true;
}

static int start(struct px_req *r)
{
	struct parts *p = r->job;

	p->begun = p->done = 0;
	for (int i = 0; i < p->n; i++)
		p->piece[i].begun = p->piece[i].done = false;
	if (r->peer == MPI_PROC_NULL)
		r->done = true;
	else
		px_req_need(r);
	return MPI_SUCCESS;
}

/* A request for partitions; *p is set. MPI error code, raised. */
static int make(const void *buf, int partitions, MPI_Count count, MPI_Datatype t, int peer, int tag,
	struct px_comm *c, struct parts **out, MPI_Request *req)
{
	struct px_req *r;
	struct parts *p;
	int rc = px_check_args(c, count, t, peer, tag, false);

	if (rc != MPI_SUCCESS)
		return rc;
	if (partitions < 0)
		return px_raise(c, MPI_ERR_ARG, "%d partitions", partitions);
	if (!px_type_get(t))
		return px_raise_type(c);
	if (px_unlike_any && !px_signature_get(t))
		return px_raise_type(c);
	if (context(c) != MPI_SUCCESS || !(r = px_req_new(c)))
		return px_raise_memory(c);
	p = calloc(1, sizeof *p);
	if (!p) {
		px_req_release(r);
		return px_raise_memory(c);
	}
	px_req_args(r, buf, count, t, peer, tag);
	p->again = (struct px_again){ start, parts_free };
	p->here = partitions;
	p->n = -1;
	p->r = r;
	r->kind = PX_TASK;
	r->job = p;
	r->again = &p->again;
	r->persistent = r->done = true;
	px_req_set_status(r, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	px_req_hold_types(r);
	*out = p;
	*req = r->token;
	return MPI_SUCCESS;
}

/* The notice leaves by itself: the request may be freed before it has. */
static int notify(struct px_req *r)
{
	struct parts *p = r->job;
	struct px_req *q = px_req_new(r->c);
	uint8_t notice[NOTICE_BYTES];
	int rc;

	if (!q)
		return MPI_ERR_NO_MEM;
	px_put32(notice, p->channel);
	px_put32(notice + 4, (uint32_t)p->n);
	px_put64(notice + 8, p->bytes);
	px_req_args(q, notice, sizeof notice, MPI_BYTE, r->peer, r->tag);
	q->kind = PX_SEND;
	q->mode = PX_BUFFERED;
	rc = px_channel_send(q, r->c->ctx | 3, px_grank(r->c, r->peer), 0);
	if (rc == MPI_SUCCESS)
		px_req_detach(q);
	else
		px_req_release(q);
	return rc;
}

int px_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype t, int dst, int tag,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	static uint32_t channels;
	struct parts *p;
	int rc = make(buf, partitions, count, t, dst, tag, c, &p, req);

	(void)info;
	if (rc != MPI_SUCCESS)
		return rc;
	p->send = true;
	p->r->task = send_look;
	p->n = partitions;
	p->bytes = (uint64_t)(count * px_type_get(t)->size);
	p->channel = channels++ & 0x3fffffff;
	p->piece = calloc((size_t)partitions + 1, sizeof *p->piece);
	rc = !p->piece ? MPI_ERR_NO_MEM : dst == MPI_PROC_NULL ? MPI_SUCCESS : notify(p->r);
	if (rc != MPI_SUCCESS) {
		px_req_release(p->r);
		*req = MPI_REQUEST_NULL;
		return px_raise_as(c, rc, NULL);
	}
	return MPI_SUCCESS;
}

int px_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype t, int src, int tag,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct parts *p;
	int rc = make(buf, partitions, count, t, src, tag, c, &p, req);

	(void)info;
	if (rc != MPI_SUCCESS)
		return rc;
	p->r->task = recv_look;
	if (src == MPI_PROC_NULL)
		p->n = 0;
	else
		post(c, &p->notice, p->told, NOTICE_BYTES, MPI_BYTE, src, tag);
	return MPI_SUCCESS;
}

/* Partitions lo..hi of an active send of ours are ready. MPI error code, raised. */
static int ready(struct px_req *r, int lo, int hi)
{
	struct parts *p = r->task == send_look ? r->job : NULL;
	const struct px_type *t = px_type_get(r->type);

	if (!p || !r->active)
		return px_raise(r->c, MPI_ERR_REQUEST,
			"the request is not that of a partitioned send that is active");
	for (int i = lo; i <= hi; i++) {
		struct piece *k = &p->piece[i];
		int rc = MPI_SUCCESS;

		if (i < 0 || i >= p->n || k->begun)
			return px_raise(r->c, MPI_ERR_ARG, "partition %d of %d%s", i, p->n,
				i >= 0 && i < p->n ? " is ready already" : "");
		if (r->peer == MPI_PROC_NULL)
			continue;
		px_put32(k->number, (uint32_t)i);
		rc = leave(r->c, &k->head, k->number, 4, MPI_BYTE, r->peer, tag_of(p, false));
		if (rc == MPI_SUCCESS)
			rc = leave(r->c, &k->data, (char *)r->buf + i * r->count * t->extent, r->count,
				r->type, r->peer, tag_of(p, true));
		if (rc != MPI_SUCCESS)
			return px_raise_as(r->c, rc, NULL);
		k->begun = true;
		p->begun++;
	}
	return MPI_SUCCESS;
}

int px_Pready(int partition, MPI_Request req)
{
	struct px_req *r = px_req_find(req);

	return r ? ready(r, partition, partition) : px_n.Pready(partition, req);
}

int px_Pready_range(int lo, int hi, MPI_Request req)
{
	struct px_req *r = px_req_find(req);

	return r ? ready(r, lo, hi) : px_n.Pready_range(lo, hi, req);
}

int px_Pready_list(int n, const int list[], MPI_Request req)
{
	struct px_req *r = px_req_find(req);
	int rc = MPI_SUCCESS;

	if (!r)
		return px_n.Pready_list(n, (int *)(uintptr_t)list, req); /* not const in MPICH 4.0 */
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
		rc = ready(r, list[i], list[i]);
	return rc;
}

int px_Parrived(MPI_Request req, int partition, int *flag)
{
	struct px_req *r = px_req_find(req);
	struct parts *p;
	uint64_t each, lo, hi;

	if (!r)
		return px_n.Parrived(req, partition, flag);
	if (r->task != recv_look)
		return px_raise(r->c, MPI_ERR_REQUEST, "the request is not that of a partitioned receive");
	p = r->job;
	if (partition < 0 || partition >= p->here)
		return px_raise(r->c, MPI_ERR_ARG, "partition %d of %d", partition, p->here);
	px_progress();
	*flag = px_req_asleep(r) || px_req_test(r);
	if (*flag || p->n <= 0 || p->packed)
		return MPI_SUCCESS;
	each = (uint64_t)(r->count * px_type_get(r->type)->size);
	lo = each * (uint64_t)partition;
	hi = lo + each;
	*flag = 1;
	for (int i = 0; i < p->n; i++)
		if (p->bytes * (uint64_t)i < hi && p->bytes * ((uint64_t)i + 1) > lo && !p->piece[i].done)
			*flag = 0;
	return MPI_SUCCESS;
}

#endif
