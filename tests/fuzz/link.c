/* fuzz/link.c: a peer that has the key says anything, in any state of a path: to the reader (link_in.c, in_send.c) and to the writer
 * (link.c, out_flow.c, outq.c), on connections that come and go, while the ranks of this site send, pull, dawdle and finish. What it
 * costs stays within its credit, what the writer sends is in order, and at the end nothing is left.
 *
 * The input is a program: a byte for the kind of links, then operations, each a byte and its arguments. Beneath are a connection
 * that takes as many bytes as it is told to, and a native MPI that completes as many operations as it is told to.
 */
#include "link_beneath.h"

/* One daemon of each role, of site 0, in one. */
static struct pxd d;
static struct pxd_in_path reader;
static struct pxd_path paths[2];
#define writer (paths[1])
static struct pxd_sends sends;
static struct pxd_out_flow flow;
/* As few ranks have it, and as one of very many, with reserve on demand. */
static const uint64_t windows[2][PXD_CREDITS] = { { 65536, 2 * PX_SEG_MAX, 2 * PX_SEG_MAX },
	{ 4096, 300000, 0 } };
static const uint64_t *window;
static struct pxd_reserve reserve;
static uint32_t next_msg;
static bool fin_said[RANKS];

static struct pxd_in_path *path_of(void *owner, int site, int via)
{
	(void)owner;
	return site == 1 && via == 0 ? &reader : NULL;
}

static int msg(void *owner, struct pxd_in_path *p, struct pxd_envelope *e, struct px_frame *f, int rank)
{
	(void)owner, (void)p;
	return pxd_sends_msg(&sends, e, f, rank);
}

static int seg(void *owner, struct pxd_in_path *p, const struct px_frame *f, struct pxd_seg *s, int rank)
{
	(void)owner;
	return pxd_sends_seg(&sends, p, f, s, rank);
}

static void again(void *owner, struct pxd_in_path *p)
{
	(void)owner;
	pxd_sends_pull_again(&sends, p);
}

static void tick(void *owner)
{
	(void)owner;
	pxd_sends_tick(&sends);
}

static void ended(void *owner)
{
	(void)owner;
	MUST(reader.byes > 0);
}

static const struct pxd_in_ops ops = { msg, seg, again, tick, ended };

static void up(void *owner, struct pxd_path *l, const struct px_hello *h)
{
	(void)owner, (void)l, (void)h;
}

static bool frame_back(void *owner, struct pxd_path *l, const struct px_frame *f)
{
	(void)owner;
	return f->type == PX_F_CREDIT ? pxd_out_flow_credit(&flow, l, f) : pxd_out_flow_pull(&flow, l, f);
}

static struct pxd_hosts *hosts_make(const char *more)
{
	struct pxd_hosts *h = NULL;
	char text[400], why[PXD_WHY];

	snprintf(text, sizeof text,
		"{sites: [{name: a, host: h, port: 1, ranks: 2, mpi: openmpi}, {name: b, host: h, port: 2, "
		"ranks: 2, buffer: 16MiB, "
		"mpi: openmpi}], links: [{default: , streams: 2, compress: lz4, predict: always%s}]}",
		more);
	MUST(pxd_hosts_parse(text, strlen(text), "F", &h, why, sizeof why) == 0);
	return h;
}

