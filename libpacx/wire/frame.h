/* frame.h: the frame header, the unit of everything that crosses sites.
 *
 * Owns the 80-byte header and nothing else: no sockets, no MPI. Layout and rules
 * are in PROTOCOL.md (normative). The same header is the envelope between an
 * application rank and its daemons, so a message keeps one header end to end.
 * px_frame_put writes little-endian bytes, px_frame_get checks and reads them.
 */
#ifndef PX_FRAME_H
#define PX_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define PX_FRAME_MAGIC      0x5850u /* bytes 'P' 'X' */
#define PX_PROTOCOL_VERSION 1
#define PX_FRAME_SIZE       80
/* Payloads up to this many bytes travel in the frame that starts the message; an out-daemon may make segments of them. */
#define PX_INLINE_MAX   8112
#define PX_ENVELOPE_MAX (PX_FRAME_SIZE + PX_INLINE_MAX) /* 8192: header + inline body */
/* A native message between a rank and a daemon carries one or more whole frames. Measured: with 16 KiB MPICH over UCX, which copies up to
 * 8 KiB, is slower, and with 4 KiB, up to which Open MPI over vader copies, both are. */
#define PX_BATCH_MAX 8192
/* Longer than PX_INLINE_MAX, up to here: a middling message, whose payload comes without being asked for (attach.h). */
#define PX_MIDDLE_MAX 65536
#ifndef PX_SEG_MAX /* fuzz/link.c is built with small ones, for more inputs a second */
#define PX_SEG_MIN (256u << 10)
#define PX_SEG_MAX (1u << 20)
#endif
/* Upper bound of `body` in control frames (HELLO, REFUSE, ABORT, WORLD, STATS). */
#define PX_CONTROL_MAX (1u << 20)
/* HELLO is read before anything is known of the peer: less. PX_HELLO_MAX (hello.h) is the same number. */
#define PX_HELLO_BODY_MAX 512

enum px_frame_type {
	PX_F_HELLO = 1,  /* first frame of a connection, both ways */
	PX_F_REFUSE = 2, /* answer to HELLO: body = reason in UTF-8; the sender closes */
	PX_F_MSG = 3,    /* start of a message: inline payload, or none and SEG frames follow */
	PX_F_SEG = 4,    /* one segment of a long message */
	PX_F_ACK = 5,    /* synchronous send `msg` of rank dst has been matched by src */
	PX_F_BYE = 6,    /* no more frames will follow on this path; the second one: and you know it */
	PX_F_ABORT = 7,  /* tag = exit code, body = reason in UTF-8 */
	PX_F_PING = 8,   /* heartbeat, both ways: total = a stamp of who asks */
	PX_F_PONG = 9,   /* the answer: the same stamp */
	PX_F_LINKACK =
		10, /* reader -> writer: total = all frames of this stream up to this number have arrived */
	PX_F_CREDIT =
		11, /* how much may be sent to rank dst, or with tag = 1 to each one at the site, counted from the beginning (PROTOCOL.md, section 6) */
	PX_F_PULL = 12, /* rank dst has matched message (src, msg) and wants its payload */
	PX_F_LINK_LAST = 12,
	/* Inside a site only; a daemon that finds one on a link closes the link. */
	PX_F_WORLD = 128, /* daemon -> rank: body = px_world */
	PX_F_FIN =
		129, /* rank -> daemon: this rank has finished; daemon -> rank: nothing more will come from me */
	PX_F_STATS = 130, /* rank -> out-daemon: body = JSON text */
	PX_F_RATE =
		131, /* rank -> out-daemon: total = bytes/s that the link to the site of dst had at the start */
};

enum px_frame_flags {
	PX_FF_SYNC = 1 << 0,    /* the sender waits for an ACK */
	PX_FF_CHECK = 1 << 1,   /* `check` is valid */
	PX_FF_COLL = 1 << 2,    /* belongs to a collective operation (statistics, and what its tag means to a history) */
	PX_FF_RESERVE = 1 << 3, /* SEG: sent on the credit that is kept for pulled messages */
	PX_FF_DATA = 1 << 4,    /* inside a site: not an announcement, only the beginning of its payload */
	PX_FF_KEEP = 1 << 5,    /* SEG: both ends of the stream remember it, later ones may refer to it */
	PX_FF_SAME = 1 << 6,    /* inside a site: its payload is the body of the frame before */
	PX_FF_ALL =
		PX_FF_SYNC | PX_FF_CHECK | PX_FF_COLL | PX_FF_RESERVE | PX_FF_DATA | PX_FF_KEEP | PX_FF_SAME,
};

