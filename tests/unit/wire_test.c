/* wire_test.c: frame, hello, world, parser (the preamble: preamble_test.c). Fixed bytes are in tests/wire/vectors; here are the
 * properties: round trips, all truncations, all bit flips, all ways to cut a stream. */
#include <limits.h>
#include <stdlib.h>

#include "err.h"
#include "frame.h"
#include "hello.h"
#include "parser.h"
#include "test.h"
#include "world.h"

static struct px_frame random_message(void)
{
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = PX_F_MSG };

	f.flags = (uint16_t)(test_random() % ((PX_FF_SYNC | PX_FF_CHECK | PX_FF_COLL) + 1));
	f.elem = (uint8_t)test_random();
	f.seq = test_random();
	f.ctx = test_random();
	f.src = (uint32_t)test_random() >> 1;
	f.dst = (uint32_t)test_random() >> 1;
	f.tag = (int32_t)test_random();
	f.msg = (uint32_t)test_random();
	f.check = f.flags & PX_FF_CHECK ? (uint32_t)test_random() : 0;
	f.depth = (uint16_t)test_random();
	if (test_random() % 2) {
		f.body = f.total = test_random() % (PX_INLINE_MAX + 1);
		return f;
	}
	f.total = 1 + (test_random() >> (2 + test_random() % 40));
	f.seg = PX_SEG_MIN << test_random() % 3;
	f.local = (uint32_t)test_random();
	f.via = (uint16_t)test_random();
	if (test_random() % 2) {
		f.type = PX_F_SEG;
		f.offset = test_random() % f.total / f.seg * f.seg;
		f.body = f.total - f.offset < f.seg ? f.total - f.offset : f.seg;
		f.flags |= test_random() % 2 ? PX_FF_RESERVE : 0;
		f.flags |= test_random() % 2 ? PX_FF_KEEP : 0;
		if (test_random() % 2 && f.body > 1) {
			f.codec = (uint8_t)(1 + test_random() % 255);
			f.body = 1 + test_random() % (f.body - 1);
		}
	} else if (test_random() % 2) {
		f.flags |= PX_FF_DATA;
	}
	return f;
}

static void check_same_frame(const struct px_frame *a, const struct px_frame *b)
{
	uint8_t x[PX_FRAME_SIZE], y[PX_FRAME_SIZE];

	px_frame_put(a, x);
	px_frame_put(b, y);
	CHECK_MEM(x, y, PX_FRAME_SIZE);
}

TEST(frame_keeps_every_field)
{
	for (int i = 0; i < 20000; i++) {
		struct px_frame f = random_message(), g;
		uint8_t mem[PX_FRAME_SIZE];

		px_frame_put(&f, mem);
		REQUIRE_INT(px_frame_get(mem, sizeof mem, &g), PX_FRAME_SIZE);
		CHECK(f.version == g.version && f.type == g.type && f.flags == g.flags && f.codec == g.codec);
		CHECK(f.elem == g.elem && f.seq == g.seq && f.body == g.body && f.total == g.total);
		CHECK(f.offset == g.offset && f.ctx == g.ctx && f.src == g.src && f.dst == g.dst);
		CHECK(f.tag == g.tag && f.msg == g.msg && f.seg == g.seg && f.check == g.check);
		CHECK(f.depth == g.depth && f.local == g.local && f.via == g.via);
	}
}

TEST(truncated_frame_is_short)
{
	struct px_frame f = random_message(), g;
	uint8_t mem[PX_FRAME_SIZE];

	memset(&g, 0x5a, sizeof g);
	px_frame_put(&f, mem);
	for (size_t n = 0; n < sizeof mem; n++)
		CHECK_INT(px_frame_get(mem, n, &g), PX_ESHORT);
	CHECK_UINT(g.type, 0x5a); /* written only on success */
}