static void world_open(bool plain, bool crowded)
{
	static struct pxd_hosts *hosts[2]; /* read only */
	static int native[RANKS] = { 0, 1 };

	if (!hosts[0]) {
		hosts[0] = hosts_make("");
		hosts[1] = hosts_make(", security: none");
		px_log_init("fuzz", PX_LOG_ERROR);
		px_n.Isend = px_n.Issend = fake_isend;
		px_n.Irecv = fake_irecv;
		px_n.Test = fake_test;
		px_n.Get_count = fake_count;
		/* The loop is used again: it is empty between two inputs. */
		MUST(uv_loop_init(&d.node.loop) == 0);
		d.node.loop.data = &d.node;
		d.map.nranks = RANKS;
		d.map.native_of = native;
	}
	d.node.failed = false;
	memset(&reader, 0, sizeof reader);
	window = windows[crowded];
	reserve = (struct pxd_reserve){ .limit = PX_SEG_MAX + PX_SEG_MIN };
	reader.reserve = crowded ? &reserve : NULL;
	memset(&writer, 0, sizeof writer);
	memset(&sends, 0, sizeof sends);
	memset(&flow, 0, sizeof flow);
	memset(fin_said, 0, sizeof fin_said);
	d.node.hosts = hosts[plain];
	next_msg = 0;
	budget = 0;
	room = busy = 0;
	flow.path = paths;
	MUST(pxd_sends_init(&sends, &d) == 0 && pxd_out_flow_init(&flow, &d) == 0);
	sends.path_of = path_of;
	reader.ops = &ops;
	reader.segs = &sends.segs;
	MUST(pxd_in_path_open(&reader, &d.node, 1, 0, window) == 0);
	writer.frame = frame_back;
	writer.up = up;
	MUST(pxd_path_open(&writer, &d.node, 1, 0, PX_SEG_MAX) == 0);
}

static void world_close(void)
{
	pxd_in_path_close(&reader);
	pxd_path_close(&writer);
	MUST(uv_run(&d.node.loop, UV_RUN_DEFAULT) == 0);
	pxd_in_path_free(&reader);
	pxd_path_free(&writer);
	pxd_sends_fini(&sends);
	pxd_out_flow_fini(&flow);
	MUST(sends.segs.used_bytes == 0 && flow.segs.used_bytes == 0);
	MUST(sends.envelope_bytes == 0 && sends.nenvelopes == 0);
	while (ngraves > 0)
		free(grave[--ngraves]);
}

/* What is promised whatever the peer says. */
static void check(void)
{
	uint64_t data = 0, granted = 0;

	for (int r = 0; r < RANKS; r++) {
		const struct pxd_credit *c = pxd_in_path_credit(&reader, r);

		for (int k = 0; k < PXD_CREDITS; k++) {
			MUST(c->freed[k] <= c->arrived[k] && c->arrived[k] <= c->granted[k]);
			MUST((k == PXD_CREDIT_RESERVE && reader.reserve) ||
				c->arrived[k] - c->freed[k] <= window[k]);
		}
		granted += c->granted[PXD_CREDIT_RESERVE] - c->freed[PXD_CREDIT_RESERVE];
		data += c->arrived[PXD_CREDIT_DATA] - c->freed[PXD_CREDIT_DATA] +
			c->arrived[PXD_CREDIT_RESERVE] - c->freed[PXD_CREDIT_RESERVE];
		MUST(flow.notes.nasks[r] <= PXD_PULLS * RANKS + 64);
	}
	/* A segment of each rank may be more than all share. */
	MUST(!reader.reserve || (granted == reserve.used && granted <= reserve.limit + RANKS * PX_SEG_MAX));
	for (int i = 0; i < reader.nstreams; i++) {
		const struct pxd_history *h = &reader.stream[i]->history;

		MUST(h->bytes <= h->share && h->share == pxd_history_share(d.node.hosts, 1, 0, i));
		data += h->bytes;
	}
	MUST(d.node.failed || sends.segs.used_bytes <= data);
	for (int i = 0; i < writer.nstreams; i++) {
		const struct pxd_stream *s = writer.stream[i];

		MUST(s->acked <= s->seq && s->acked <= pxd_outq_sent(&s->q, s->seq));
	}
	while (ngraves > 0 && !d.node.failed)
		free(grave[--ngraves]);
}

/* Give n bytes to the owner of c, in pieces, as a socket would. */
static void feed(struct pxd_conn *c, const uint8_t *data, size_t n, size_t piece)
{
	while (n > 0 && !c->closing && !d.node.failed) {
		size_t k = 0, most = n < piece ? n : piece;
		uint8_t *base = NULL;

		c->ops->room(c, &base, &k);
		MUST(base && k > 0);
		k = k < most ? k : most;
		memcpy(base, data, k);
		c->ops->got(c, base, k);
		data += k;
		n -= k;
	}
}