struct px_frame {
	uint8_t version;
	uint8_t type;
	uint16_t flags;
	uint8_t codec; /* SEG: how the body is encoded, 0 = plain (daemon/link/codec.h) */
	uint8_t elem;  /* element size of the datatype in bytes, 0 = unknown */
	uint64_t
		seq; /* link sequence number, from 1, set by the out-daemon; on the way up in a site: 0, or what
			  * the rank knows of the numbers (hint.h) */
	uint64_t body;  /* bytes that follow this header */
	uint64_t total; /* payload bytes of the whole message, sender's representation */
	uint64_t
		offset; /* SEG: where this segment starts in the message; MSG: total at the receiver, 0 = the same */
	uint64_t ctx; /* communicator context id */
	uint32_t src; /* global rank */
	uint32_t dst; /* global rank */
	int32_t tag;
	uint32_t msg;   /* message number, counted by the source rank */
	uint32_t seg;   /* segment length of a long message; 0 = inline */
	uint32_t check; /* CRC32C of the header (with check = 0) and the body, when PX_FF_CHECK is set */
	uint16_t depth; /* wide-area messages in sequence that led to this one, itself included */
	uint16_t via;   /* announcement: the sender's gateway through which the payload comes */
	uint32_t local; /* inside a site: native tag of the payload segments; 0 on a link */
};

/* px_frame_put: encode f into out[PX_FRAME_SIZE]. */
void px_frame_put(const struct px_frame *f, uint8_t *out);

/* px_frame_get: decode in[0..len). PX_FRAME_SIZE on success, PX_ESHORT when more bytes are needed,
 * PX_EVERSION or PX_EPROTO for bytes that no correct peer sends. *f is written only on success. */
int px_frame_get(const uint8_t *in, size_t len, struct px_frame *f);

/* px_frame_next: the frames of a native message, which holds nothing but whole ones: the next one at *at, and its body. 1, 0 at the end,
 * or PX_E... *f and *body still are what the call before has given: a frame with SAME comes out with that body, and without the flag. */
int px_frame_next(const uint8_t *in, size_t len, size_t *at, struct px_frame *f, const uint8_t **body);

/* px_frame_same: of a frame that px_frame_put has made: has it PX_FF_SAME? */
static inline int px_frame_same(const uint8_t *frame)
{
	return (frame[4] & PX_FF_SAME) != 0;
}

/* px_frame_check_link: may f, as px_frame_get gave it, cross a link from writer to reader (reverse = 0), or on its way
 * back (reverse = 1)? Site-local types may not, `local` is 0, and exactly MSG, SEG, ACK, BYE and ABORT towards the
 * reader have a sequence number. 0 or PX_EPROTO. */
int px_frame_check_link(const struct px_frame *f, int reverse);

/* px_frame_key: message msg of rank src in a table. */
static inline uint64_t px_frame_key(uint32_t src, uint32_t msg)
{
	return (uint64_t)src << 32 | msg;
}

/* px_seg_charge: what a segment of len bytes counts against credit and buffers: the room it takes, a power of two. */
static inline uint32_t px_seg_charge(uint32_t len)
{
	uint32_t c = 4096;

	while (c < len)
		c *= 2;
	return c;
}
/* px_pair_window: envelopes that one rank may have on their way to one remote rank before they have left its out-daemon; so
 * that what waits there is bounded by some 32 MiB, or by little more than 4 KiB a pair when there are very many. An envelope counts
 * as px_envelope_weight, and may leave as long as those before it come to less than the window. */
static inline uint32_t px_pair_window(int nlocal, int nremote)
{
	uint64_t pairs = (uint64_t)nlocal * (uint64_t)(nremote > 0 ? nremote : 1),
		 w = 16384 / (pairs > 0 ? pairs : 1);

	return w < 2 ? 2 : w > 128 ? 128 : (uint32_t)w;
}
/* px_envelope_weight: of the envelope with which a message of `total` bytes leaves its rank. */
static inline uint32_t px_envelope_weight(uint64_t total)
{
	return total > PX_INLINE_MAX ? 1 : 1 + (uint32_t)(total / 2048);
}
/* px_msg_charge: the same for an envelope with a body of n bytes. */
static inline uint32_t px_msg_charge(uint64_t n)
{
	return 128 + (uint32_t)n;
}

#endif
