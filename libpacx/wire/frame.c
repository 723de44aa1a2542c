/* frame.c: see frame.h and PROTOCOL.md, sections 2 and 3.
 *
 * Byte offsets of the header:
 *    0 magic  2 version  3 type  4 flags  6 codec  7 elem  8 seq  16 body  24 total  32 offset  40 ctx
 *   48 src  52 dst  56 tag  60 msg  64 seg  68 check  72 depth  74 via  76 local
 */
#include "frame.h"

#include <stdbool.h>

#include "endian.h"
#include "err.h"

void px_frame_put(const struct px_frame *f, uint8_t *out)
{
	px_put16(out, PX_FRAME_MAGIC);
	out[2] = f->version;
	out[3] = f->type;
	px_put16(out + 4, f->flags);
	out[6] = f->codec;
	out[7] = f->elem;
	px_put64(out + 8, f->seq);
	px_put64(out + 16, f->body);
	px_put64(out + 24, f->total);
	px_put64(out + 32, f->offset);
	px_put64(out + 40, f->ctx);
	px_put32(out + 48, f->src);
	px_put32(out + 52, f->dst);
	px_put32(out + 56, (uint32_t)f->tag);
	px_put32(out + 60, f->msg);
	px_put32(out + 64, f->seg);
	px_put32(out + 68, f->check);
	px_put16(out + 72, f->depth);
	px_put16(out + 74, f->via);
	px_put32(out + 76, f->local);
}

static bool seg_valid(uint32_t seg)
{
	return seg >= PX_SEG_MIN && seg <= PX_SEG_MAX && (seg & (seg - 1)) == 0;
}

static bool ranks_valid(const struct px_frame *f)
{
	return f->src <= INT32_MAX && f->dst <= INT32_MAX;
}

/* What only frames of messages carry. */
static bool message_fields_zero(const struct px_frame *f)
{
	return (f->flags & ~PX_FF_CHECK) == 0 && f->elem == 0 && f->offset == 0 && f->ctx == 0 &&
	       f->msg == 0 && f->seg == 0 && f->depth == 0 && f->local == 0;
}

static bool data_frame(const struct px_frame *f)
{
	return f->type == PX_F_MSG || f->type == PX_F_SEG;
}

/* A control frame with a body: total repeats body. */
static bool control_valid(const struct px_frame *f, uint64_t min, uint64_t max)
{
	return message_fields_zero(f) && f->body >= min && f->body <= max && f->total == f->body;
}

static bool msg_valid(const struct px_frame *f)
{
	/* No atom becomes more than eight times as long. */
	if (f->offset > INT64_MAX || f->offset / 8 > f->total || f->offset > 8 * f->total ||
		f->flags & (PX_FF_RESERVE | PX_FF_KEEP))
		return false;
	if (f->seg == 0)
		return f->body == (f->flags & PX_FF_SAME ? 0 : f->total) && f->total <= PX_INLINE_MAX &&
		       f->local == 0 && f->via == 0 && !(f->flags & PX_FF_DATA);
	return !(f->flags & PX_FF_SAME) && f->body == 0 && f->total > 0 && f->total <= INT64_MAX &&
	       seg_valid(f->seg);
}

static bool seg_frame_valid(const struct px_frame *f)
{
	uint64_t left;

	if (!seg_valid(f->seg) || f->total == 0 || f->total > INT64_MAX ||
		f->flags & (PX_FF_DATA | PX_FF_SAME))
		return false;
	if (f->offset >= f->total || f->offset % f->seg != 0)
		return false;
	left = f->total - f->offset < f->seg ? f->total - f->offset : f->seg;
	return f->codec ? f->body > 0 && f->body < left : f->body == left;
}

