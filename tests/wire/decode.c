/* decode.c: the C decoder as a filter, so that check_vectors.py can compare it with decode.py.
 *
 * Reads lines "KIND HEX" from standard input and prints one result line each, in the format of decode.py.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "frame.h"
#include "hello.h"
#include "parser.h"
#include "preamble.h"
#include "seg_code.h"
#include "world.h"

#define LINE_MAX_BYTES (4u << 20)

static const char *word(int rc)
{
	switch (rc) {
	case PX_ESHORT:
		return "short";
	case PX_EPROTO:
		return "proto";
	case PX_EVERSION:
		return "version";
	default:
		return px_strerror(rc);
	}
}

static void show_frame(const uint8_t *in, size_t len)
{
	struct px_frame f;
	int rc = px_frame_get(in, len, &f);

	if (rc != PX_FRAME_SIZE) {
		printf("%s\n", word(rc));
		return;
	}
	printf("ok version=%u type=%u flags=%u codec=%u elem=%u seq=%llu body=%llu total=%llu offset=%llu "
	       "ctx=%llu ",
		f.version, f.type, f.flags, f.codec, f.elem, (unsigned long long)f.seq,
		(unsigned long long)f.body, (unsigned long long)f.total, (unsigned long long)f.offset,
		(unsigned long long)f.ctx);
	printf("src=%u dst=%u tag=%d msg=%u seg=%u check=%u depth=%u ", f.src, f.dst, f.tag, f.msg, f.seg,
		f.check, f.depth);
	if (f.via)
		printf("via=%u ", f.via);
	printf("local=%u link=%s\n", f.local, px_frame_check_link(&f, 0) == 0 ? "yes" : "no");
}

static void quote(const char *name, const char *s)
{
	printf(" %s=", name);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x80 && (isalnum(c) || strchr("._-", c)))
			putchar(c);
		else
			printf("%%%02x", c);
	}
}

static void print_hello(const struct px_hello *h)
{
	const struct px_repr *r = &h->repr;

	printf("protocol=%u site=%u nsites=%u gateway=%u gateways=%u stream=%u streams=%u flavor=%u "
	       "nranks=%u "
	       "tag_ub=%d features=%u ",
		h->protocol, h->site, h->nsites, h->gateway, h->gateways, h->stream, h->streams, h->flavor,
		h->nranks, h->tag_ub, h->features);
	printf("big_endian=%u char_signed=%u long=%u pointer=%u wchar=%u ldouble=%u align_double=%u "
	       "align_llong=%u "
	       "align_ldouble=%u ldformat=%u fint=%u flogical=%u true=%d",
		r->big_endian, r->char_signed, r->size_long, r->size_pointer, r->size_wchar,
		r->size_long_double, r->align_double, r->align_long_long, r->align_long_double,
		r->long_double_format, r->size_fint, r->size_flogical, r->flogical_true);
	if (h->session)
		printf(" session=%llu", (unsigned long long)h->session);
	if (h->next)
		printf(" next=%llu", (unsigned long long)h->next);
	quote("job", h->job);
	quote("name", h->name);
	quote("vendor", h->vendor);
}

static void show_hello(const uint8_t *in, size_t len)
{
	struct px_hello h;
	int rc = px_hello_get(in, len, &h);

	if (rc == PX_EVERSION) {
		printf("version protocol=%u\n", h.protocol);
	} else if (rc < 0) {
		printf("%s\n", word(rc));
	} else {
		printf("ok ");
		print_hello(&h);
		printf("\n");
	}
}

static void show_world(const uint8_t *in, size_t len)
{
	struct px_world *w;
	int rc = px_world_get(in, len, &w);

	if (rc < 0) {
		printf("%s\n", word(rc));
		return;
	}
	printf("ok nsites=%d self=%d nranks=%d files=%d", w->nsites, w->self, w->nranks, w->files);
	for (int i = 0; i < w->nsites; i++) {
		printf(" ; ");
		print_hello(&w->site[i]);
		if (w->group[i] != i || w->uplink[i])
			printf(" group=%d uplink=%llu", w->group[i], (unsigned long long)w->uplink[i]);
	}
	printf("\n");
	px_world_free(w);
}

static void show_preamble(const uint8_t *in, size_t len)
{
	struct px_preamble p;
	int rc = px_preamble_get(in, len, &p);

	if (rc != PX_PREAMBLE_SIZE) {
		printf("%s\n", word(rc));
		return;
	}
	printf("ok kind=%u tls=%u reversed=%u from=%u to=%u from_gateway=%u to_gateway=%u stream=%u job=",
		p.kind, p.tls, p.reversed, p.from, p.to, p.from_gateway, p.to_gateway, p.stream);
	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		printf("%02x", p.jobhash[i]);
	printf(" number=%llu proof=", (unsigned long long)p.number);
	for (int i = 0; i < PX_PROOF_SIZE; i++)
		printf("%02x", p.proof[i]);
	printf("\n");
}

static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = ~crc;
	while (n--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
	}
	return ~crc;
}

/* Fed in pieces of growing odd sizes, so that headers and bodies are cut everywhere. */
static void show_stream(const uint8_t *in, size_t len)
{
	struct px_parser p;
	uint32_t crc = 0;
	size_t piece = 1;
	int ev = 0;

	px_parser_init(&p);
	for (;;) {
		size_t n = len < piece ? len : piece, used;

		ev = px_parser_feed(&p, in, n, &used);
		in += used;
		len -= used;
		piece = piece % 101 + 2;
		if (ev == PX_PARSE_HEADER)
			crc = 0;
		else if (ev == PX_PARSE_BODY)
			crc = crc32(crc, in - used, used);
		else if (ev == PX_PARSE_END)
			printf("%u:%llu:%08x ", p.frame.type, (unsigned long long)p.frame.body, crc);
		if (ev < 0 || (ev == PX_PARSE_MORE && len == 0))
			break;
	}
	printf("%s\n", ev < 0 ? word(ev) : px_parser_idle(&p) ? "end" : "short");
}

