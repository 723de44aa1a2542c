/* link.h: a path, the directed pair of gateways as its writer, an out-daemon, sees it: streams that survive their connections.
 *
 * Owned by role out, one per remote gateway. A stream numbers its frames, keeps them until the reader has acknowledged them
 * (outq.h), and when its connection is lost gets a new one and goes on with the first frame that the reader has not
 * seen. Envelopes travel on stream 0, so their order is kept; segments on the stream with the shortest queue. The number of
 * streams is the hostfile's, or grows as long as that makes a full link faster. Heartbeats tell slow from dead; a stream without a
 * connection for longer than `reconnect:` ends the job. (The reader's side is link_in.h.)
 */
#ifndef PXD_LINK_H
#define PXD_LINK_H

#include "auto_codec.h"
#include "conn_dial.h"
#include "forecast.h"
#include "study.h"
#include "frame.h"
#include "history.h"
#include "link_seg.h"
#include "outq.h"
#include "node.h"
#include "parser.h"
#include "recording.h"
#include "vain.h"

/* A stream with more bytes waiting gets no new segments: more than sockets take at once on most paths, and little memory. */
#define PXD_STREAM_HIGH (4u << 20)
#define PXD_TICK_MS     50
/* With more control bytes waiting on a connection, those that can be said later wait: the peer does not read. */
#define PXD_SAID_MAX (256u << 10)

enum pxd_link_state {
	PXD_LINK_WAITING, /* no connection yet */
	PXD_LINK_UP,
	PXD_LINK_INTERRUPTED, /* lost, a new one is awaited */
	PXD_LINK_CLOSED,      /* after BYE, or at the end of the job */
};
const char *pxd_link_state_name(enum pxd_link_state s);

#define PXD_CODEC_SLOTS (2 * PXD_CODEC_KINDS + 1)

struct pxd_counters {
	uint64_t messages;      /* announced or inline MSG */
	uint64_t payload_bytes; /* of them */
	uint64_t wire_bytes;    /* headers and bodies of all frames, as they crossed the wire (before TLS) */
	uint64_t frames;
	struct {
		uint64_t segments, in, out, ns; /* payload bytes, encoded bytes, processor time */
	} codec[PXD_CODEC_SLOTS];               /* 2 * kind + shuffled; the last one: residual.h */
	struct {
		uint64_t segments, in, out; /* of those: predicted before */
	} predicted[PXD_PREDICT_KINDS];
	struct {
		uint64_t segments, in, out, ns; /* within a bound that their program has set; in no codec[] */
	} lossy;
};
/* pxd_codec_slot: index into codec[] for a codec of the frame's header; pxd_slot_name: what it is called. */
static inline unsigned pxd_codec_slot(int codec)
{
	unsigned kind = (unsigned)codec & 0xf;

	return kind < PXD_CODEC_KINDS ? 2u * kind + (codec & PXD_CODEC_SHUFFLE ? 1 : 0) : PXD_CODEC_SLOTS - 1;
}
static inline const char *pxd_slot_name(unsigned slot)
{
	return slot == PXD_CODEC_SLOTS - 1
		       ? "residual"
		       : pxd_codec_name((int)(slot / 2) | (slot & 1 ? PXD_CODEC_SHUFFLE : 0));
}

/* What both ends of a stream need to stay alive (stream_life.c). */
struct pxd_life {
	enum pxd_link_state state;
	uint64_t since; /* px_now_ns of the last change */
	uint64_t last_byte, pinged;
	long reconnect_ms, late_ms; /* set by the owner; late: so much later than the other end it gives up */
	bool slow;
	bool unsaid;     /* interrupted, and not logged yet */
	uint32_t rtt_us; /* from a PING to its PONG, all queues and emulation included; 0 = not known */
	unsigned reconnects;
	unsigned strikes;   /* broken protocol without progress in between */
	uint64_t struck_at; /* px_now_ns of the first of them */
	uint64_t progress;
	uint64_t moved_at; /* px_now_ns when something last went through, or nothing had to */
	unsigned losses;   /* of connections since then */
	char why[200];     /* of the last interruption */
};

struct pxd_path;
struct pxd_stream {
	struct pxd_path *link;
	int index;
	struct pxd_life life;
	struct pxd_conn *conn;
	struct pxd_dial dial;
	bool dials; /* otherwise the peer does */
	struct pxd_outq q;
	struct pxd_history history;
	uint64_t seq, acked;     /* numbers of the last frame put, and of the last acknowledged */
	struct px_parser parser; /* of what the reader sends back */
	uint32_t crc;            /* of that frame so far */
	char reason[256];
	size_t nreason;
	uint64_t tcp_acked, tcp_busy; /* bytes, ns, at the last tick; of this connection */
	uint64_t acked_at; /* px_now_ns of the last progress, or when there was nothing to acknowledge */
	uint64_t acked_then;
};