/* A flipped bit is either refused or read as the different value that it says. */
TEST(flipped_bit_is_never_lost)
{
	for (int i = 0; i < 50; i++) {
		struct px_frame f = random_message(), g;
		uint8_t mem[PX_FRAME_SIZE], again[PX_FRAME_SIZE];

		px_frame_put(&f, mem);
		for (size_t bit = 0; bit < 8 * sizeof mem; bit++) {
			int rc;

			mem[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = px_frame_get(mem, sizeof mem, &g);
			if (rc == PX_FRAME_SIZE) {
				px_frame_put(&g, again);
				CHECK_MEM(again, mem, sizeof mem);
			} else {
				CHECK(rc == (bit / 8 == 2 ? PX_EVERSION : PX_EPROTO));
			}
			mem[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

TEST(only_numbered_frames_cross_a_link)
{
	struct px_frame f = { .version = 1, .type = PX_F_MSG, .seq = 1 };

	CHECK_INT(px_frame_check_link(&f, 0), 0);
	f.seq = 0;
	CHECK_INT(px_frame_check_link(&f, 0), PX_EPROTO);
	f.type = PX_F_HELLO;
	CHECK_INT(px_frame_check_link(&f, 0), 0);
	f.type = PX_F_WORLD;
	CHECK_INT(px_frame_check_link(&f, 0), PX_EPROTO);
	f.type = PX_F_PING;
	CHECK_INT(px_frame_check_link(&f, 0), 0);
	CHECK_INT(px_frame_check_link(&f, 1), 0);
	for (f.type = PX_F_LINKACK; f.type <= PX_F_PULL; f.type++) {
		CHECK_INT(px_frame_check_link(&f, 0), PX_EPROTO);
		CHECK_INT(px_frame_check_link(&f, 1), 0);
	}
	for (f.type = PX_F_HELLO; f.type <= PX_F_BYE; f.type++)
		CHECK_INT(px_frame_check_link(&f, 1), PX_EPROTO);
	f = (struct px_frame){ .version = 1, .type = PX_F_MSG, .seq = 1, .flags = PX_FF_DATA };
	CHECK_INT(px_frame_check_link(&f, 0), PX_EPROTO);
	f.flags = PX_FF_SAME;
	CHECK_INT(px_frame_check_link(&f, 0), PX_EPROTO);
	f = (struct px_frame){ .version = 1, .type = PX_F_MSG, .seq = 1, .local = 16 };
	CHECK_INT(px_frame_check_link(&f, 0), PX_EPROTO);
}

/* A frame of a native message at `out`; its bytes. */
static size_t put_inline(uint8_t *out, unsigned flags, const char *body, uint64_t total)
{
	size_t n = flags & PX_FF_SAME ? 0 : (size_t)total;
	struct px_frame f = {
		.version = 1, .type = PX_F_MSG, .flags = (uint16_t)flags, .body = n, .total = total
	};

	px_frame_put(&f, out);
	memcpy(out + PX_FRAME_SIZE, body, n);
	return PX_FRAME_SIZE + n;
}

TEST(same_body_is_that_of_the_frame_before)
{
	uint8_t bytes[1024];
	const uint8_t *body = NULL;
	struct px_frame f = { .body = 99 };
	size_t n = put_inline(bytes, 0, "hello", 5), at = 0, end;

	for (int i = 0; i < 2; i++)
		n += put_inline(bytes + n, PX_FF_SAME | PX_FF_COLL, "", 5);
	end = n;
	for (int i = 0; i < 3; i++) {
		CHECK_INT(px_frame_next(bytes, end, &at, &f, &body), 1);
		CHECK_INT((long)f.body, 5);
		CHECK_INT(f.flags, i ? PX_FF_COLL : 0);
		CHECK_MEM(body, "hello", 5);
	}
	CHECK_INT(px_frame_next(bytes, end, &at, &f, &body), 0);
	/* Of another length; behind a frame without a body; the first one, whatever was in f. */
	n += put_inline(bytes + n, PX_FF_SAME, "", 4);
	CHECK_INT(px_frame_next(bytes, n, &at, &f, &body), PX_EPROTO);
	n = put_inline(bytes, 0, "", 0);
	n += put_inline(bytes + n, PX_FF_SAME, "", 5);
	at = 0;
	CHECK_INT(px_frame_next(bytes, n, &at, &f, &body), 1);
	CHECK_INT(px_frame_next(bytes, n, &at, &f, &body), PX_EPROTO);
	f.body = 5;
	at = 0;
	n = put_inline(bytes, PX_FF_SAME, "", 5);
	CHECK_INT(px_frame_next(bytes, n, &at, &f, &body), PX_EPROTO);
}

static struct px_hello example(int site, int nsites, uint32_t nranks)
{
	struct px_hello h = { .protocol = PX_PROTOCOL_VERSION,
		.site = (uint16_t)site,
		.nsites = (uint16_t)nsites,
		.gateways = 1,
		.streams = 1,
		.flavor = PX_MPI_MPICH,
		.nranks = nranks,
		.tag_ub = INT_MAX,
		.job = "melt-1",
		.vendor = "MPICH 4.0.2" };

	px_repr_native(&h.repr);
	snprintf(h.name, sizeof h.name, "site%d", site);
	return h;
}

TEST(hello_keeps_every_field)
{
	struct px_hello h = example(3, 9, 77), g;
	uint8_t mem[PX_HELLO_MAX], again[PX_HELLO_MAX];
	int n, m;

	h.gateway = 1, h.gateways = 2, h.stream = 4, h.streams = 5, h.features = 0xA5000001u;
	h.repr.flogical_true = -1, h.repr.size_flogical = 8;
	memset(h.vendor, 'v', PX_VENDOR_MAX);
	h.vendor[PX_VENDOR_MAX] = 0;
	n = px_hello_put(&h, mem, sizeof mem);
	REQUIRE(n > 0);
	REQUIRE_INT(px_hello_get(mem, (size_t)n, &g), 0);
	m = px_hello_put(&g, again, sizeof again);
	REQUIRE_INT(m, n);
	CHECK_MEM(again, mem, (size_t)n);
	CHECK_STR(g.name, "site3");
	CHECK_STR(g.job, "melt-1");
	CHECK_STR(g.vendor, h.vendor);
	CHECK(memcmp(&g.repr, &h.repr, sizeof g.repr) == 0);
	CHECK(g.site == 3 && g.nsites == 9 && g.gateway == 1 && g.gateways == 2 && g.stream == 4 &&
		g.streams == 5);
	CHECK(g.flavor == PX_MPI_MPICH && g.nranks == 77 && g.tag_ub == INT_MAX && g.features == 0xA5000001u);
}

TEST(truncated_hello_is_short)
{
	struct px_hello h = example(0, 2, 4), g;
	uint8_t mem[PX_HELLO_MAX];
	int n = px_hello_put(&h, mem, sizeof mem);

	REQUIRE(n > 0);
	for (int i = 0; i < n; i++)
		CHECK_INT(px_hello_get(mem, (size_t)i, &g), PX_ESHORT);
	CHECK_INT(px_hello_get(mem, (size_t)n + 1, &g), PX_EPROTO);
	for (int i = 0; i < n; i++)
		CHECK_INT(px_hello_put(&h, mem, (size_t)i), PX_EINVAL);
}

TEST(hello_of_wrong_values_is_not_written)
{
	struct px_hello h = example(0, 2, 4);
	uint8_t mem[PX_HELLO_MAX];

	h.site = 2;
	CHECK_INT(px_hello_put(&h, mem, sizeof mem), PX_EINVAL);
	h = example(0, 2, 4);
	h.name[0] = '\n';
	CHECK_INT(px_hello_put(&h, mem, sizeof mem), PX_EINVAL);
	h = example(0, 2, 4);
	memset(h.job, 'x', sizeof h.job); /* no NUL */
	CHECK_INT(px_hello_put(&h, mem, sizeof mem), PX_EINVAL);
	h = example(0, 2, 0);
	CHECK_INT(px_hello_put(&h, mem, sizeof mem), PX_EINVAL);
}

TEST(hello_of_another_version_says_which)
{
	struct px_hello h = example(0, 2, 4), g = { 0 };
	uint8_t mem[PX_HELLO_MAX];
	int n;

	h.protocol = 7;
	n = px_hello_put(&h, mem, sizeof mem);
	REQUIRE(n > 0);
	CHECK_INT(px_hello_get(mem, (size_t)n, &g), PX_EVERSION);
	CHECK_UINT(g.protocol, 7);
}

TEST(native_representation_is_this_machine)
{
	struct px_repr r;

	px_repr_native(&r);
	CHECK_UINT(r.size_long, sizeof(long));
	CHECK_UINT(r.size_pointer, sizeof(void *));
	CHECK_UINT(r.align_double, _Alignof(double));
#ifdef __x86_64__
	CHECK(!r.big_endian && r.char_signed && r.long_double_format == 1 && r.align_long_double == 16);
	CHECK(r.align_double == 8 && r.align_long_long == 8 && r.size_wchar == 4 && r.size_long_double == 16);
#endif
}

TEST(peer_that_does_not_fit_is_named)
{
	struct px_hello ours = example(0, 2, 4), peer = example(1, 2, 4);
	char why[300];

	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), 0);
	peer.protocol = 2;
	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), PX_EVERSION);
	peer = example(1, 2, 4);
	strcpy(peer.job, "other");
	strcpy(ours.job, "secret-id");
	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), PX_EJOB);
	CHECK(strstr(why, "site1") && strstr(why, "other") && !strstr(why, "secret-id"));
	ours = example(0, 2, 4);
	peer = example(1, 3, 4);
	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), PX_ESITE);
	peer = example(2, 2, 4);
	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), PX_ESITE);
	peer = example(0, 2, 4);
	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), PX_ESITE);
	CHECK(strstr(why, "twice") != NULL);
	peer = example(1, 2, 4);
	strcpy(peer.name, ours.name);
	CHECK_INT(px_hello_check(&ours, &peer, why, 10), PX_ESITE);
	CHECK(strlen(why) == 9);
	peer = example(1, 2, 4);
	peer.repr.big_endian = !ours.repr.big_endian;
	CHECK_INT(px_hello_check(&ours, &peer, why, sizeof why), 0);
}