/* A frame of the peer, nearly right: so it gets far. body: zeros, or what an argument says, or (not NULL) this. */
static void frame_feed(struct pxd_conn *c, struct px_frame *f, const uint8_t *body, bool plain, unsigned how)
{
	static uint8_t bytes[PX_FRAME_SIZE + PX_SEG_MAX];
	size_t n = f->body <= PX_SEG_MAX ? (size_t)f->body : 0, some = n < left ? n : left;

	px_frame_put(f, bytes);
	memset(bytes + PX_FRAME_SIZE, 0, n);
	if (body)
		memcpy(bytes + PX_FRAME_SIZE, body, n);
	else if (how & 1 && some <= 64) {
		memcpy(bytes + PX_FRAME_SIZE, in, some);
		in += some;
		left -= some;
	}
	if (plain)
		pxd_frame_check(bytes, bytes + PX_FRAME_SIZE, n);
	if (how & 2)
		bytes[arg() % (PX_FRAME_SIZE + n)] ^= (uint8_t)(1 << (how >> 5));
	n += PX_FRAME_SIZE;
	if (how & 4 && n > PX_FRAME_SIZE)
		n -= 1 + arg() % (n - 1); /* it stays incomplete */
	feed(c, bytes, n, how & 8 ? 1 + arg() : SIZE_MAX);
}

static struct px_frame frame_some(uint8_t type)
{
	static const uint64_t sizes[] = { 0, 1, 5000, PX_INLINE_MAX, PX_INLINE_MAX + 1, PX_SEG_MIN,
		PX_SEG_MIN + 1, PX_SEG_MAX / 2 + 75712, 3 * PX_SEG_MAX, INT64_MAX };
	unsigned a = arg(), b = arg();
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = type };

	f.src = (a & 1) + RANKS * (a >> 1 & 1);
	f.dst = (a >> 2 & 1) + RANKS * (a >> 3 & 1);
	f.msg = a >> 4;
	f.total = sizes[b % 10];
	f.seg = f.total > PX_INLINE_MAX || (f.total > 0 && b & 0x20) ? (b & 0x80 ? PX_SEG_MAX : PX_SEG_MIN)
								     : 0;
	f.flags = b & 0x40 ? PX_FF_SYNC : 0;
	return f;
}

/* A segment of zeros, predicted from messages that may be remembered (they are zeros, too) and compressed: its body. */
static const uint8_t *predicted(struct px_frame *f)
{
	static uint8_t zeros[PX_SEG_MAX], scratch[PX_SEG_MAX], out[PX_SEG_MAX];
	static struct pxd_codec *c;
	unsigned a = arg();
	const uint8_t *ref[PXD_PREDICT_REFS] = { zeros, zeros, zeros, zeros, zeros, zeros };
	struct pxd_predictor p = { .how = (uint8_t)(a & 3 ? a & 0x53 : 4), .stride = a & 3 ? 0 : 1 };
	int codec = a & 0x20 ? PXD_CODEC_RESIDUAL : PXD_CODEC_LZ4 | PXD_CODEC_SHUFFLE;
	size_t n = (size_t)f->body;

	p.nrefs = pxd_predict_time(&p);
	if ((a & 7) == 5) {
		p.how = PXD_PREDICT_WEIGHTED | PXD_PREDICT_FLOAT | 1;
		p.nrefs = 2 + (int)(a >> 4 & 3);
	}
	for (int i = 0; i < p.nrefs; i++)
		p.ref[i] = f->msg - 1 - (uint32_t)i - (a >> 7);
	if (!c)
		c = pxd_codec_new();
	f->elem = a & 8 ? 4 : 8;
	f->body = pxd_seg_encode(c, codec, 1, f->elem, &p, NULL, ref, zeros, n, scratch, out, sizeof out);
	if (f->body == 0) { /* too short */
		f->body = n;
		return NULL;
	}
	f->codec = (uint8_t)(PXD_CODEC_PREDICT | codec);
	return out;
}

