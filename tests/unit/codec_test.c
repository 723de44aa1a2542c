/* codec_test.c: segments come back as they were; what is malformed is refused and harms nothing. */
#include <stdlib.h>

#include "codec.h"
#include "err.h"
#include "frame.h"
#include "test.h"

#define GUARD 32 /* bytes behind each output that must stay as they are */

static const unsigned elems[] = { 0, 1, 2, 4, 8, 16 };
static const size_t sizes[] = { 0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 100, 511, 512, 1000, 1024, 1025, 2049,
	4095, 65536, 65537, 262144, 999983, 1048575, 1048576 };

static uint8_t *in, *packed, *out;

static bool have_room(void)
{
	if (!in) {
		in = malloc(PX_SEG_MAX + GUARD);
		packed = malloc(PX_SEG_MAX + GUARD);
		out = malloc(PX_SEG_MAX + GUARD);
	}
	return in && packed && out;
}

static void fill_smooth(size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		double x = 1.0 + (double)i * 1e-5;

		memcpy(in + i, &x, n - i < 8 ? n - i : 8);
	}
}

static void fill_random(uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t x = test_random();

		memcpy(to + i, &x, n - i < 8 ? n - i : 8);
	}
}

static void guard_set(uint8_t *p)
{
	memset(p, 0xa5, GUARD);
}

static bool guard_whole(const uint8_t *p)
{
	for (int i = 0; i < GUARD; i++)
		if (p[i] != 0xa5)
			return false;
	return true;
}

/* The definition of the shuffled order, one byte at a time. */
static void plain_shuffle(const uint8_t *from, size_t n, uint8_t *to, size_t elem)
{
	size_t count = n / elem;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < elem; j++)
			to[j * count + i] = from[i * elem + j];
	memcpy(to + count * elem, from + count * elem, n - count * elem);
}

static void round_trip(struct pxd_codec *c, int codec, int level, unsigned elem, size_t n, bool must_shrink)
{
	size_t m;

	guard_set(packed + n);
	m = pxd_codec_pack(c, codec, level, elem, in, n, packed, n);
	if (!CHECK(m < n || m == 0) || !CHECK(guard_whole(packed + n)) || !CHECK(m > 0 || !must_shrink)) {
		printf("  %s:%d elem %u, %zu bytes\n", pxd_codec_name(codec), level, elem, n);
		return;
	}
	if (m == 0)
		return;
	memset(out, 0x5a, n);
	guard_set(out + n);
	CHECK_INT(pxd_codec_unpack(c, codec, elem, packed, m, out, n), 0);
	if (!CHECK_MEM(out, in, n) || !CHECK(guard_whole(out + n)))
		printf("  %s:%d elem %u, %zu bytes\n", pxd_codec_name(codec), level, elem, n);
}

TEST(every_codec_gives_back_what_it_got)
{
	struct pxd_codec *c = pxd_codec_new();

	REQUIRE(c && have_room());
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		size_t n = sizes[s];

		fill_smooth(n);
		for (int kind = PXD_CODEC_ZLIB; kind < PXD_CODEC_KINDS; kind++)
			for (size_t e = 0; e < sizeof elems / sizeof *elems; e++) {
				if (kind == PXD_CODEC_ZLIB && n > 65537 && elems[e] != 8)
					continue; /* slow, and nothing new */
				if (pxd_codec_shuffles(elems[e]))
					round_trip(c, kind | PXD_CODEC_SHUFFLE, 0, elems[e], n,
						elems[e] == 8 && n >= 1024);
				else
					round_trip(c, kind, 1, elems[e], n, n >= 4095);
			}
	}
	pxd_codec_free(c);
}

TEST(levels_are_kept_to_their_range)
{
	struct pxd_codec *c = pxd_codec_new();
	static const int levels[] = { 0, 1, 3, 6, 9, 12, 19, 22, 100, 0 };

	REQUIRE(c && have_room());
	fill_smooth(65536);
	for (int kind = PXD_CODEC_ZLIB; kind < PXD_CODEC_KINDS; kind++)
		for (size_t l = 0; l < sizeof levels / sizeof *levels; l++)
			round_trip(c, kind | PXD_CODEC_SHUFFLE, levels[l], 8, 65536, true);
	pxd_codec_free(c);
}

TEST(random_data_is_left_plain)
{
	struct pxd_codec *c = pxd_codec_new();

	REQUIRE(c && have_room());
	fill_random(in, PX_SEG_MAX);
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int kind = PXD_CODEC_ZLIB; kind < PXD_CODEC_KINDS; kind++) {
			guard_set(packed + sizes[s]);
			CHECK_UINT(pxd_codec_pack(c, kind, 1, 0, in, sizes[s], packed, sizes[s]), 0);
			CHECK_UINT(pxd_codec_pack(
					   c, kind | PXD_CODEC_SHUFFLE, 1, 8, in, sizes[s], packed, sizes[s]),
				0);
			CHECK(guard_whole(packed + sizes[s]));
		}
	pxd_codec_free(c);
}

