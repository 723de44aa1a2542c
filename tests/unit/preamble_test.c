/* preamble_test.c: round trips, all truncations, all bit flips of the preamble. Fixed bytes are in tests/wire/vectors. */
#include <string.h>

#include "err.h"
#include "preamble.h"
#include "test.h"

static struct px_preamble random_preamble(void)
{
	struct px_preamble p = { .kind = test_random() % 2 ? PX_PRE_LINK : PX_PRE_PROBE };

	p.tls = test_random() % 2;
	p.reversed = test_random() % 2;
	p.from = (uint16_t)test_random();
	p.to = (uint16_t)(p.from + 1 + test_random() % 65535);
	p.from_gateway = (uint16_t)test_random();
	p.to_gateway = (uint16_t)test_random();
	p.stream = (uint16_t)test_random();
	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		p.jobhash[i] = (uint8_t)test_random();
	if (p.tls) {
		p.number = test_random();
		for (int i = 0; i < PX_PROOF_SIZE; i++)
			p.proof[i] = (uint8_t)test_random();
	}
	return p;
}

TEST(preamble_keeps_every_field)
{
	for (int i = 0; i < 2000; i++) {
		struct px_preamble p = random_preamble(), q = { 0 };
		uint8_t x[PX_PREAMBLE_SIZE], y[PX_PREAMBLE_SIZE];

		px_preamble_put(&p, x);
		REQUIRE_INT(px_preamble_get(x, sizeof x, &q), PX_PREAMBLE_SIZE);
		CHECK_INT(q.kind, p.kind);
		CHECK_INT(q.tls, p.tls);
		CHECK_INT(q.reversed, p.reversed);
		CHECK_INT(q.from, p.from);
		CHECK_INT(q.to, p.to);
		CHECK_INT(q.from_gateway, p.from_gateway);
		CHECK_INT(q.to_gateway, p.to_gateway);
		CHECK_INT(q.stream, p.stream);
		CHECK_MEM(q.jobhash, p.jobhash, PX_JOBHASH_SIZE);
		CHECK_UINT(q.number, p.number);
		CHECK_MEM(q.proof, p.proof, PX_PROOF_SIZE);
		px_preamble_put(&q, y);
		CHECK_MEM(x, y, sizeof x);
	}
}

TEST(preamble_has_its_bytes)
{
	static const uint8_t want[PX_PREAMBLE_SIZE] = { 'P', 'A', 'C', 'X', 'L', 'I', 'N', 'K', 1, 0, 1, 3, 2,
		1, 4, 3, 6, 5, 8, 7, 10, 9, 0, 0, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9,
		0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 8, 7, 6, 5, 4, 3, 2, 1, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4,
		0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf };
	struct px_preamble p = { .kind = PX_PRE_LINK,
		.tls = 1,
		.reversed = 1,
		.from = 0x0102,
		.to = 0x0304,
		.from_gateway = 0x0506,
		.to_gateway = 0x0708,
		.stream = 0x090a,
		.number = UINT64_C(0x0102030405060708) };
	uint8_t x[PX_PREAMBLE_SIZE];

	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		p.jobhash[i] = (uint8_t)(0xa0 + i);
	for (int i = 0; i < PX_PROOF_SIZE; i++)
		p.proof[i] = (uint8_t)(0xc0 + i);
	px_preamble_put(&p, x);
	CHECK_MEM(x, want, sizeof x);
}

TEST(preamble_is_refused_as_soon_as_it_can_be_told)
{
	struct px_preamble p = random_preamble(), q = { .stream = 77 };
	uint8_t x[PX_PREAMBLE_SIZE];

	px_preamble_put(&p, x);
	for (size_t n = 0; n < PX_PREAMBLE_SIZE; n++)
		CHECK_INT(px_preamble_get(x, n, &q), PX_ESHORT);
	for (size_t i = 0; i < 8; i++) {
		x[i] ^= 0x20;
		for (size_t n = 0; n <= PX_PREAMBLE_SIZE; n++)
			CHECK_INT(px_preamble_get(x, n, &q), n > i                  ? PX_EPROTO
							     : n < PX_PREAMBLE_SIZE ? PX_ESHORT
										    : PX_PREAMBLE_SIZE);
		x[i] ^= 0x20;
	}
	for (size_t i = 8; i < 10; i++) {
		x[i] ^= 2;
		CHECK_INT(px_preamble_get(x, 9, &q), PX_ESHORT);
		CHECK_INT(px_preamble_get(x, 10, &q), PX_EVERSION);
		CHECK_INT(px_preamble_get(x, sizeof x, &q), PX_EVERSION);
		x[i] ^= 2;
	}
	CHECK_INT(q.stream, 77); /* written on success only */
}

TEST(flipped_bit_in_a_preamble_is_never_lost)
{
	for (int i = 0; i < 20; i++) {
		struct px_preamble p = random_preamble(), q;
		uint8_t x[PX_PREAMBLE_SIZE], y[PX_PREAMBLE_SIZE];

		px_preamble_put(&p, x);
		for (int bit = 0; bit < 8 * PX_PREAMBLE_SIZE; bit++) {
			x[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (px_preamble_get(x, sizeof x, &q) == PX_PREAMBLE_SIZE) {
				px_preamble_put(&q, y);
				CHECK_MEM(y, x, sizeof x);
			}
			x[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

TEST(preamble_of_wrong_values_is_refused)
{
	static const struct {
		int at;
		uint8_t value;
	} bad[] = { { 10, 0 }, { 10, 3 }, { 10, 255 }, { 11, 4 }, { 11, 0x80 }, { 22, 1 }, { 23, 1 },
		{ 40, 1 }, { 47, 128 }, { 48, 1 }, { 63, 128 } };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct px_preamble p = random_preamble(), q;
		uint8_t x[PX_PREAMBLE_SIZE];

		if (bad[i].at >= 40) { /* only with TLS */
			p.tls = 0;
			p.number = 0;
			memset(p.proof, 0, sizeof p.proof);
		}
		px_preamble_put(&p, x);
		x[bad[i].at] = bad[i].value;
		CHECK_INT(px_preamble_get(x, sizeof x, &q), PX_EPROTO);
		p.to = p.from;
		px_preamble_put(&p, x);
		CHECK_INT(px_preamble_get(x, sizeof x, &q), PX_EPROTO);
	}
}
