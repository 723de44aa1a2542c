/* parser.c: see parser.h. */
#include "parser.h"

#include <string.h>

#include "err.h"

void px_parser_init(struct px_parser *p)
{
	memset(p, 0, sizeof *p);
}

static int header_feed(struct px_parser *p, const uint8_t *in, size_t len, size_t *used)
{
	size_t n = PX_FRAME_SIZE - p->have;
	int rc;

	if (len == 0)
		return PX_PARSE_MORE;
	if (n > len)
		n = len;
	memcpy(p->head + p->have, in, n);
	p->have += (unsigned)n;
	*used = n;
	rc = px_frame_get(p->head, p->have, &p->frame);
	if (rc == PX_ESHORT)
		return PX_PARSE_MORE;
	if (rc < 0)
		return p->error = rc;
	p->left = p->frame.body;
	return PX_PARSE_HEADER;
}

int px_parser_feed(struct px_parser *p, const uint8_t *in, size_t len, size_t *used)
{
	*used = 0;
	if (p->error)
		return p->error;
	if (p->have < PX_FRAME_SIZE)
		return header_feed(p, in, len, used);
	if (p->left == 0) {
		p->have = 0;
		return PX_PARSE_END;
	}
	if (len == 0)
		return PX_PARSE_MORE;
	*used = len < p->left ? len : (size_t)p->left;
	p->at = p->frame.body - p->left;
	p->left -= *used;
	return PX_PARSE_BODY;
}

int px_parser_took(struct px_parser *p, uint64_t n)
{
	if (n > p->left)
		return PX_EINVAL;
	p->left -= n;
	return 0;
}
