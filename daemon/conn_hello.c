/* conn_hello.c: see conn_hello.h. */
#include "conn_hello.h"

#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "err.h"

void pxd_text_clean(const uint8_t *in, size_t n, char *out, size_t cap)
{
	size_t k = n < cap - 1 ? n : cap - 1;

	for (size_t i = 0; i < k; i++)
		out[i] = in[i] < 0x20 || in[i] == 0x7f ? '?' : (char)in[i];
	out[k] = '\0';
}

static int malformed(int rc, const struct pxd_hand *h, const char *what, char *reason)
{
	char text[24];

	if (rc == PX_EVERSION) {
		snprintf(reason, PXD_REASON,
			"protocol version %u met version %u; install the same PACX on all sites",
			h->n > 2 ? h->buf[2] : 0u, (unsigned)PX_PROTOCOL_VERSION);
		return PX_EVERSION;
	}
	pxd_text_clean(h->buf, h->n < sizeof text - 1 ? h->n : sizeof text - 1, text, sizeof text);
	snprintf(reason, PXD_REASON, "%s (it begins with \"%s\")", what, text);
	return PX_EPROTO;
}

int pxd_hand_get(const struct pxd_hand *h, int *type, struct px_hello *hello, char *reason)
{
	const uint8_t *body = h->buf + PX_FRAME_SIZE;
	struct px_frame f;
	size_t have;
	int rc = px_frame_get(h->buf, h->n, &f);

	if (rc == PX_ESHORT)
		return PX_ESHORT;
	if (rc < 0)
		return malformed(rc, h, "what it sent is no PACX frame", reason);
	have = h->n - PX_FRAME_SIZE;
	if (f.type == PX_F_REFUSE) {
		/* A long reason is cut: no more memory than this for a stranger. */
		if (have < f.body && h->n < PXD_HAND_MAX)
			return PX_ESHORT;
		pxd_text_clean(body, have < f.body ? have : (size_t)f.body, reason, PXD_REASON);
		*type = PX_F_REFUSE;
		return 0;
	}
	if (f.type != PX_F_HELLO) {
		snprintf(reason, PXD_REASON, "its first frame is of type %u, not HELLO", f.type);
		return PX_EPROTO;
	}
	if (have < f.body)
		return PX_ESHORT;
	if (have > f.body) {
		snprintf(reason, PXD_REASON, "it sent more than a HELLO before it was accepted");
		return PX_EPROTO;
	}
	memset(hello, 0, sizeof *hello);
	rc = px_hello_get(body, (size_t)f.body, hello);
	if (rc == PX_EVERSION) {
		snprintf(reason, PXD_REASON,
			"protocol version %u met version %u; install the same PACX on all sites",
			hello->protocol, (unsigned)PX_PROTOCOL_VERSION);
		return PX_EVERSION;
	}
	if (rc < 0) {
		snprintf(reason, PXD_REASON, "its HELLO is malformed");
		return PX_EPROTO;
	}
	*type = PX_F_HELLO;
	return 0;
}

static int control_put(struct pxd_conn *c, enum px_frame_type type, const uint8_t *body, size_t n)
{
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = (uint8_t)type, .body = n, .total = n };
	uint8_t head[PX_FRAME_SIZE];

	px_frame_put(&f, head);
	if (pxd_conn_put(c, head, sizeof head, body, n) < 0)
		return PX_ENOMEM;
	return pxd_conn_flush(c) < 0 ? PX_ECLOSED : 0;
}

int pxd_hand_put_hello(struct pxd_conn *c, const struct px_hello *hello)
{
	uint8_t body[PX_HELLO_MAX];
	int n = px_hello_put(hello, body, sizeof body);

	return n < 0 ? n : control_put(c, PX_F_HELLO, body, (size_t)n);
}

int pxd_hand_put_refuse(struct pxd_conn *c, const char *reason)
{
	return control_put(c, PX_F_REFUSE, (const uint8_t *)reason, strnlen(reason, PXD_REASON - 1));
}