/* The rules of each type, with the fields that every type shares already checked. */
static bool type_valid(const struct px_frame *f)
{
	switch (f->type) {
	case PX_F_HELLO:
		return control_valid(f, 1, PX_HELLO_BODY_MAX) && f->seq == 0 && f->src == 0 && f->dst == 0 &&
		       f->tag == 0;
	case PX_F_REFUSE:
		return control_valid(f, 0, PX_CONTROL_MAX) && f->seq == 0 && f->src == 0 && f->dst == 0 &&
		       f->tag == 0;
	case PX_F_MSG:
		return ranks_valid(f) && msg_valid(f);
	case PX_F_SEG:
		return ranks_valid(f) && seg_frame_valid(f);
	case PX_F_ACK:
		return ranks_valid(f) && (f->flags & ~PX_FF_CHECK) == 0 && f->elem == 0 && f->body == 0 &&
		       f->total == 0 && f->offset == 0 && f->seg == 0 && f->depth == 0 && f->local == 0;
	case PX_F_ABORT:
		return ranks_valid(f) && control_valid(f, 0, PX_CONTROL_MAX);
	case PX_F_BYE:
	case PX_F_PING:
	case PX_F_PONG:
	case PX_F_LINKACK:
		if (f->src || f->dst || (f->type == PX_F_BYE && f->total))
			return false;
		return message_fields_zero(f) && f->body == 0 && f->tag == 0;
	case PX_F_CREDIT:
		return ranks_valid(f) && (f->flags & ~PX_FF_CHECK) == 0 && f->elem == 0 && f->body == 0 &&
		       (f->tag == 0 || (f->tag == 1 && f->dst == 0)) && f->msg == 0 && f->seg == 0 &&
		       f->depth == 0 && f->local == 0 && f->src == 0;
	case PX_F_PULL:
		return ranks_valid(f) && (f->flags & ~PX_FF_CHECK) == 0 && f->elem == 0 && f->body == 0 &&
		       f->offset == 0 && f->ctx == 0 && (f->tag == 0 || f->tag == 1) && f->depth == 0 &&
		       f->total <= INT64_MAX && (f->total == 0 ? f->seg == 0 : seg_valid(f->seg));
	case PX_F_WORLD:
		return ranks_valid(f) && control_valid(f, 1, PX_CONTROL_MAX) && f->seq == 0 && f->tag == 0;
	case PX_F_FIN:
		return ranks_valid(f) && message_fields_zero(f) && f->body == 0 && f->total == 0 &&
		       f->seq == 0 && f->tag == 0;
	case PX_F_STATS:
		return ranks_valid(f) && control_valid(f, 0, PX_CONTROL_MAX) && f->seq == 0 && f->tag == 0;
	case PX_F_RATE:
		return ranks_valid(f) && message_fields_zero(f) && f->body == 0 && f->seq == 0 && f->tag == 0;
	default:
		return false;
	}
}

int px_frame_get(const uint8_t *in, size_t len, struct px_frame *f)
{
	struct px_frame g;

	/* Garbage is refused as soon as it can be told from a frame, not after 80 bytes of it. */
	if ((len >= 1 && in[0] != (PX_FRAME_MAGIC & 0xff)) || (len >= 2 && in[1] != PX_FRAME_MAGIC >> 8))
		return PX_EPROTO;
	if (len >= 3 && in[2] != PX_PROTOCOL_VERSION)
		return PX_EVERSION;
	if (len < PX_FRAME_SIZE)
		return PX_ESHORT;
	g.version = in[2];
	g.type = in[3];
	g.flags = px_get16(in + 4);
	g.codec = in[6];
	g.elem = in[7];
	g.seq = px_get64(in + 8);
	g.body = px_get64(in + 16);
	g.total = px_get64(in + 24);
	g.offset = px_get64(in + 32);
	g.ctx = px_get64(in + 40);
	g.src = px_get32(in + 48);
	g.dst = px_get32(in + 52);
	g.tag = (int32_t)px_get32(in + 56);
	g.msg = px_get32(in + 60);
	g.seg = px_get32(in + 64);
	g.check = px_get32(in + 68);
	g.depth = px_get16(in + 72);
	g.via = px_get16(in + 74);
	g.local = px_get32(in + 76);
	if ((g.flags & ~PX_FF_ALL) != 0 || (g.codec != 0 && g.type != PX_F_SEG) ||
		(g.via != 0 && !data_frame(&g) && g.type != PX_F_PULL))
		return PX_EPROTO;
	if (!(g.flags & PX_FF_CHECK) && g.check != 0)
		return PX_EPROTO;
	if (!type_valid(&g))
		return PX_EPROTO;
	*f = g;
	return PX_FRAME_SIZE;
}

int px_frame_next(const uint8_t *in, size_t len, size_t *at, struct px_frame *f, const uint8_t **body)
{
	uint64_t before = *at > 0 ? f->body : 0;
	int rc;

	if (*at == len)
		return 0;
	rc = px_frame_get(in + *at, len - *at, f);
	if (rc < 0)
		return rc;
	*at += PX_FRAME_SIZE;
	if (f->flags & PX_FF_SAME) {
		if (f->total != before || before == 0)
			return PX_EPROTO;
		f->flags &= (uint16_t)~PX_FF_SAME;
		f->body = before;
		return 1;
	}
	if (f->body > len - *at)
		return PX_ESHORT;
	*body = in + *at;
	*at += (size_t)f->body;
	return 1;
}

int px_frame_check_link(const struct px_frame *f, int reverse)
{
	bool counted = !reverse && f->type >= PX_F_MSG && f->type <= PX_F_ABORT;
	bool here = reverse ? f->type >= PX_F_ABORT : f->type <= PX_F_PONG;

	/* HELLO and REFUSE come before, or never: whoever reads a link finds them out of order by their number. */
	if (!here || f->type > PX_F_LINK_LAST || f->local != 0 || (f->seq != 0) != counted ||
		f->flags & (PX_FF_DATA | PX_FF_SAME))
		return PX_EPROTO;
	return 0;
}
