/* xfer.c: see xfer.h. */
#include "xfer.h"

#include <stdlib.h>

#include "attach.h"
#include "bell.h"
#include "state.h"
#include "unlike.h"

#define WINDOW 1024 /* segments of one receive posted at once: 1 GiB in the largest size */
#define WINDOW_SEND                                                                                          \
	16 /* segments of one send under way at once: the daemon's native MPI keeps a note of each */

/* Tags of payload segments: a stack of free numbers. */
static int *tag_free, tag_nfree, tag_made;

int px_xfer_tag(void)
{
	if (tag_nfree > 0)
		return tag_free[--tag_nfree];
	if (tag_made == PX_TAG_COUNT)
		return -1;
	if (tag_made % 1024 == 0) {
		int *more = realloc(tag_free, (size_t)(tag_made + 1024) * sizeof *more);

		if (!more)
			return -1;
		tag_free = more;
	}
	return PX_TAG_DATA + tag_made++;
}

/* Segments of x that may be under way are posted. */
static int xfer_post(struct px_xfer *x, bool sending)
{
	int rc = MPI_SUCCESS;

	while (rc == MPI_SUCCESS && x->posted < x->n &&
		x->posted - x->done < (sending ? WINDOW_SEND : WINDOW)) {
		uint64_t at = (uint64_t)x->posted * x->seg;
		uint64_t len = x->total - at < x->seg ? x->total - at : x->seg;
		MPI_Request *req = &x->req[x->posted];

		if (sending)
			rc = px_n.Issend(
				x->data + at, (int)len, MPI_BYTE, x->peer, x->tag, px.map.relay, req);
		else
			rc = px_n.Irecv(x->data + at, (int)len, MPI_BYTE, x->peer, x->tag, px.map.relay, req);
		x->posted++;
		px_bell_ring(x->peer);
	}
	return rc;
}

int px_xfer_start(struct px_xfer *x, uint64_t total, uint32_t seg, bool sending)
{
	x->total = total;
	x->seg = seg;
	x->n = (int)((total + seg - 1) / seg);
	x->posted = x->done = 0;
	x->req = malloc((size_t)x->n * sizeof *x->req);
	if (!x->req) {
		x->n = 0;
		return MPI_ERR_NO_MEM;
	}
	return xfer_post(x, sending);
}

bool px_xfer_test(struct px_xfer *x, bool sending, int *rc)
{
	int flag = 1;

	while (x->done < x->posted && flag) {
		*rc = px_n.Test(&x->req[x->done], &flag, MPI_STATUS_IGNORE);
		if (*rc != MPI_SUCCESS)
			return false;
		x->done += flag != 0;
	}
	if (x->right && x->done < x->n)
		px_right_some(x->right, x->data, (uint64_t)x->done * x->seg);
	if (!flag)
		return false;
	if (x->done < x->n) {
		*rc = xfer_post(x, sending);
		return false;
	}
	free(x->req);
	x->req = NULL;
	x->n = 0;
	if (x->own_tag)
		tag_free[tag_nfree++] = x->tag;
	x->own_tag = false;
	return true;
}
