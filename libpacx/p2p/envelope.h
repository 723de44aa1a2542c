/* envelope.h: one frame of this rank as a native message: what is in every one, and to whom it goes (attach.h). */
#ifndef PX_ENVELOPE_H
#define PX_ENVELOPE_H

#include <stdint.h>

#include "frame.h"

/* px_envelope_init: an empty frame from this rank to global rank dst. */
void px_envelope_init(struct px_frame *f, enum px_frame_type type, int dst);
/* px_envelope_send: f, and the body that lies behind its place in `envelope`, to native rank `to`. MPI error code. */
int px_envelope_send(const struct px_frame *f, uint8_t *envelope, int body, int to, int tag);
/* px_flow_gateway: all frames between two ranks go through one gateway, so they stay in order. */
int px_flow_gateway(int dst);
/* px_native_of: native rank of global rank dst, which lives at this site. */
int px_native_of(int dst);

#endif
