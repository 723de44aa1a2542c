/* frame_check.h: the checksum of a frame, which it carries where no TLS guards it (PROTOCOL.md). */
#ifndef PXD_FRAME_CHECK_H
#define PXD_FRAME_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

struct pxd_conn;

/* pxd_frame_say: a control frame without body on a connection, with a checksum when the link has no TLS. */
int pxd_frame_say(struct pxd_conn *c, const struct px_frame *f, bool check);
/* pxd_frame_check: set the checksum of header and body. pxd_frame_good: is it right? */
void pxd_frame_check(uint8_t *head, const uint8_t *body, size_t n);
uint32_t pxd_frame_sum(const uint8_t *head); /* of the header alone; goes on with the body */
bool pxd_frame_good(const uint8_t *head, const uint8_t *body, size_t n);

#endif
