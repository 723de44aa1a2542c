/* fuzz/preamble.c: what is accepted is written back to the same bytes; what is not is refused as soon as it can be told, and no
 * byte behind a preamble matters. */
#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "preamble.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct px_preamble p, q;
	uint8_t again[PX_PREAMBLE_SIZE];
	int rc = px_preamble_get(in, len, &p), part = PX_ESHORT;

	MUST(rc == PX_PREAMBLE_SIZE || rc == PX_ESHORT || rc == PX_EVERSION || rc == PX_EPROTO);
	MUST((rc == PX_ESHORT) <= (len < PX_PREAMBLE_SIZE));
	if (rc == PX_PREAMBLE_SIZE) {
		MUST(len >= PX_PREAMBLE_SIZE && p.from != p.to && p.tls <= 1 && p.reversed <= 1);
		px_preamble_put(&p, again);
		MUST(memcmp(again, in, sizeof again) == 0);
	}
	/* Byte by byte the answer is the same: short until it is known, then for ever. */
	for (size_t n = 0; n <= len && n <= PX_PREAMBLE_SIZE; n++) {
		int now = px_preamble_get(in, n, &q);

		MUST(part == PX_ESHORT || now == part);
		part = now;
	}
	MUST(part == rc);
	return 0;
}