static void to_reader(bool plain)
{
	const uint8_t *body = NULL;

	static const uint8_t types[] = { PX_F_MSG, PX_F_SEG, PX_F_SEG, PX_F_ACK, PX_F_BYE, PX_F_ABORT,
		PX_F_PING, PX_F_PONG, PX_F_MSG, PX_F_SEG, PX_F_CREDIT, PX_F_HELLO };
	unsigned a = arg(), how = arg(), c = arg();
	struct pxd_in_stream *s = a & 1 && reader.nstreams > 1 ? reader.stream[1]
				  : reader.nstreams > 0        ? reader.stream[0]
							       : NULL;
	uint8_t type = types[(a >> 1) % sizeof types];
	struct px_frame f = frame_some(type);

	if (!s || !s->conn)
		return;
	if (type == PX_F_SEG && f.seg) {
		uint64_t n = (f.total + f.seg - 1) / f.seg, k = c % 4 == 3 ? n - 1 : c % 4;

		f.offset = (k < n ? k : 0) * f.seg;
		f.body = f.total - f.offset < f.seg ? f.total - f.offset : f.seg;
		f.flags |= c & 0x80 ? PX_FF_RESERVE : 0;
		f.codec = c & 0x40 ? 1 + (c >> 4 & 3) : 0;
		f.elem = c & 8 ? 4 : 0;
		f.flags |= how & 64 ? PX_FF_KEEP : 0;
		if (!f.codec && how & 128) {
			body = predicted(&f);
		} else if (f.codec) {
			f.codec |= c & 8 ? PXD_CODEC_SHUFFLE : 0;
			f.body = 1 + c % 64;
		}
	} else if (type == PX_F_MSG) {
		f.body = f.seg ? 0 : f.total;
	} else if (type == PX_F_ABORT || type == PX_F_HELLO) {
		f.body = f.total = c;
		f.seg = f.flags = 0;
		f.msg = 0;
	} else {
		f.total = f.seg = f.flags = 0;
		if (type != PX_F_ACK)
			f.src = f.dst = f.msg = 0;
	}
	if (type >= PX_F_MSG && type <= PX_F_ABORT)
		f.seq = s->seq + 1 + (how & 16 ? c % 4 : 0);
	frame_feed(s->conn, &f, body, plain, how);
}

static void to_writer(bool plain)
{
	static const uint8_t types[] = { PX_F_LINKACK, PX_F_CREDIT, PX_F_PULL, PX_F_PULL, PX_F_PING,
		PX_F_PONG, PX_F_ABORT, PX_F_MSG };
	unsigned a = arg(), how = arg(), c = arg();
	struct pxd_stream *s = writer.stream[a & 1];
	uint8_t type = types[(a >> 1) % sizeof types];
	struct px_frame f = frame_some(type);

	if (!s->conn)
		return;
	f.flags = 0;
	if (type == PX_F_LINKACK) {
		f.src = f.dst = f.msg = f.seg = 0;
		f.total = s->acked + c % 8 + (how & 16 ? f.total : 0);
	} else if (type == PX_F_CREDIT) {
		f.src = f.msg = f.seg = 0;
		f.offset = f.total / 2 + c * 4096;
		f.ctx = c * 65536;
		f.tag = how & 32 ? 1 : 0;
		f.dst = f.tag ? 0 : f.dst;
	} else if (type == PX_F_PULL) {
		f.total = f.seg = 0;
		f.msg += c;
	} else if (type == PX_F_ABORT) {
		f.body = f.total = c;
		f.seg = f.msg = 0;
	} else {
		f.src = f.dst = f.msg = f.seg = 0;
		f.total = c;
	}
	frame_feed(s->conn, &f, NULL, plain, how);
}

static void bytes_feed(struct pxd_conn *c)
{
	unsigned piece = 1 + arg(), n = arg();
	const uint8_t *from = in;

	n = n < left ? n : (unsigned)left;
	in += n;
	left -= n;
	if (c)
		feed(c, from, n, piece);
}

