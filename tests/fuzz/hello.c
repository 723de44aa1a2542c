/* fuzz/hello.c: an accepted hello is written back to the same bytes but for its extension, and can be checked. */
#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t again[PX_HELLO_MAX];
	char why[256];
	struct px_hello h, ours;
	int rc = px_hello_get(in, len, &h), n;

	if (rc < 0) {
		MUST(rc == PX_ESHORT || rc == PX_EPROTO || rc == PX_EVERSION);
		return 0;
	}
	n = px_hello_put(&h, again, sizeof again);
	MUST(n > 0 && (size_t)n <= len);
	again[64] = in[64]; /* length of the extension, which is not kept */
	again[65] = in[65];
	MUST(memcmp(again, in, (size_t)n) == 0);
	ours = h;
	ours.site ^= 1;
	strcpy(ours.name, "ours");
	rc = px_hello_check(&ours, &h, why, sizeof why);
	MUST(rc == 0 || (rc == PX_ESITE && strlen(why) > 0));
	return 0;
}
