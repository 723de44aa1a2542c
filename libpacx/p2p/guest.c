/* guest.c: see guest.h.
 *
 * Design. A parcel is a frame with all bytes of its message behind it. It goes natively between a host and its guests, and as one message in a context of
 * its own between ranks of the world. What comes at a host for somebody else goes on. Parcels between two processes take one way,
 * and leave each place in the order in which they came. A guest that has finished says so by a parcel (FIN); when all have, the host and
 * they part.
 */
#include "guest.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "comm.h"
#include "comm_find.h"
#include "datatype.h"
#include "envelope.h"
#include "err.h"
#include "lock.h"
#include "p2p.h"
#include "request.h"
#include "unlike.h"
#include "vendor.h"
#include "wait.h"

#define GUEST_CTX 12 /* beside those of MPI_COMM_WORLD and of names.h */
#define TAG       1
#define HOST      0  /* its rank in the hall */
#define ONCE      16 /* parcels taken from one hall at a time */

struct px_guests *px_guests;
bool px_guest_self;

/* A parcel that arrives or leaves, natively or as a message of the world. */
struct parcel {
	struct parcel *next;
	MPI_Request native; /* MPI_REQUEST_NULL: r */
	struct px_req r;
	size_t n;
	uint8_t *bytes;
};

static struct parcel *in, **in_end = &in, *out;
static struct px_match world; /* parcels from other ranks of the world */

static bool serve(struct px_server *s);
static struct px_server server = { .serve = serve };

/* The first time. */
static int begin(void)
{
	if (!px_guest_self) {
		px_match_init(&world, px_comm_find(px_world_native));
		if (px_channel_ctx_add(GUEST_CTX, &world) < 0)
			return PX_ENOMEM;
	}
	px_server_add(&server);
	if (!px_hooked)
		px_duty_add(1); /* others may send while this rank waits */
	return PX_OK;
}

struct px_guests *px_guests_learn(int site, int base, int n, int host)
{
	struct px_guests *g;

	for (g = px_guests; g; g = g->next)
		if (g->site == site)
			return g;
	g = malloc(sizeof *g);
	if (!g)
		return NULL;
	*g = (struct px_guests){ px_guests, site, base, n, host, MPI_COMM_NULL, MPI_COMM_NULL, 0 };
	if (px_world_grow(px.world, site, base, n, px_world_site(px.world, host)) < 0)
		goto fail;
	/* A guest learns of itself before it has anything to do with channels. */
	if (px.on && (px_unlike_open() < 0 || (!px_guests && begin() < 0)))
		goto fail;
	px_guests = g;
	return g;
fail:
	free(g);
	return NULL;
}

void px_guests_hall(struct px_guests *g, MPI_Comm hall, MPI_Comm born)
{
	g->hall = hall;
	g->born = born;
	if (px_guest_self && begin() < 0)
		px_channel_abort(1, "out of memory");
}

bool px_guests_among(const struct px_comm *c)
{
	return px_guests && c->ranks->part[c->ranks->nparts - 1].site >= px.nsites;
}

static struct px_guests *guests_of(int grank)
{
	struct px_guests *g = px_guests;

	while (g && (grank < g->base || grank >= g->base + g->n))
		g = g->next;
	return g;
}

static struct parcel *parcel_new(size_t n, uint8_t *bytes)
{
	struct parcel *p = calloc(1, sizeof *p);

	if (!p || (!bytes && !(bytes = malloc(n))))
		px_channel_abort(1, "out of memory for a message to or from a process that was started");
	p->native = MPI_REQUEST_NULL;
	p->n = n;
	p->bytes = bytes;
	return p;
}

static void parcel_free(struct parcel *p)
{
	free(p->bytes);
	free(p);
}