struct pxd_path {
	struct pxd_node *d;
	int peer, gateway; /* remote site, and its gateway */
	const struct pxd_link_opts *opts;
	uint64_t session;
	int nstreams; /* that exist */
	int use;      /* that carry new segments */
	struct pxd_stream *stream[PXD_STREAMS_MAX];
	size_t retain; /* memory for frames that are not acknowledged */
	uv_timer_t tick;
	bool ever_up, bye_wanted, closed;
	bool little;    /* both sites are little endian */
	int byes;       /* put: 2 = the reader has everything, and shall know that we know */
	bool bye_doubt; /* the connection was lost behind the last of them */
	/* Frames from the reader: CREDIT, PULL. */
	bool (*frame)(void *owner, struct pxd_path *l, const struct px_frame *f); /* false: it is malformed */
	void (*up)(void *owner, struct pxd_path *l, const struct px_hello *h);    /* for the first time */
	void *owner;
	/* Compression (pack.c). */
	struct pxd_auto *choose;
	struct pxd_forecast *forecast; /* NULL: nothing is predicted on this path */
	struct pxd_vain vain;          /* small messages */
	unsigned packing;              /* segments with a worker, or waiting for one */
	struct pxd_studies studies;
	size_t packing_bytes; /* of memory that they hold */
	size_t packing_len;   /* bytes that will be left of them, or so */
	int64_t packing_ns;   /* that the workers need for them, or so */
	struct px_list late;  /* of pack.c: those that wait for the wire, which is busy */
	uv_timer_t late_timer;
	bool spared; /* some have waited since the last tick: the wire is not full, though it might be */
	uint64_t wire_until; /* px_now_ns when the wire has sent what it was given, rather early than late */
	/* Rate of a full link, and the number of streams. */
	double rate;    /* bytes/s, 0 = not known */
	bool rate_told; /* by a rank, not measured yet */
	uint64_t tick_at, full_since, window_bytes;
	double best_rate;
	int best_use;
	bool settled, was_full; /* at the last tick */
	uint64_t settled_at;
	struct pxd_counters count;
	uint64_t writes;
	struct pxd_recorder *recorder; /* of what is put, from its owner; NULL: nothing is recorded */
};

/* pxd_path_open: to gateway of site peer; frame, up, owner are set before. 0 or PX_E..., after pxd_fail. */
int pxd_path_open(struct pxd_path *l, struct pxd_node *d, int peer, int gateway, size_t retain);
/* pxd_path_put: number and queue a frame with its body of f->body bytes on stream 0. 0 or PX_ENOMEM. */
int pxd_path_put(struct pxd_path *l, const struct px_frame *f, const uint8_t *body);
/* pxd_path_put_seg: the same for a SEG frame on any stream; its body is seg, which is taken over. ahead: on
 * stream 0, in front of its announcement. */
int pxd_path_put_seg(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead);
/* pxd_path_put_kept: the same for one that both ends remember (KEEP): plain is what seg decodes to, perhaps seg itself, and stays the
 * caller's. stream: which one, -1 = any. *kept: what is remembered, borrowed; NULL: it is too long for that. */
int pxd_path_put_kept(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg,
	struct pxd_seg *plain, int stream, struct pxd_kept **kept);
void pxd_path_flush(struct pxd_path *l);
/* pxd_path_room: may new segments be fetched for this link? pxd_path_room_msg: may envelopes? */
bool pxd_path_room(const struct pxd_path *l);
bool pxd_path_room_msg(const struct pxd_path *l);
/* pxd_path_bye: nothing more will be put. pxd_path_done: the reader has everything, and both know it, as far as can be. */
void pxd_path_bye(struct pxd_path *l);
bool pxd_path_done(struct pxd_path *l);
void pxd_path_say_abort(struct pxd_path *l, uint32_t src, int code, const char *why);
/* pxd_path_quiet: every byte has been given to the sockets. */
bool pxd_path_quiet(const struct pxd_path *l);
void pxd_path_close(struct pxd_path *l); /* asynchronous */
void pxd_path_free(struct pxd_path *l);  /* after the loop has run out */

/* Handshakes of its streams. */
void pxd_path_greet(struct pxd_path *l, int stream, struct px_hello *h);
int pxd_path_judge(struct pxd_path *l, int stream, const struct px_hello *h, char *why, size_t cap);
void pxd_path_linked(struct pxd_path *l, int stream, struct pxd_conn *c, const struct px_hello *h);

/* Sums over the streams, for statistics and status. */
struct pxd_path_view {
	enum pxd_link_state state;
	uint64_t since, last_byte;
	bool slow;
	int streams;
	unsigned reconnects;
	uint32_t rtt_us;
	size_t queued, retained, retained_peak;
};
void pxd_path_view(const struct pxd_path *l, struct pxd_path_view *v);

#endif
