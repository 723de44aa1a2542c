/* out_notes.c: see out_notes.h. */
#include "out_notes.h"

#include <stdlib.h>

#include "bell.h"
#include "costs.h"
#include "err.h"
#include "link.h"
#include "link_in.h"
#include "pacxd.h"
#include "vendor.h"
#include "wait.h"

#define ASKS  4           /* PULLs under way to ranks looked at per poll */
#define LOOKS 16          /* calls in which the clock is not looked at */
#define EVERY 1000000000u /* ns between two looks at the rates */
#define SLACK 64 /* PULLs that may be under way to a rank, beyond what its peers may ask for at a time */

struct note {
	struct px_list l;
	MPI_Request req;
	uint8_t bytes[PX_FRAME_SIZE];
};

struct ask {
	struct px_list l;
	MPI_Request req;
	int rank;
	bool over; /* its message has left meanwhile */
	uint64_t key;
	uint8_t bytes[PX_FRAME_SIZE];
};

int pxd_notes_init(struct pxd_notes *o, struct pxd *d)
{
	size_t n = (size_t)d->map.nranks;

	o->d = d;
	o->most = (unsigned)(PXD_PULLS * (d->node.hosts->nranks - d->map.nranks) + SLACK);
	px_list_init(&o->notes);
	px_list_init(&o->asks);
	o->asked = px_map_new();
	o->gone = px_map_new();
	o->gone_key = calloc(PXD_NOTES_GONE, sizeof *o->gone_key);
	o->nasks = calloc(n + 1, sizeof *o->nasks);
	o->fin = calloc(n + 1, sizeof *o->fin);
	o->told = calloc((size_t)d->node.hosts->nsites, sizeof *o->told);
	return o->asked && o->gone && o->gone_key && o->nasks && o->fin && o->told ? PX_OK : PX_ENOMEM;
}

void pxd_notes_fini(struct pxd_notes *o)
{
	struct px_list *l;

	while (o->d && (l = px_list_pop(&o->notes)))
		free(px_list_entry(l, struct note, l));
	while (o->d && (l = px_list_pop(&o->asks)))
		free(px_list_entry(l, struct ask, l));
	px_map_free(o->asked);
	px_map_free(o->gone);
	free(o->gone_key);
	free(o->nasks);
	free(o->fin);
	free(o->told);
}

void pxd_notes_put(struct pxd_notes *o, const struct px_frame *f, int rank)
{
	struct note *n;

	if (o->fin[rank])
		return;
	n = malloc(sizeof *n);
	if (n)
		px_frame_put(f, n->bytes);
	if (!n || px_n.Isend(n->bytes, PX_FRAME_SIZE, MPI_BYTE, o->d->map.native_of[rank], PX_TAG_DOWN,
			  o->d->map.relay, &n->req) != MPI_SUCCESS) {
		free(n);
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "cannot send a frame to a rank of this site");
		return;
	}
	px_bell_ring(o->d->map.native_of[rank]);
	px_list_push(&o->notes, &n->l);
}

static bool notes_poll(struct pxd_notes *o)
{
	bool some = false;

	while (!px_list_empty(&o->notes)) {
		struct note *n = px_list_entry(o->notes.next, struct note, l);
		int flag = 0;

		px_n.Test(&n->req, &flag, MPI_STATUS_IGNORE);
		if (!flag)
			break;
		px_list_del(&n->l);
		free(n);
		some = true;
	}
	return some;
}

static void ask_end(struct pxd_notes *o, struct ask *a)
{
	px_map_del(o->asked, a->key);
	if (!a->over)
		o->nasks[a->rank]--;
	free(a);
}

void pxd_notes_gone(struct pxd_notes *o, uint32_t src, uint32_t msg)
{
	uint64_t *place = &o->gone_key[o->ngone % PXD_NOTES_GONE];
	struct ask *a = px_map_get(o->asked, px_frame_key(src, msg));

	if (a && !a->over) { /* the rank has begun it by itself */
		a->over = true;
		o->nasks[a->rank]--;
	}
	if (o->ngone++ >= PXD_NOTES_GONE)
		px_map_del(o->gone, *place);
	*place = px_frame_key(src, msg);
	if (px_map_put(o->gone, *place, o) < 0)
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "out of memory for the number of a message");
}

bool pxd_notes_ask(struct pxd_notes *o, const struct px_frame *f, int rank)
{
	uint64_t key = px_frame_key(f->src, f->msg);
	struct px_frame g = {
		.version = PX_PROTOCOL_VERSION, .type = PX_F_PULL, .src = f->src, .dst = f->dst, .msg = f->msg
	};
	struct ask *a;

	if (o->fin[rank] || px_map_get(o->gone, key) || px_map_get(o->asked, key))
		return true;
	if (o->nasks[rank] >= o->most)
		return false;
	a = malloc(sizeof *a);
	if (!a || px_map_put(o->asked, key, a) < 0) {
		free(a);
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "out of memory for a frame to a rank of this site");
		return true;
	}
	a->rank = rank;
	a->over = false;
	a->key = key;
	o->nasks[rank]++;
	px_frame_put(&g, a->bytes);
	if (px_n.Issend(a->bytes, PX_FRAME_SIZE, MPI_BYTE, o->d->map.native_of[rank], PX_TAG_DOWN,
		    o->d->map.relay, &a->req) != MPI_SUCCESS) {
		ask_end(o, a);
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "cannot send a frame to a rank of this site");
		return true;
	}
	px_bell_ring(o->d->map.native_of[rank]);
	px_list_push(&o->asks, &a->l);
	return true;
}

static bool asks_poll(struct pxd_notes *o)
{
	bool some = false;

	for (int n = 0; n < ASKS && !px_list_empty(&o->asks); n++) {
		struct ask *a = px_list_entry(px_list_pop(&o->asks), struct ask, l);
		int flag = 0;

		px_n.Test(&a->req, &flag, MPI_STATUS_IGNORE);
		if (flag)
			ask_end(o, a);
		else
			px_list_push(&o->asks, &a->l);
		some |= flag;
	}
	return some;
}

void pxd_notes_rates(struct pxd_notes *o, const struct pxd_path *path)
{
	const struct pxd_hosts *h = o->d->node.hosts;
	int self = o->d->node.self;
	uint64_t now;

	if (++o->looks < LOOKS)
		return;
	o->looks = 0;
	now = px_now_ns();
	if (px_past(now, o->looked) < EVERY)
		return;
	o->looked = now;
	for (int i = 0; i < h->nsites; i++) {
		const struct px_frame f = { .version = PX_PROTOCOL_VERSION,
			.type = PX_F_RATE,
			.dst = (uint32_t)h->sites[i].base,
			.total = (uint64_t)path[i].rate };

		if (i == self || !px_cost_news(o->told[i], path[i].rate))
			continue;
		if (!path[i].rate_told) { /* else it is what they have said */
			if (!pxd_notes_empty(o))
				continue;
			for (int r = 0; r < o->d->map.nranks; r++)
				pxd_notes_put(o, &f, r);
		}
		o->told[i] = path[i].rate;
	}
}

bool pxd_notes_poll(struct pxd_notes *o)
{
	bool some = notes_poll(o);

	return asks_poll(o) || some;
}
