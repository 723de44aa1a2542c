/* fuzz/codec.c: unpack of any bytes writes nothing outside; what it takes, packed and unpacked again, is the same.
 * First byte: codec. Second: elem. Two more: length wanted, low byte first, times 1 or 256 by the top bit. */
#include <string.h>

#include "codec.h"
#include "err.h"
#include "fuzz.h"

#define WANT_MAX (1u << 15)

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static struct pxd_codec *c; /* contexts only: they are reset for each segment */
	uint8_t *out, *again;
	size_t want, m;
	unsigned elem;
	int codec, rc;

	if (len < 4)
		return 0;
	if (!c)
		c = pxd_codec_new();
	codec = in[0];
	elem = in[1];
	want = in[2] | (size_t)in[3] << 8;
	if (want >= WANT_MAX)
		want = (want - WANT_MAX) << 5; /* up to a whole segment */
	out = malloc(want ? want : 1);         /* exactly as long as allowed */
	again = malloc(2 * want + 1);
	MUST(c && out && again);
	rc = pxd_codec_unpack(c, codec, elem, in + 4, len - 4, out, want);
	MUST(rc == 0 || rc == PX_EPROTO);
	if (rc == 0 && want) {
		m = pxd_codec_pack(c, codec, 1, elem, out, want, again, want);
		MUST(m < want);
		if (m) {
			MUST(pxd_codec_unpack(c, codec, elem, again, m, again + want, want) == 0);
			MUST(memcmp(again + want, out, want) == 0);
		}
	}
	free(out);
	free(again);
	return 0;
}
