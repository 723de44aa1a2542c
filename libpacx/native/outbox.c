/* outbox.c: see outbox.h. */
#include "outbox.h"

#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "bell.h"
#include "frame.h"
#include "state.h"
#include "wait.h"

#define LOOK     8            /* messages looked at per poll */
#define CLOSE_NS 10000000000u /* Finalize waits this long for receivers */

struct parcel {
	struct parcel *next;
	MPI_Request req;
	int to; /* native rank */
	uint8_t bytes[];
};

static struct parcel *flying, **flying_end = &flying; /* in the order sent */
static int corked;
struct px_given *px_given_by;

/* What is being packed: frames for one native rank under one tag. */
static struct {
	int to, tag, n;
	int body,
		nbody; /* of the last frame: where it lies; a frame with PX_FF_SAME has that of the one before */
	uint8_t bytes[PX_BATCH_MAX];
} batch;

static int post(const uint8_t *bytes, int n, int to, int tag)
{
	struct parcel *p;
	int rc, gone = 0;

	if (tag == PX_TAG_UP && px_given_by) {
		px_given_by->messages++;
		px_given_by->bytes += (uint64_t)n;
	}
	p = malloc(sizeof *p + (size_t)n);
	if (!p)
		return MPI_ERR_NO_MEM;
	memcpy(p->bytes, bytes, (size_t)n);
	rc = px_n.Isend(p->bytes, n, MPI_BYTE, to, tag, px.map.relay, &p->req);
	if (rc == MPI_SUCCESS)
		rc = px_n.Test(&p->req, &gone, MPI_STATUS_IGNORE); /* short ones have been copied */
	px_bell_ring(to);
	if (rc != MPI_SUCCESS || gone) {
		free(p);
		return rc;
	}
	p->next = NULL;
	p->to = to;
	*flying_end = p;
	flying_end = &p->next;
	return MPI_SUCCESS;
}

int px_outbox_flush(void)
{
	int n = batch.n;

	batch.n = batch.nbody = 0;
	return n > 0 ? post(batch.bytes, n, batch.to, batch.tag) : MPI_SUCCESS;
}

bool px_outbox_has(const uint8_t *body, int n, int to, int tag)
{
	return corked && n > 0 && batch.to == to && batch.tag == tag && batch.nbody == n &&
	       batch.n + PX_FRAME_SIZE <= PX_BATCH_MAX &&
	       memcmp(batch.bytes + batch.body, body, (size_t)n) == 0;
}

int px_outbox_send(const uint8_t *bytes, int n, int to, int tag)
{
	int rc = MPI_SUCCESS;

	if (batch.n > 0 && (batch.to != to || batch.tag != tag || batch.n + n > PX_BATCH_MAX))
		rc = px_outbox_flush();
	if (rc != MPI_SUCCESS)
		return rc;
	if (!corked)
		return post(bytes, n, to, tag);
	batch.to = to;
	batch.tag = tag;
	if (!px_frame_same(bytes)) {
		batch.body = batch.n + PX_FRAME_SIZE;
		batch.nbody = n - PX_FRAME_SIZE;
	}
	memcpy(batch.bytes + batch.n, bytes, (size_t)n);
	batch.n += n;
	return MPI_SUCCESS;
}

void px_outbox_cork(void)
{
	corked++;
}

int px_outbox_uncork(void)
{
	return --corked > 0 ? MPI_SUCCESS : px_outbox_flush();
}

bool px_outbox_poll(void)
{
	int n = 0, flag;

	while (flying && n < LOOK) {
		struct parcel *p = flying;

		if (px_n.Test(&p->req, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || !flag)
			break;
		flying = p->next;
		if (!flying)
			flying_end = &flying;
		px_bell_ring(p->to); /* it may have waited here for room there */
		free(p);
		n++;
	}
	return n > 0;
}

void px_outbox_close(void)
{
	uint64_t start = px_now_ns();
	struct px_wait w;

	px_wait_init(&w);
	while (flying && px_now_ns() - start < CLOSE_NS)
		if (!px_outbox_poll())
			px_wait_idle(&w);
}
