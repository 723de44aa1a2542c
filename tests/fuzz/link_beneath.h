/* link_beneath.h: what lies beneath the fuzz target of the links: its input, a native MPI that completes as many operations as it is told
 * to, connections that take as many bytes as they are told to, and compression without threads. Included by link.c only.
 */
#include <string.h>

#include "codec.h"
#include "conn.h"
#include "quiet.h"
#include "err.h"
#include "nobody_dials.h"
#include "frame_check.h"
#include "fuzz.h"
#include "in_send.h"
#include "out_flow.h"
#include "pack.h"
#include "parser.h"
#include "seg_code.h"
#include "stream_life.h"
#include "unpack.h"
#include "vendor.h"

#define RANKS   2 /* of each of the two sites */
#define STREAMS 2
#define GRAVES  64

struct px_native px_n;

static const uint8_t *in;
static size_t left;
static int budget;   /* native operations that may complete */
static int last_len; /* of the one that completed last */
static size_t room;  /* bytes that connections take */
static size_t busy;  /* bytes said that have not left */
static struct pxd_conn *grave[GRAVES];
static int ngraves;

static unsigned arg(void)
{
	if (left == 0)
		return 0;
	left--;
	return *in++;
}

/* The native MPI. A request is the length of its message, and 1. */
static int fake_isend(const void *buf, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *req)
{
	(void)buf, (void)t, (void)to, (void)tag, (void)c;
	*req = (MPI_Request)(intptr_t)(n + 1);
	return MPI_SUCCESS;
}

static int fake_irecv(void *buf, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *req)
{
	return fake_isend(buf, n, t, from, tag, c, req);
}

static int fake_test(MPI_Request *req, int *flag, MPI_Status *st)
{
	(void)st;
	*flag = budget > 0;
	budget -= *flag;
	last_len = (int)(intptr_t)*req - 1;
	return MPI_SUCCESS;
}

static int fake_count(const MPI_Status *st, MPI_Datatype t, int *n)
{
	(void)st, (void)t;
	*n = last_len;
	return MPI_SUCCESS;
}

/* Connections. What is written has to be frames of one stream, each number following the one before. */
struct wire {
	struct pxd_conn conn;
	struct px_parser parser;
	uint64_t seq;
};

void pxd_conn_close(struct pxd_conn *c)
{
	MUST(!c->closing && ngraves < GRAVES);
	c->closing = true;
	grave[ngraves++] = c; /* freed later, as libuv does */
}

ssize_t pxd_conn_writev(struct pxd_conn *c, const struct iovec *v, int n)
{
	struct wire *w = (struct wire *)c;
	ssize_t sum = 0;

	MUST(!c->closing);
	for (int i = 0; i < n && room > 0; i++) {
		size_t k = v[i].iov_len < room ? v[i].iov_len : room, used;
		const uint8_t *at = v[i].iov_base;
		int ev;

		room -= k;
		sum += (ssize_t)k;
		while ((ev = px_parser_feed(&w->parser, at, k, &used)) != PX_PARSE_MORE) {
			MUST(ev > 0);
			if (ev == PX_PARSE_HEADER) {
				MUST(px_frame_check_link(&w->parser.frame, 0) == 0);
				MUST(w->parser.frame.seq == w->seq + 1);
				w->seq++;
			}
			at += used;
			k -= used;
		}
	}
	return sum;
}

int pxd_conn_say(struct pxd_conn *c, const uint8_t *head, size_t nhead, const uint8_t *body, size_t nbody)
{
	struct px_frame f;

	(void)body;
	MUST(!c->closing && nhead == PX_FRAME_SIZE && px_frame_get(head, nhead, &f) == PX_FRAME_SIZE);
	MUST(f.body == nbody && f.seq == 0);
	return PX_OK;
}

bool pxd_conn_line_busy(const struct pxd_conn *c)
{
	(void)c;
	return false;
}

double pxd_conn_line_rate(const struct pxd_conn *c)
{
	(void)c;
	return 0;
}

size_t pxd_conn_busy(const struct pxd_conn *c)
{
	(void)c;
	return busy;
}

/* Compression, at once and not beside the loop. */
int pxd_pack(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead)
{
	struct px_frame g = *f;
	struct pxd_kept *kept;
	int rc;

	if (ahead || seg->len % 2)
		return pxd_path_put_seg(l, f, seg, ahead);
	g.flags |= PX_FF_KEEP;
	rc = pxd_path_put_kept(l, &g, pxd_seg_hold(seg), seg, -1, &kept);
	pxd_seg_put(seg);
	return rc;
}

int pxd_pack_open(struct pxd_path *l)
{
	(void)l;
	return PX_OK;
}

void pxd_pack_close(struct pxd_path *l)
{
	(void)l;
}

void pxd_pack_free(struct pxd_path *l)
{
	(void)l;
}

void pxd_pack_go(struct pxd_path *l)
{
	(void)l;
}

bool pxd_pack_pays(struct pxd_path *l, const struct px_frame *f, size_t n)
{
	(void)f;
	return l->opts->compress != PXD_COMPRESS_NONE && n >= PXD_PACK_MIN;
}

void pxd_unpack(struct pxd_unpack *u)
{
	static struct pxd_codec *c;
	const uint8_t *ref[PXD_PREDICT_REFS] = { NULL };

	if (!c)
		c = pxd_codec_new();
	u->rc = PX_OK;
	for (int i = 0; i < PXD_PREDICT_REFS && u->ref[i]; i++) {
		MUST(u->ref[i]->seg || u->ref[i]->bad);
		if (u->ref[i]->bad)
			u->rc = PX_EPROTO;
		else
			ref[i] = u->ref[i]->seg->data;
	}
	if (u->rc == PX_OK)
		u->rc = pxd_seg_decode(c, u->f.codec, u->f.elem, NULL, ref, u->in->data, u->in->len,
			u->out->data, u->out->len);
	if (u->kept && u->rc == PX_OK)
		u->kept->seg = pxd_seg_hold(u->out);
	else if (u->kept)
		u->kept->bad = true;
	for (int i = 0; i < PXD_PREDICT_REFS; i++)
		pxd_kept_put(u->ref[i]);
	pxd_kept_put(u->kept);
	pxd_seg_put(u->in);
	u->done(u);
	free(u);
}

void pxd_fail(struct pxd_node *d, int code, const char *fmt, ...)
{
	(void)code; /* of an ABORT: any number */
	MUST(fmt);
	d->failed = true;
}

void pxd_text_clean(const uint8_t *text, size_t n, char *out, size_t cap)
{
	n = n < cap - 1 ? n : cap - 1;
	memcpy(out, text, n);
	out[n] = '\0';
}