TEST(small_room_is_kept_to)
{
	struct pxd_codec *c = pxd_codec_new();

	REQUIRE(c && have_room());
	fill_smooth(65536);
	for (int kind = PXD_CODEC_ZLIB; kind < PXD_CODEC_KINDS; kind++) {
		size_t m = pxd_codec_pack(c, kind, 1, 0, in, 65536, packed, 65536);

		REQUIRE(m > 100);
		for (size_t cap = 0; cap < m; cap += 97) {
			guard_set(packed + cap);
			CHECK_UINT(pxd_codec_pack(c, kind, 1, 0, in, 65536, packed, cap), 0);
			CHECK(guard_whole(packed + cap));
		}
		CHECK(pxd_codec_pack(c, kind, 1, 0, in, 65536, packed, 65536) == m);
	}
	pxd_codec_free(c);
}

TEST(planes_are_as_defined)
{
	struct pxd_codec *c = pxd_codec_new();

	REQUIRE(c && have_room());
	for (size_t e = 0; e < sizeof elems / sizeof *elems; e++) {
		if (!pxd_codec_shuffles(elems[e]))
			continue;
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			size_t n = sizes[s], m, m2;
			uint8_t *planes = malloc(n + 1);

			REQUIRE(planes);
			for (size_t i = 0; i < n; i++) /* every byte tells its place, and it can be packed */
				in[i] = (uint8_t)((i / elems[e] >> 3 ^ i % elems[e] * 7) & 0xff);
			plain_shuffle(in, n, planes, elems[e]);
			m = pxd_codec_pack(
				c, PXD_CODEC_LZ4 | PXD_CODEC_SHUFFLE, 0, elems[e], in, n, packed, n);
			m2 = pxd_codec_pack(c, PXD_CODEC_LZ4, 0, 0, planes, n, out, n);
			CHECK_UINT(m, m2);
			CHECK(m > 0 || n < 4096);
			if (m && m == m2)
				CHECK_MEM(packed, out, m);
			free(planes);
		}
	}
	pxd_codec_free(c);
}

TEST(numbers_without_meaning_are_malformed)
{
	struct pxd_codec *c = pxd_codec_new();
	size_t m;

	REQUIRE(c && have_room());
	fill_smooth(4096);
	m = pxd_codec_pack(c, PXD_CODEC_ZSTD, 1, 0, in, 4096, packed, 4096);
	REQUIRE(m > 0);
	CHECK_INT(pxd_codec_unpack(c, PXD_CODEC_ZSTD, 0, packed, m, out, 4096), 0);
	CHECK_INT(pxd_codec_unpack(c, PXD_CODEC_ZSTD, 8, packed, m, out, 4096), 0); /* elem is a hint then */
	CHECK_INT(pxd_codec_unpack(c, 4, 0, packed, m, out, 4096), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, 0x40 | PXD_CODEC_ZSTD, 0, packed, m, out, 4096), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, -1, 0, packed, m, out, 4096), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, 0x80 | PXD_CODEC_ZSTD, 3, packed, m, out, 4096), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, 0x80 | PXD_CODEC_ZSTD, 0, packed, m, out, 4096), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, 0x80, 8, packed, m, out, m), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, PXD_CODEC_ZSTD, 0, packed, m, out, PX_SEG_MAX + 1), PX_EPROTO);
	CHECK_INT(pxd_codec_unpack(c, PXD_CODEC_NONE, 0, in, 100, out, 100), 0);
	CHECK_MEM(out, in, 100);
	CHECK_INT(pxd_codec_unpack(c, PXD_CODEC_NONE, 0, in, 100, out, 99), PX_EPROTO);
	CHECK_UINT(pxd_codec_pack(c, PXD_CODEC_NONE, 0, 0, in, 4096, packed, 4096), 0);
	CHECK_UINT(pxd_codec_pack(c, 0x80 | PXD_CODEC_LZ4, 0, 3, in, 4096, packed, 4096), 0);
	CHECK_STR(pxd_codec_name(PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE), "zstd+shuffle");
	CHECK_STR(pxd_codec_name(PXD_CODEC_NONE), "none");
	CHECK_STR(pxd_codec_name(99), "unknown");
	pxd_codec_free(c);
	pxd_codec_free(NULL);
}

