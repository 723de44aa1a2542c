/* fuzz/parser.c: the first byte chooses how the rest is cut; the events must not depend on it. */
#include "fuzz.h"
#include "parser.h"

struct outcome {
	uint64_t frames, bytes, sum;
	int last, idle;
};

static struct outcome parse(const uint8_t *in, size_t len, size_t piece, int direct)
{
	struct outcome o = { 0 };
	struct px_parser p;
	uint64_t at = 0;

	px_parser_init(&p);
	for (;;) {
		size_t n = len < piece ? len : piece, used;

		if (direct && n > 0 && px_parser_left(&p) > 0) {
			if (n > px_parser_left(&p))
				n = (size_t)px_parser_left(&p);
			MUST(px_parser_took(&p, n) == 0);
			for (size_t i = 0; i < n; i++)
				o.sum = o.sum * 31 + in[i];
			at += n;
			in += n;
			len -= n;
			continue;
		}
		o.last = px_parser_feed(&p, in, n, &used);
		MUST(used <= n);
		if (o.last == PX_PARSE_HEADER) {
			at = 0;
			o.sum = o.sum * 31 + p.frame.type;
		} else if (o.last == PX_PARSE_BODY) {
			MUST(used > 0 && p.at == at);
			for (size_t i = 0; i < used; i++)
				o.sum = o.sum * 31 + in[i];
			at += used;
		} else if (o.last == PX_PARSE_END) {
			MUST(at == p.frame.body);
			o.frames++;
			o.bytes += at;
		} else if (o.last < 0) {
			break;
		}
		in += used;
		len -= used;
		if (o.last == PX_PARSE_MORE && len == 0)
			break;
	}
	o.idle = px_parser_idle(&p);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct outcome a, b, c;

	if (len == 0)
		return 0;
	a = parse(in + 1, len - 1, SIZE_MAX, 0);
	b = parse(in + 1, len - 1, 1 + in[0] % 128, 0);
	c = parse(in + 1, len - 1, 1 + in[0] % 128, 1);
	MUST(a.frames == b.frames && a.bytes == b.bytes && a.sum == b.sum && a.last == b.last &&
		a.idle == b.idle);
	MUST(a.frames == c.frames && a.bytes == c.bytes && a.sum == c.sum && a.last == c.last &&
		a.idle == c.idle);
	return 0;
}
