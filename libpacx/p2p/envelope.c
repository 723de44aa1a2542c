/* envelope.c: see envelope.h. */
#include "envelope.h"

#include <string.h>

#include "outbox.h"
#include "state.h"

int px_envelope_send(const struct px_frame *f, uint8_t *envelope, int body, int to, int tag)
{
	struct px_frame same = *f;

	if (!px_outbox_has(envelope + PX_FRAME_SIZE, body, to, tag)) {
		px_frame_put(f, envelope);
		return px_outbox_send(envelope, PX_FRAME_SIZE + body, to, tag);
	}
	same.flags |= PX_FF_SAME;
	same.body = 0;
	px_frame_put(&same, envelope);
	return px_outbox_send(envelope, PX_FRAME_SIZE, to, tag);
}

void px_envelope_init(struct px_frame *f, enum px_frame_type type, int dst)
{
	memset(f, 0, sizeof *f);
	f->version = PX_PROTOCOL_VERSION;
	f->type = (uint8_t)type;
	f->src = (uint32_t)px.grank;
	f->dst = (uint32_t)dst;
}

int px_flow_gateway(int dst)
{
	return (px.grank + dst) % px.map.gateways;
}

int px_native_of(int dst)
{
	return px.map.native_of[dst - px.world->base[px.site]];
}