/* The input lies at the end of its own block, so that the sanitizer sees a byte read too far. */
static int unpack_exact(
	struct pxd_codec *c, int codec, unsigned elem, const uint8_t *data, size_t m, size_t want)
{
	uint8_t *tight = malloc(m ? m : 1), *room = malloc(want + GUARD);
	int rc = PX_ENOMEM;

	if (tight && room) {
		memcpy(tight, data, m);
		guard_set(room + want);
		rc = pxd_codec_unpack(c, codec, elem, tight, m, room, want);
		CHECK(guard_whole(room + want));
		CHECK(rc == 0 || rc == PX_EPROTO);
	}
	free(tight);
	free(room);
	return rc;
}

TEST(wrong_lengths_are_malformed)
{
	struct pxd_codec *c = pxd_codec_new();
	enum { N = 5000 };

	REQUIRE(c && have_room());
	fill_smooth(N);
	for (int kind = PXD_CODEC_ZLIB; kind < PXD_CODEC_KINDS; kind++)
		for (int mode = 0; mode <= PXD_CODEC_SHUFFLE; mode += PXD_CODEC_SHUFFLE) {
			size_t m = pxd_codec_pack(c, kind | mode, 0, 8, in, N, packed, N);

			REQUIRE(m > 0);
			CHECK_INT(unpack_exact(c, kind | mode, 8, packed, m, N), 0);
			for (size_t cut = 0; cut < m; cut++)
				CHECK_INT(unpack_exact(c, kind | mode, 8, packed, cut, N), PX_EPROTO);
			packed[m] = 0;
			CHECK_INT(unpack_exact(c, kind | mode, 8, packed, m + 1, N), PX_EPROTO);
			memcpy(packed + m, packed, m); /* twice the same */
			CHECK_INT(unpack_exact(c, kind | mode, 8, packed, 2 * m, N), PX_EPROTO);
			CHECK_INT(unpack_exact(c, kind | mode, 8, packed, 2 * m, 2 * N), PX_EPROTO);
			for (size_t want = 0; want < 2 * N; want += want == N - 1 ? 2 : 1)
				CHECK_INT(unpack_exact(c, kind | mode, 8, packed, m, want), PX_EPROTO);
		}
	pxd_codec_free(c);
}

TEST(only_one_ordinary_zstd_frame_is_taken)
{
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4 };
	static const uint8_t endless[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0, 0 }; /* no content size */
	struct pxd_codec *c = pxd_codec_new();
	size_t m;

	REQUIRE(c && have_room());
	fill_smooth(5000);
	m = pxd_codec_pack(c, PXD_CODEC_ZSTD, 0, 0, in, 5000, packed, 5000);
	REQUIRE(m > 0);
	memmove(packed + sizeof skippable, packed, m);
	memcpy(packed, skippable, sizeof skippable);
	CHECK_INT(unpack_exact(c, PXD_CODEC_ZSTD, 0, packed, m + sizeof skippable, 5000), PX_EPROTO);
	CHECK_INT(unpack_exact(c, PXD_CODEC_ZSTD, 0, skippable, sizeof skippable, 5000), PX_EPROTO);
	for (size_t want = 0; want < 200; want++)
		CHECK_INT(unpack_exact(c, PXD_CODEC_ZSTD, 0, endless, sizeof endless, want), PX_EPROTO);
	pxd_codec_free(c);
}

TEST(flipped_bits_and_garbage_harm_nothing)
{
	struct pxd_codec *c = pxd_codec_new();
	static uint8_t bad[8192];
	enum { N = 6000 };
	int accepted = 0;

	REQUIRE(c && have_room());
	fill_smooth(N);
	for (int kind = PXD_CODEC_ZLIB; kind < PXD_CODEC_KINDS; kind++) {
		size_t m = pxd_codec_pack(c, kind | PXD_CODEC_SHUFFLE, 0, 8, in, N, packed, N);

		REQUIRE(m > 0 && m < sizeof bad);
		for (int i = 0; i < 3000; i++) {
			memcpy(bad, packed, m);
			for (int flips = 1 + i % 4; flips > 0; flips--)
				bad[test_random() % m] ^= (uint8_t)(1u << test_random() % 8);
			accepted += unpack_exact(c, kind | PXD_CODEC_SHUFFLE, 8, bad, m, N) == 0;
		}
		for (int i = 0; i < 1000; i++) {
			size_t len = test_random() % 300;

			fill_random(bad, len);
			unpack_exact(c, kind, 0, bad, len, test_random() % 1000);
		}
		/* The contexts are none the worse for it. */
		CHECK_INT(unpack_exact(c, kind | PXD_CODEC_SHUFFLE, 8, packed, m, N), 0);
	}
	printf("  %d of 9000 damaged segments had the right length still\n", accepted);
	pxd_codec_free(c);
}