/* A new connection of a stream, of the reader or of the writer, if its hello is accepted; or the end of one. */
static void connect_some(void)
{
	unsigned a = arg(), c = arg();
	int stream = a >> 1 & 1;
	struct px_hello h = { .session = c & 1 ? 7 : c >> 4 };
	struct wire *w;
	char why[300];

	if (a & 4) {
		struct pxd_conn *old = a & 1                      ? writer.stream[stream]->conn
				       : stream < reader.nstreams ? reader.stream[stream]->conn
								  : NULL;
		if (old) {
			snprintf(old->why, sizeof old->why, "cut");
			old->dead = true;
			old->ops->lost(old, old->why);
		}
		return;
	}
	w = calloc(1, sizeof *w);
	MUST(w);
	if (a & 1) {
		h.session = c & 1 ? writer.session : c >> 4;
		h.next = c & 2 ? writer.stream[stream]->acked + 1 + (c >> 4)
			       : writer.stream[stream]->acked + 1;
		/* A reader takes over only what has been written. */
		if (pxd_path_judge(&writer, stream, &h, why, sizeof why) == 0) {
			w->seq = h.next - 1;
			pxd_path_linked(&writer, stream, &w->conn, &h);
			return;
		}
	} else {
		h.next = c & 2 ? c >> 4 : 0;
		if (pxd_in_path_judge(&reader, stream, &h, why, sizeof why) == 0) {
			pxd_in_path_linked(&reader, stream, &w->conn, &h);
			return;
		}
	}
	free(w);
}

/* The ranks of this site, who keep to the rules. */
static void rank_sends(void)
{
	struct px_frame f = frame_some(PX_F_MSG);
	static const uint8_t zeros[PX_INLINE_MAX];
	int rc;

	f.src %= RANKS;
	f.dst = RANKS + f.dst % RANKS;
	f.msg = ++next_msg;
	f.total = f.total > 3 * PX_SEG_MAX ? 3 * PX_SEG_MAX : f.total;
	f.seg = f.total > PX_INLINE_MAX ? f.seg : 0;
	f.body = f.seg ? 0 : f.total;
	if (fin_said[f.src] || writer.bye_wanted)
		return;
	f.local = f.seg ? 20 : 0;
	if (f.seg && f.total <= PX_MIDDLE_MAX)
		rc = pxd_out_flow_middle(&flow, &f, (int)f.src);
	else
		rc = pxd_out_flow_take(&flow, &f, zeros);
	if (rc == 0 && f.seg && f.total > PX_MIDDLE_MAX)
		rc = pxd_out_flow_long(&flow, &f, (int)f.src);
	if (rc < 0)
		d.node.failed = true;
}

static void rank_pulls(void)
{
	struct px_frame f = frame_some(PX_F_PULL);
	int rank = (int)(f.dst % RANKS);

	f.src = RANKS + f.src % RANKS;
	f.dst = (uint32_t)rank;
	f.tag = f.flags ? 1 : 0;
	f.local = 20;
	if (!f.seg || fin_said[rank])
		return;
	if (pxd_sends_pull(&sends, &f, rank) < 0)
		d.node.failed = true;
}

static void rank_finishes(void)
{
	unsigned r = arg() % RANKS;

	if (!fin_said[r])
		pxd_sends_fin(&sends, (int)r);
	fin_said[r] = true;
}

static void turn(void)
{
	unsigned a = arg();

	budget = (int)(a & 31);
	room = (size_t)(a >> 5) * (a & 1 ? 100000 : 333);
	busy = a == 255 ? 1 << 20 : 0;
	pxd_sends_poll(&sends);
	pxd_sends_tick(&sends);
	pxd_out_flow_poll(&flow);
	if (!d.node.failed)
		pxd_path_flush(&writer);
	if (!d.node.failed && writer.bye_wanted)
		pxd_path_done(&writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	unsigned kind;
	bool plain;

	in = data;
	left = len;
	kind = arg();
	plain = kind & 1;
	world_open(plain, kind & 2);
	while (left > 0 && !d.node.failed) {
		unsigned op = arg();

		switch (op % 12) {
		case 0:
		case 1:
			to_reader(plain);
			break;
		case 2:
			to_writer(plain);
			break;
		case 3:
		case 4:
			connect_some();
			break;
		case 5:
			rank_sends();
			break;
		case 6:
			rank_pulls();
			break;
		case 7:
			rank_finishes();
			break;
		case 8:
			bytes_feed(reader.nstreams > 0 ? reader.stream[0]->conn : NULL);
			break;
		case 9:
			bytes_feed(writer.stream[op >> 4 & 1]->conn);
			break;
		case 10:
			if (pxd_out_flow_empty(&flow))
				pxd_path_bye(&writer);
			break;
		default:
			turn();
		}
		check();
	}
	world_close();
	return 0;
}
