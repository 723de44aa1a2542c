/* right.c: operations of origins that store data in another way: the target makes right. See rma.h.
 *
 * What one element of the layout consists of is known from its runs. Data of an origin that is alike is passed on as it is.
 */
#include <stdlib.h>

#include "basic.h"
#include "channel.h"
#include "convert.h"
#include "endian.h"
#include "err.h"
#include "rma.h"
#include "state.h"
#include "unlike.h"

#define RUN_COUNT 24 /* places in a run, as it comes in a message */
#define RUN_REP   32

/* The signature of the layout, and how many times it is there: of one run that of its basic type. */
static enum px_rma_error signature(const struct px_rma_layout *at, struct px_sig *s, uint64_t *elements)
{
	*elements = at->count;
	for (uint32_t i = 0; i < at->nruns; i++) {
		const uint8_t *run = at->runs + i * PX_RMA_RUN;
		uint64_t n = px_get64(run + RUN_COUNT) * px_get64(run + RUN_REP);

		if (at->nruns == 1) {
			*elements *= n;
			n = 1;
		}
		if (px_signature_add(s, px_get32(run), n) < 0)
			return PX_RMA_ETYPE;
	}
	return PX_RMA_OK;
}

static void tell(const struct px_win *w, int src, const struct px_cursor *c)
{
	int g = px_grank(w->c, src);

	px_log(PX_LOG_ERROR,
		"rank %d: an operation of rank %d (site %s): element %llu is %s, which does not fit into the "
		"%s of "
		"this site, of %zu bytes; nothing was changed",
		px.grank, g, px.world->site[px_world_site(px.world, g)].name, (unsigned long long)c->which,
		c->value, px_atom_name(c->atom), px_atom_size(c->atom, c->to));
}

enum px_rma_error px_rma_right(struct px_win *w, int src, const struct px_rma_head *h,
	const struct px_rma_layout *at, const uint8_t *in, struct px_rma_data *out)
{
	const struct px_repr *from = px_unlike(px_grank(w->c, src)), *here = px_unlike_here();
	bool data = in && h->kind != PX_RMA_GET && px_op_of(h->op) != MPI_NO_OP;
	struct px_sig s = { 0 };
	struct px_cursor c;
	uint64_t elements;
	enum px_rma_error e;

	*out = (struct px_rma_data){ in, h->bytes, NULL };
	if (!from)
		return PX_RMA_OK;
	e = signature(at, &s, &elements);
	if (e == PX_RMA_OK) {
		out->size = px_sig_length(&s, from, here, h->bytes);
		out->owned = data ? malloc(out->size + 1) : NULL;
		out->bytes = out->owned;
	}
	if (e == PX_RMA_OK && data && !out->owned)
		px_channel_abort(1, "out of memory for an operation on a window");
	if (e == PX_RMA_OK && out->owned) {
		/* The value to compare with and the new one. */
		px_cursor_init(&c, &s, from, here, h->kind == PX_RMA_CAS ? 2 * elements : elements);
		px_cursor_run(&c, in, h->bytes, out->owned);
		if (c.misfit) {
			tell(w, src, &c);
			e = PX_RMA_EVALUE;
		}
	}
	px_sig_free(&s);
	return e;
}
