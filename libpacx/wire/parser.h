/* parser.h: incremental frame parser: bytes in, events out, however the stream was cut.
 *
 * Used by the reader of a link (in-daemon). Owns the header being collected, never a body: the
 * caller passes what it has read, or reads a body straight into its own buffer and says so. No sockets, no
 * memory, no thread safety. One px_parser per stream; all zero is its initial state.
 *
 *     while ((ev = px_parser_feed(&p, in, len, &used)) > 0) {
 *             PX_PARSE_HEADER: p.frame is complete; choose where the body goes
 *             PX_PARSE_BODY:   in[0..used) are the body's bytes from p.at on
 *             PX_PARSE_END:    p.frame and its body are complete
 *             in += used, len -= used;
 *     }
 */
#ifndef PX_PARSER_H
#define PX_PARSER_H

#include "frame.h"

enum px_parse {
	PX_PARSE_MORE = 0, /* everything is used up; feed more */
	PX_PARSE_HEADER,
	PX_PARSE_BODY,
	PX_PARSE_END,
};

struct px_parser {
	struct px_frame frame; /* valid from PX_PARSE_HEADER until the next call after PX_PARSE_END */
	uint64_t at;           /* PX_PARSE_BODY: where this piece starts in the body */
	uint64_t left;         /* body bytes still to come */
	int error;             /* sticky */
	unsigned have;         /* bytes of the header, PX_FRAME_SIZE = within a frame */
	uint8_t head[PX_FRAME_SIZE];
};

void px_parser_init(struct px_parser *p);

/* px_parser_feed: take bytes from in[0..len) up to the next event; *used is always set. enum px_parse, or
 * PX_EVERSION or PX_EPROTO for bytes that no correct peer sends: the stream is then useless, and every
 * further call says the same. */
int px_parser_feed(struct px_parser *p, const uint8_t *in, size_t len, size_t *used);

/* px_parser_left: body bytes that come next on the stream; 0 when a header comes next. */
static inline uint64_t px_parser_left(const struct px_parser *p)
{
	return p->left;
}

/* px_parser_took: n bytes of the body have been read past the parser, into the caller's buffer, and are not
 * to be fed. PX_PARSE_END still comes from px_parser_feed (len may be 0). 0, or PX_EINVAL when n > left. */
int px_parser_took(struct px_parser *p, uint64_t n);

/* px_parser_idle: is the stream between two frames? Otherwise its end is a truncation. */
static inline int px_parser_idle(const struct px_parser *p)
{
	return p->have == 0 && p->error == 0;
}

#endif
