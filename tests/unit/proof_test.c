/* proof_test.c: the proof in a preamble: its bytes, what it is of, and that it serves once. */
#include <string.h>

#include "preamble.h"
#include "proof.h"
#include "test.h"

static uint8_t door[PXD_KEY_SIZE];

static void door_make(void)
{
	uint8_t key[PXD_KEY_SIZE];

	for (int i = 0; i < PXD_KEY_SIZE; i++)
		key[i] = (uint8_t)i;
	CHECK_INT(pxd_proof_key(key, door), 0);
}

static struct px_preamble made(const struct px_preamble *what)
{
	uint8_t bytes[PX_PREAMBLE_SIZE];
	struct px_preamble p;

	pxd_proof_put(door, what, bytes);
	CHECK_INT(px_preamble_get(bytes, sizeof bytes, &p), PX_PREAMBLE_SIZE);
	return p;
}

/* Computed by another program from PROTOCOL.md. */
TEST(proof_has_its_bytes)
{
	static const uint8_t want_door[PXD_KEY_SIZE] = { 0xfd, 0xd0, 0x56, 0x24, 0x1a, 0x69, 0xbf, 0x03, 0x88,
		0x91, 0xda, 0x1c, 0x61, 0x6c, 0x74, 0x3e, 0xdd, 0xde, 0xf9, 0x17, 0x83, 0xdd, 0x1c, 0xd2,
		0x47, 0x6e, 0x7b, 0x06, 0x52, 0xf6, 0x6f, 0x67 };
	struct px_preamble p = { .kind = PX_PRE_LINK,
		.tls = 1,
		.to = 1,
		.number = UINT64_C(0x0102030405060708),
		.proof = { 0xba, 0x45, 0xe9, 0xb1, 0xa5, 0x0a, 0x95, 0xa8, 0xea, 0xb8, 0x78, 0x9e, 0x91, 0x90,
			0x9d, 0xef } };

	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		p.jobhash[i] = (uint8_t)(0xa0 + i);
	door_make();
	CHECK_MEM(door, want_door, sizeof want_door);
	CHECK(pxd_proof_good(door, &p));
	p.proof[15] ^= 1;
	CHECK(!pxd_proof_good(door, &p));
}

TEST(proof_is_of_every_bit)
{
	struct px_preamble p, q;
	uint8_t bytes[PX_PREAMBLE_SIZE];

	door_make();
	p = made(&(struct px_preamble){ .kind = PX_PRE_LINK, .tls = 1, .from = 3, .to = 4, .stream = 5 });
	CHECK(pxd_proof_good(door, &p));
	px_preamble_put(&p, bytes);
	for (int bit = 0; bit < 8 * PX_PREAMBLE_SIZE; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (px_preamble_get(bytes, sizeof bytes, &q) == PX_PREAMBLE_SIZE)
			CHECK(!pxd_proof_good(door, &q));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	door[0] ^= 1;
	CHECK(!pxd_proof_good(door, &p));
}

TEST(proof_serves_once_and_only_the_newest)
{
	struct pxd_proof_memory m = { 0 };
	struct px_preamble what = { .kind = PX_PRE_LINK, .tls = 1, .to = 1 }, first, second, other;

	door_make();
	first = made(&what);
	second = made(&what);
	CHECK(second.number > first.number);
	what.stream = 1;
	other = made(&what);
	CHECK(pxd_proof_new(&m, door, &second));
	CHECK(!pxd_proof_new(&m, door, &second));
	CHECK(!pxd_proof_new(&m, door, &first));
	CHECK(pxd_proof_new(&m, door, &other));
	what.reversed = 1;
	other = made(&what);
	CHECK(pxd_proof_new(&m, door, &other));
	other = made(&what);
	other.proof[0] ^= 1;
	CHECK(!pxd_proof_new(&m, door, &other));
	other.proof[0] ^= 1;
	CHECK(pxd_proof_new(&m, door, &other)); /* what was not proved has not counted */
	pxd_proof_forget(&m);
}

TEST(without_tls_or_key_nothing_is_proved)
{
	struct px_preamble p;
	uint8_t bytes[PX_PREAMBLE_SIZE];

	door_make();
	p = made(&(struct px_preamble){ .kind = PX_PRE_LINK, .to = 1 });
	CHECK_UINT(p.number, 0);
	CHECK(!pxd_proof_good(door, &p));
	pxd_proof_put(NULL, &(struct px_preamble){ .kind = PX_PRE_LINK, .tls = 1, .to = 1 }, bytes);
	REQUIRE_INT(px_preamble_get(bytes, sizeof bytes, &p), PX_PREAMBLE_SIZE);
	CHECK(!pxd_proof_good(door, &p));
}