TEST(world_knows_the_site_of_every_rank)
{
	struct px_hello h[4] = { example(0, 4, 3), example(1, 4, 1), example(2, 4, 5), example(3, 4, 2) };
	struct px_world *w = px_world_new(4, 2, h);
	static const int site[11] = { 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3 };

	REQUIRE(w != NULL);
	CHECK_INT(w->nranks, 11);
	for (int r = 0; r < 11; r++)
		CHECK_INT(px_world_site(w, r), site[r]);
	CHECK_INT(px_world_site(w, -1), -1);
	CHECK_INT(px_world_site(w, 11), -1);
	CHECK_INT(w->base[4], 11);
	px_world_free(w);
	px_world_free(NULL);
	h[1].nranks = INT_MAX;
	CHECK(px_world_new(4, 2, h) == NULL);
	CHECK(px_world_new(0, 0, h) == NULL);
	CHECK(px_world_new(4, 4, h) == NULL);
}

/* Sites behind those of the hostfile, which a process hears of in any order, or never. */
TEST(world_grows_by_sites_that_come_later)
{
	struct px_hello h[2] = { example(0, 2, 3), example(1, 2, 2) };
	struct px_world *w = px_world_new(2, 0, h);
	const struct px_hello *before;

	REQUIRE(w != NULL);
	before = w->site;
	CHECK_INT(px_world_grow(w, 4, 12, 3, 1), 0); /* 5..11 are of sites 2 and 3 */
	CHECK_INT(w->nsites, 5);
	CHECK_INT(w->nranks, 15);
	CHECK(strcmp(before[1].name, w->site[4].name) == 0);
	CHECK_INT(w->site[4].nranks, 3);
	CHECK_INT(px_world_site(w, 4), 1);
	for (int r = 12; r < 15; r++)
		CHECK_INT(px_world_site(w, r), 4);
	CHECK_INT(px_world_grow(w, 2, 5, 4, 0), 0);
	CHECK_INT(px_world_grow(w, 3, 9, 3, 0), 0);
	CHECK_INT(px_world_grow(w, 5, 15, 1, 0), 0);
	for (int r = 5; r < 16; r++)
		CHECK_INT(px_world_site(w, r), r < 9 ? 2 : r < 12 ? 3 : r < 15 ? 4 : 5);
	CHECK_INT(px_world_site(w, 16), -1);
	px_world_free(w);
}