static int digit(int c)
{
	return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

/* codec, elem, plain length (two bytes); so many references of that length; the body. Of the codecs for bytes only raw deflate, as in
 * decode.py. */
static void segment_of(size_t nrefs, const uint8_t *in, size_t len)
{
	size_t n = len < 4 ? 0 : in[2] | (size_t)in[3] << 8, at = 4 + nrefs * n;
	struct pxd_codec *c = pxd_codec_new();
	uint8_t *out = malloc(n + 1);
	const uint8_t *ref[PXD_PREDICT_REFS] = { NULL };
	unsigned kind = len < 4 ? 0 : in[0] & 0x3f;
	struct pxd_predictor p;
	bool lacking = false;

	if (len >= 4 && len >= at && in[0] & PXD_CODEC_PREDICT)
		lacking = pxd_predict_head_get(in + at, len - at, &p) > 0 && p.nrefs > (int)nrefs;
	for (size_t i = 0; i < nrefs; i++)
		ref[i] = in + 4 + i * n;
	if (len < 4 || len < at) {
		printf("short\n");
	} else if (kind == PXD_CODEC_LZ4 || kind == PXD_CODEC_ZSTD) {
		printf("ok other\n");
	} else if (!c || !out || (in[0] ? len - at >= n : len - at != n) || lacking ||
		   pxd_seg_decode(c, in[0], in[1], NULL, ref, in + at, len - at, out, n) < 0) {
		printf("proto\n");
	} else {
		printf("ok ");
		for (size_t i = 0; i < n; i++)
			printf("%02x", out[i]);
		printf("\n");
	}
	pxd_codec_free(c);
	free(out);
}

static void show_segment(const uint8_t *in, size_t len)
{
	segment_of(PXD_PREDICT_SPACED, in, len);
}

static void show_segment6(const uint8_t *in, size_t len)
{
	segment_of(PXD_PREDICT_REFS, in, len);
}

int main(void)
{
	static const struct {
		const char *kind;
		void (*show)(const uint8_t *in, size_t len);
	} kinds[] = { { "frame", show_frame }, { "hello", show_hello }, { "world", show_world },
		{ "preamble", show_preamble }, { "stream", show_stream }, { "segment", show_segment },
		{ "segment6", show_segment6 } };
	char *line = malloc(LINE_MAX_BYTES);

	while (line && fgets(line, LINE_MAX_BYTES, stdin)) {
		char *hex = strchr(line, ' ');
		bool known = false;
		size_t len = 0;
		uint8_t *in;

		line[strcspn(line, "\r\n")] = 0;
		if (hex && *hex)
			*hex++ = 0;
		for (const char *h = hex; h && isxdigit((unsigned char)h[0]) && isxdigit((unsigned char)h[1]);
			h += 2)
			len++;
		in = malloc(
			len ? len : 1); /* exactly as long as the input: sanitizers see every byte too far */
		if (!in)
			return 1;
		for (size_t i = 0; i < len; i++)
			in[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
			if (strcmp(line, kinds[i].kind) == 0) {
				kinds[i].show(in, len);
				known = true;
			}
		}
		if (!known)
			printf("unknown kind\n");
		free(in);
	}
	free(line);
	return 0;
}
