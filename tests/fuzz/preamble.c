/* fuzz/preamble.c: an accepted preamble is written back bit by bit; what is refused is refused as soon as it can be told,
 * and no more bytes change that. */
#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "preamble.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t again[PX_PREAMBLE_SIZE];
	struct px_preamble p;
	int rc = px_preamble_get(in, len, &p);

	for (size_t n = 0; n < len && n < PX_PREAMBLE_SIZE; n++) {
		int early = px_preamble_get(in, n, &p);

		MUST(early == PX_ESHORT || early == rc);
	}
	rc = px_preamble_get(in, len, &p);
	if (rc < 0) {
		MUST(rc == PX_ESHORT ? len < PX_PREAMBLE_SIZE : rc == PX_EPROTO || rc == PX_EVERSION);
		return 0;
	}
	MUST(rc == PX_PREAMBLE_SIZE && len >= PX_PREAMBLE_SIZE);
	MUST(p.from != p.to && p.tls <= 1 && p.reversed <= 1);
	px_preamble_put(&p, again);
	MUST(memcmp(again, in, PX_PREAMBLE_SIZE) == 0);
	return 0;
}