TEST(world_survives_the_wire)
{
	enum { N = 100 };
	struct px_hello *h = calloc(N, sizeof *h);
	struct px_world *w, *got = NULL;
	uint8_t *mem, *cut;
	long n;

	REQUIRE(h != NULL);
	for (int i = 0; i < N; i++)
		h[i] = example(i, N, 1 + (uint32_t)(test_random() % 1000));
	w = px_world_new(N, 7, h);
	REQUIRE(w != NULL);
	w->files = PX_WORLD_FILES_SITE + N;
	CHECK_INT(px_world_put(w, NULL, 0), PX_EINVAL);
	w->files--;
	n = px_world_put(w, NULL, 0);
	REQUIRE(n > 0);
	mem = malloc((size_t)n);
	cut = malloc((size_t)n);
	REQUIRE(mem && cut);
	CHECK_INT(px_world_put(w, mem, (size_t)n - 1), PX_EINVAL);
	CHECK_INT(px_world_put(w, mem, (size_t)n), n);
	REQUIRE_INT(px_world_get(mem, (size_t)n, &got), 0);
	CHECK(got->self == 7 && got->nsites == N && got->nranks == w->nranks);
	CHECK_INT(got->files, PX_WORLD_FILES_SITE + N - 1);
	CHECK(memcmp(got->base, w->base, (N + 1) * sizeof *w->base) == 0);
	CHECK_STR(got->site[99].name, "site99");
	CHECK_INT(px_world_put(got, cut, (size_t)n), n);
	CHECK_MEM(cut, mem, (size_t)n);
	px_world_free(got);
	got = NULL;
	for (long i = 0; i < n; i++)
		CHECK_INT(px_world_get(mem, (size_t)i, &got), PX_ESHORT);
	CHECK(got == NULL);
	w->site[5].site = 6;
	CHECK_INT(px_world_put(w, NULL, 0), PX_EINVAL);
	px_world_free(w);
	free(mem);
	free(cut);
	free(h);
}