static bool through(struct parcel *p)
{
	int flag = 1;

	if (p->native == MPI_REQUEST_NULL)
		return px_req_test(&p->r);
	if (px_n.Test(&p->native, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		px_channel_abort(1, "the way to a process that was started is broken");
	return flag;
}

/* All bytes of p are *count elements of *type, which is put away with type_put once they are on their way. */
static int type_of(const struct parcel *p, int *count, MPI_Datatype *type)
{
	*count = p->n > INT_MAX ? 1 : (int)p->n;
	*type = MPI_BYTE;
	return p->n > INT_MAX ? px_type_many((MPI_Count)p->n, 0, MPI_BYTE, type) : MPI_SUCCESS;
}

static void type_put(MPI_Datatype *type)
{
	if (*type != MPI_BYTE)
		px_n.Type_free(type);
}

/* p goes on to native rank `to` of a hall. */
static int pass_native(struct parcel *p, MPI_Comm hall, int to)
{
	MPI_Datatype type;
	int count, rc = type_of(p, &count, &type);

	if (rc == MPI_SUCCESS) {
		rc = px_n.Isend(p->bytes, count, type, to, TAG, hall, &p->native);
		type_put(&type);
	}

	p->next = out;
	out = p;
	return rc;
}

/* p goes on to rank `to` of the world. */
static int pass_world(struct parcel *p, int to)
{
	px_req_init(&p->r, world.c);
	px_req_args(&p->r, p->bytes, (MPI_Count)p->n, MPI_BYTE, px_rank_of(world.c, to), TAG);
	p->r.kind = PX_SEND;
	p->next = out;
	out = p;
	return px_channel_send(&p->r, GUEST_CTX, to, 0);
}

/* One parcel, which is all here: to this process, or on. */
static int route(struct parcel *p)
{
	struct px_guests *to;
	struct px_frame f;

	if (px_frame_get(p->bytes, p->n, &f) != PX_FRAME_SIZE || f.dst >= (uint32_t)px.world->nranks ||
		p->n != PX_FRAME_SIZE + (f.type == PX_F_MSG ? f.total : 0))
		px_channel_abort(1, "a malformed parcel; please report this");
	if ((int)f.dst == px.grank) {
		to = guests_of((int)f.src);
		if (f.type == PX_F_FIN && to) {
			to->gone++;
		} else {
			f.seg = 0;
			f.body = f.total;
			px_channel_deliver(&f, p->bytes + PX_FRAME_SIZE);
		}
		parcel_free(p);
		return MPI_SUCCESS;
	}
	if (px_guest_self)
		return pass_native(p, guests_of(px.grank)->hall, HOST);
	to = guests_of((int)f.dst);
	if (to && to->host == px.grank)
		return pass_native(p, to->hall, HOST + 1 + (int)f.dst - to->base);
	return pass_world(p, to ? to->host : (int)f.dst);
}

int px_guest_send(struct px_frame *f, uint8_t *parcel)
{
	f->body = f->seg == 0 ? f->total : 0;
	f->via = 0;
	f->seq = 0;
	px_frame_put(f, parcel);
	return route(parcel_new(PX_FRAME_SIZE + (size_t)f->total, parcel));
}

static void arriving(struct parcel *p)
{
	*in_end = p;
	in_end = &p->next;
}

/* What has come in a hall. */
static bool take_native(MPI_Comm hall)
{
	MPI_Status st;
	int flag = 1, k = 0;

	while (k < ONCE && px_n.Iprobe(MPI_ANY_SOURCE, TAG, hall, &flag, &st) == MPI_SUCCESS && flag) {
		struct parcel *p;
		MPI_Datatype type;
		MPI_Count n;
		int count;

		px_n.Get_elements_x(&st, MPI_BYTE, &n);
		p = parcel_new((size_t)n, NULL);
		if (type_of(p, &count, &type) != MPI_SUCCESS)
			px_channel_abort(
				1, "no datatype for a long message to or from a process that was started");
		px_n.Irecv(p->bytes, count, type, st.MPI_SOURCE, TAG, hall, &p->native);
		type_put(&type);
		arriving(p);
		k++;
	}
	return k > 0;
}

static bool take_world(void)
{
	struct px_msg *u;
	bool some = false;

	while (!px_guest_self && (u = px_match_find(&world, MPI_ANY_SOURCE, TAG, true))) {
		struct parcel *p = parcel_new((size_t)u->f.total, NULL);

		px_req_init(&p->r, world.c);
		px_req_args(&p->r, p->bytes, (MPI_Count)p->n, MPI_BYTE, MPI_ANY_SOURCE, TAG);
		p->r.kind = PX_RECV;
		px_channel_take(&p->r, u);
		arriving(p);
		some = true;
	}
	return some;
}

/* All of them have finished and are about to part from us: waits for nobody else. */
static void part(struct px_guests *g)
{
	px_n.Comm_free(&g->hall); /* Open MPI 4.1.4 does not come back from disconnecting this one */
	px_n.Comm_disconnect(&g->born);
}

static bool serve(struct px_server *s)
{
	bool some = take_world();

	(void)s;
	for (struct parcel **at = &out, *p; (p = *at);) {
		if (!through(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		parcel_free(p);
	}
	for (struct px_guests *g = px_guests; g; g = g->next)
		if (g->hall != MPI_COMM_NULL)
			some |= take_native(g->hall);
	while (in && through(in)) {
		struct parcel *p = in;

		in = p->next;
		if (!in)
			in_end = &in;
		if (route(p) != MPI_SUCCESS)
			px_channel_abort(1, "a message to or from a process that was started cannot go on");
	}
	for (struct px_guests *g = px_guests; g && !px_serving && !px_guest_self; g = g->next)
		if (g->hall != MPI_COMM_NULL && g->gone == g->n)
			part(g);
	return some;
}

int px_guests_leave(void)
{
	struct px_guests *g = guests_of(px.grank);
	uint8_t *parcel = malloc(PX_FRAME_SIZE);
	struct px_frame f;
	struct px_wait w;
	int rc;

	if (!parcel)
		return MPI_ERR_NO_MEM;
	px_envelope_init(&f, PX_F_FIN, g->host);
	rc = px_guest_send(&f, parcel);
	px_loop_enter(&w);
	while (out)
		px_relax(&w, px_progress());
	px_loop_leave();
	px_server_del(&server);
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Comm_free(&g->hall));
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Comm_disconnect(&g->born));
	return rc;
}

/* A host that has guests yet. */
static bool at_home(void)
{
	struct px_guests *g = px_guests;

	while (g && g->hall == MPI_COMM_NULL)
		g = g->next;
	return g != NULL;
}

void px_guests_wait(void)
{
	struct px_wait w;

	if (!px_guests)
		return;
	px_loop_enter(&w);
	while (at_home() || out || in)
		px_relax(&w, px_progress());
	px_loop_leave();
	px_server_del(&server);
	px_channel_ctx_del(GUEST_CTX);
	if (!px_hooked)
		px_duty_add(-1);
}
