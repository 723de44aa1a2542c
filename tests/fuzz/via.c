/* fuzz/via.c: a proxy may answer anything, in any pieces: the state machine ends, keeps to its room, tells no password.
 * First byte: kind of proxy (bit 0), login (bit 1), name or address (bits 2, 3), size of pieces (high bits). */
#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "via.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const char *const hosts[] = { "right.example.org", "192.0.2.7", "2001:db8::7",
		"[2001:db8::7]" };
	struct pxd_proxy p = { .kind = PXD_PROXY_SOCKS5, .host = "proxy", .port = 1080 };
	uint8_t out[PXD_VIA_OUT], shape;
	char why[300], text[300];
	struct pxd_via v;
	size_t n = 0;
	int rc = 0;

	if (len < 1)
		return 0;
	if (len < sizeof text) { /* as a URL, too */
		struct pxd_proxy q;

		memcpy(text, in, len);
		text[len] = 0;
		rc = pxd_proxy_parse(text, &q);
		MUST(rc == 0 ? q.kind != PXD_PROXY_NONE && q.port > 0 && q.port < 65536 && *q.host
			     : rc == PX_EINVAL);
	}
	shape = *in++;
	len--;
	if (shape & 1)
		p.kind = PXD_PROXY_HTTP;
	if (shape & 2) {
		strcpy(p.user, "me");
		strcpy(p.password, "geheimnis");
	}
	MUST(pxd_via_start(&v, &p, hosts[shape >> 2 & 3], 31000, out, &n) == 0);
	MUST(n > 0 && n <= PXD_VIA_OUT);
	rc = 0;
	while (len > 0 && rc == 0) {
		size_t want = pxd_via_want(&v), piece = 1 + (shape >> 4);

		MUST(want > 0 && want <= sizeof v.in - v.nin);
		if (piece > want)
			piece = want;
		if (piece > len)
			piece = len;
		strcpy(why, "");
		rc = pxd_via_feed(&v, in, piece, out, &n, why, sizeof why);
		MUST(rc == 0 || rc == 1 || rc == PX_EPROTO || rc == PX_ECLOSED);
		MUST(n <= PXD_VIA_OUT && (rc >= 0) == (*why == 0) && !(shape & 2 && strstr(why, p.password)));
		in += piece;
		len -= piece;
	}
	MUST(rc == 0 || pxd_via_want(&v) == 0);
	return 0;
}