/* A stream of many frames, cut at random, half of the bodies taken past the parser. */
TEST(parser_finds_frames_however_they_are_cut)
{
	enum { FRAMES = 300 };
	size_t cap = FRAMES * (size_t)(PX_ENVELOPE_MAX), len = 0, at = 0;
	struct px_frame *sent = malloc(FRAMES * sizeof *sent);
	uint8_t *mem = malloc(cap), body[PX_INLINE_MAX];
	struct px_parser p;
	size_t got = 0, body_at = 0;
	int next = 0;

	REQUIRE(mem && sent);
	for (int i = 0; i < FRAMES; i++) {
		do
			sent[i] = random_message();
		while (sent[i].type != PX_F_MSG);
		px_frame_put(&sent[i], mem + len);
		len += PX_FRAME_SIZE;
		for (size_t k = 0; k < sent[i].body; k++)
			mem[len++] = (uint8_t)test_random();
	}
	px_parser_init(&p);
	while (next < FRAMES) {
		size_t n = test_random() % (test_random() % 2 ? 8 : 3000), used;
		int ev;

		if (n > len - at)
			n = len - at;
		if (px_parser_left(&p) > 0 &&
			test_random() % 2) { /* as with recv() into the caller's memory */
			if (n > px_parser_left(&p))
				n = (size_t)px_parser_left(&p);
			memcpy(body + got, mem + at, n);
			REQUIRE_INT(px_parser_took(&p, n), 0);
			at += n;
			got += n;
			continue;
		}
		ev = px_parser_feed(&p, mem + at, n, &used);
		REQUIRE(used <= n);
		switch (ev) {
		case PX_PARSE_HEADER:
			check_same_frame(&p.frame, &sent[next]);
			body_at = at + used;
			got = 0;
			break;
		case PX_PARSE_BODY:
			REQUIRE(p.at == got && got + used <= sizeof body);
			memcpy(body + got, mem + at, used);
			got += used;
			break;
		case PX_PARSE_END:
			REQUIRE(got == p.frame.body);
			CHECK_MEM(body, mem + body_at, got);
			CHECK(px_parser_idle(&p));
			next++;
			break;
		default:
			REQUIRE_INT(ev, PX_PARSE_MORE);
		}
		at += used;
	}
	CHECK_UINT(at, len);
	CHECK_INT(px_parser_took(&p, 1), PX_EINVAL);
	free(mem);
	free(sent);
}

TEST(parser_stays_in_its_error)
{
	struct px_frame f = { .version = 1, .type = PX_F_BYE, .seq = 1 };
	uint8_t mem[PX_FRAME_SIZE];
	struct px_parser p;
	size_t used;

	px_frame_put(&f, mem);
	px_parser_init(&p);
	CHECK_INT(px_parser_feed(&p, (const uint8_t *)"GET / HTTP", 10, &used), PX_EPROTO);
	CHECK_INT(px_parser_feed(&p, mem, sizeof mem, &used), PX_EPROTO);
	CHECK_UINT(used, 0);
	CHECK(!px_parser_idle(&p));
	px_parser_init(&p);
	CHECK_INT(px_parser_feed(&p, mem, 79, &used), PX_PARSE_MORE);
	CHECK(!px_parser_idle(&p));
	CHECK_INT(px_parser_feed(&p, mem + 79, 1, &used), PX_PARSE_HEADER);
	CHECK_INT(px_parser_feed(&p, NULL, 0, &used), PX_PARSE_END);
	CHECK_INT(px_parser_feed(&p, NULL, 0, &used), PX_PARSE_MORE);
}
