/* fuzz/probing.c: the answering side takes any bytes in any pieces, and never gives more than its bound. */
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "probing.h"

/* run: all bytes in pieces; what came out as a checksum, *rc as it ended. */
static uint64_t run(const uint8_t *in, size_t len, size_t piece, uint32_t flags, int *rc)
{
	static uint8_t out[PX_PROBING_OUT];
	struct px_probing_side s = { .id = { 1, 2, 3, 0, flags, 5, "0.1", "left", "job" } };
	uint64_t sum = 0;

	*rc = 0;
	for (size_t at = 0; at < len && *rc == 0; at += piece) {
		size_t n = 0;

		*rc = px_probing_feed(&s, in + at, len - at < piece ? len - at : piece, out, &n);
		MUST(n <= sizeof out);
		for (size_t i = 0; i < n; i++)
			sum = sum * 31 + out[i] + 1;
	}
	MUST(*rc == 0 || *rc == PX_EPROTO);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct px_probing p = { 0 };
	struct px_probing_id id = { 0 };
	uint8_t again[PX_PROBING_ID];
	int a, b;
	uint64_t x = run(in, len, 1, len & 1, &a), y = run(in, len, PX_PROBING_STEP, len & 1, &b);

	MUST(a == b && (x == y || a < 0));
	if (len >= PX_PROBING_SIZE && px_probing_get(in, &p) == 0) {
		px_probing_put(&p, again);
		MUST(memcmp(again, in, PX_PROBING_SIZE) == 0);
	}
	if (len >= PX_PROBING_ID && px_probing_get_id(in, &id) == 0) {
		struct px_probing_id twice = { 0 };

		px_probing_put_id(&id, again);
		MUST(px_probing_get_id(again, &twice) == 0 && memcmp(&id, &twice, sizeof id) == 0);
	}
	return 0;
}
