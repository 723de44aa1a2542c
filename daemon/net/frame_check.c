/* frame_check.c: see frame_check.h. */
#include "frame_check.h"

#include <string.h>

#include "conn.h"
#include "crc.h"
#include "endian.h"

void pxd_frame_check(uint8_t *head, const uint8_t *body, size_t n)
{
	head[4] |= PX_FF_CHECK;
	px_put32(head + 68, 0);
	px_put32(head + 68, px_crc32c(px_crc32c(0, head, PX_FRAME_SIZE), body, n));
}

uint32_t pxd_frame_sum(const uint8_t *head)
{
	uint8_t h[PX_FRAME_SIZE];

	memcpy(h, head, sizeof h);
	px_put32(h + 68, 0);
	return px_crc32c(0, h, sizeof h);
}

bool pxd_frame_good(const uint8_t *head, const uint8_t *body, size_t n)
{
	return head[4] & PX_FF_CHECK && px_crc32c(pxd_frame_sum(head), body, n) == px_get32(head + 68);
}

int pxd_frame_say(struct pxd_conn *c, const struct px_frame *f, bool check)
{
	uint8_t head[PX_FRAME_SIZE];

	px_frame_put(f, head);
	if (check)
		pxd_frame_check(head, NULL, 0);
	return pxd_conn_say(c, head, sizeof head, NULL, 0);
}
