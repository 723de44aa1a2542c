/* bench/scale.c: what a world of many ranks costs each of its processes, and each daemon.
 *
 *   scale               2 x 64, 8 x 1,024 and 64 x 16,384 ranks (make bench-scale)
 *   scale SITES RANKS   one world; then memory is held against bounds, and the exit status says whether it is within
 *
 * The real code (world map, lists of ranks, communicators, channel; paths and flow of both daemons) on a made world: nobody is there, and
 * the native MPI beneath does nothing. Bytes are those of the heap.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "comm.h"
#include "conn.h"
#include "in_send.h"
#include "link.h"
#include "nobody_dials.h"
#include "out_flow.h"
#include "pack.h"
#include "quiet.h"
#include "state.h"
#include "unpack.h"
#include "vendor.h"
#include "wait.h"

#define MIB            (1024.0 * 1024.0)
#define PER_1000_RANKS 1024 /* bytes in a process for each 1,000 ranks of the world, beyond BASE */
#define BASE           (1u << 20)
#define WORLD_MAX      (100u << 10)
#define DAEMON_BASE    (4u << 20)
#define DAEMON_SITE    (512u << 10) /* for each site: buffers of its path */
#define DAEMON_PER     240 /* bytes in a daemon for each rank of its own, and of others that it has to do with */

struct px_state px; /* what start/init.c would know */

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* The native MPI. */
static int fake_recv_init(void *buf, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *req)
{
	(void)buf, (void)n, (void)t, (void)from, (void)tag, (void)c, (void)req;
	return MPI_SUCCESS;
}

static int fake_start(MPI_Request *req)
{
	(void)req;
	return MPI_SUCCESS;
}

static int fake_isend(const void *buf, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *req)
{
	return fake_recv_init((void *)buf, n, t, to, tag, c, req);
}

static int fake_test(MPI_Request *req, int *flag, MPI_Status *st)
{
	(void)req, (void)st;
	*flag = 1;
	return MPI_SUCCESS;
}

static struct px_world *world_make(int nsites, int ranks)
{
	struct px_hello *h = calloc((size_t)nsites, sizeof *h);
	struct px_world *w;

	if (!h)
		return NULL;
	for (int i = 0; i < nsites; i++) {
		h[i].nranks = (uint32_t)ranks;
		h[i].tag_ub = 1 << 30;
	}
	w = px_world_new(nsites, 0, h);
	free(h);
	return w;
}

/* A process: what it has before and after, and a row for each step. Each handle is made up. */
static size_t before, mark;
static uint64_t then;

static void begin(void)
{
	mark = heap();
	then = px_now_ns();
}

static size_t row(const char *what)
{
	double ms = (double)(px_now_ns() - then) / 1e6;
	size_t n = heap() - mark;

	printf("  %-44s %12zu bytes %10.3f ms\n", what, n, ms);
	begin();
	return n;
}

static struct px_comm *comm_of(struct px_ranks *l)
{
	static uintptr_t handle = 0x1000;

	handle += 0x100;
	return px_comm_new((MPI_Comm)handle, handle, l);
}

static bool process(int nsites, int ranks)
{
	struct px_ranks *all;
	struct px_comm *c;
	size_t world, total;
	int *list, n = 0;
	bool ok;

	before = heap();
	begin();
	px.world = world_make(nsites, ranks);
	px.map.nranks = ranks;
	px.map.gateways = 1;
	row("world map");
	if (px_channel_open() < 0)
		return false;
	px.on = true;
	row("channel");
	all = px_ranks_world(px.world);
	c = all ? comm_of(all) : NULL;
	world = row("MPI_COMM_WORLD");
	for (int i = 0; i < 100; i++)
		if (!comm_of(c->ranks))
			return false;
	row("100 duplicates of it");
	total = heap() - before;
	printf("  %-44s %12zu bytes, %.0f for each 1,000 ranks\n", "together", total,
		(double)total * 1000 / px.world->nranks);
	list = malloc((size_t)px.world->nranks * sizeof *list);
	for (int r = 1; list && r < px.world->nranks; r += 2)
		list[n++] = r - 1;
	begin();
	all = list ? px_ranks_new(px.world, n, list) : NULL;
	if (!all || !comm_of(all))
		return false;
	row("its even ranks");
	free(list);
	ok = world < WORLD_MAX && total < BASE + PER_1000_RANKS * (size_t)px.world->nranks / 1000;
	if (!ok)
		printf("  more than 1 KiB for each 1,000 ranks, or than 100 KiB for MPI_COMM_WORLD\n");
	return ok;
}

/* The daemons of site 0. Nobody dials. */
void pxd_conn_close(struct pxd_conn *c)
{
	(void)c;
}
ssize_t pxd_conn_writev(struct pxd_conn *c, const struct iovec *v, int n)
{
	(void)c, (void)v, (void)n;
	return 0;
}
int pxd_conn_say(struct pxd_conn *c, const uint8_t *head, size_t nhead, const uint8_t *body, size_t nbody)
{
	(void)c, (void)head, (void)nhead, (void)body, (void)nbody;
	return 0;
}
bool pxd_conn_line_busy(const struct pxd_conn *c)
{
	(void)c;
	return false;
}
double pxd_conn_line_rate(const struct pxd_conn *c)
{
	(void)c;
	return 0;
}

size_t pxd_conn_busy(const struct pxd_conn *c)
{
	(void)c;
	return 0;
}
int pxd_pack(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead)
{
	return pxd_path_put_seg(l, f, seg, ahead);
}
void pxd_pack_free(struct pxd_path *l)
{
	(void)l;
}
void pxd_pack_go(struct pxd_path *l)
{
	(void)l;
}

bool pxd_pack_pays(struct pxd_path *l, const struct px_frame *f, size_t n)
{
	(void)l;
	(void)f;
	(void)n;
	return false;
}
int pxd_pack_open(struct pxd_path *l)
{
	(void)l;
	return 0;
}
void pxd_pack_close(struct pxd_path *l)
{
	(void)l;
}
void pxd_unpack(struct pxd_unpack *u)
{
	(void)u;
}
void pxd_fail(struct pxd_node *d, int code, const char *fmt, ...)
{
	(void)code;
	if (!d->failed)
		printf("  failed: %s\n", fmt);
	d->failed = true;
}
void pxd_text_clean(const uint8_t *text, size_t n, char *out, size_t cap)
{
	(void)text, (void)n, (void)cap;
	out[0] = '\0';
}

static struct pxd_hosts *hosts_make(int nsites, int ranks)
{
	size_t cap = 200 * (size_t)nsites + 200, at = 0;
	char *text = malloc(cap), why[PXD_WHY];
	struct pxd_hosts *h = NULL;

	if (!text)
		return NULL;
	at += (size_t)snprintf(text, cap, "{sites: [");
	for (int i = 0; i < nsites; i++)
		at += (size_t)snprintf(text + at, cap - at,
			"{name: s%d, host: h, port: %d, ranks: %d, mpi: openmpi}%s", i, 1000 + i, ranks,
			i + 1 < nsites ? ", " : "]}");
	if (pxd_hosts_parse(text, at, "scale", &h, why, sizeof why) < 0)
		printf("  %s\n", why);
	free(text);
	return h;
}

static struct pxd d;

/* Bytes that a daemon may take, when the ranks of two sites have spoken. */
static size_t daemon_most(int nsites, int ranks)
{
	return DAEMON_BASE + DAEMON_SITE * (size_t)nsites + DAEMON_PER * 2 * (size_t)ranks;
}

static bool node_make(int nsites, int ranks)
{
	d.node.hosts = hosts_make(nsites, ranks);
	d.map.nranks = ranks;
	d.map.native_of = calloc((size_t)ranks, sizeof *d.map.native_of);
	d.node.loop.data = &d.node;
	return d.node.hosts && d.map.native_of && uv_loop_init(&d.node.loop) == 0;
}

/* Each site grants credit to its ranks, and those of one of them more: they are spoken to. */
static bool out_daemon(int nsites, int ranks)
{
	static struct pxd_out_flow flow;
	struct pxd_path *path = calloc((size_t)nsites, sizeof *path);
	size_t start = heap();
	bool ok;

	begin();
	memset(&flow, 0, sizeof flow);
	flow.path = path;
	if (!path || pxd_out_flow_init(&flow, &d) < 0)
		return false;
	row("out: flow");
	for (int i = 1; i < nsites; i++) {
		if (pxd_path_open(&path[i], &d.node, i, 0, PX_SEG_MAX) < 0)
			return false;
	}
	row("out: paths");
	for (int i = 1; i < nsites; i++)
		pxd_out_flow_credit(
			&flow, &path[i], &(struct px_frame){ .type = PX_F_CREDIT, .tag = 1, .total = 65536 });
	row("out: credit for every rank");
	for (int g = ranks; g < 2 * ranks; g++) {
		const struct px_frame f = {
			.type = PX_F_CREDIT, .dst = (uint32_t)g, .total = 65536, .offset = 1 << 20
		};

		pxd_out_flow_credit(&flow, &path[1], &f);
	}
	row("out: a site whose ranks are spoken to");
	ok = heap() - start < daemon_most(nsites, ranks);
	printf("  %-44s %12.1f MiB\n", "out-daemon together", (double)(heap() - start) / MIB);
	return ok && !d.node.failed;
}

static bool in_daemon(int nsites, int ranks)
{
	static struct pxd_sends sends;
	const uint64_t window[PXD_CREDITS] = { 65536, 0, 0 };
	struct pxd_in_path *path = calloc((size_t)nsites, sizeof *path);
	size_t start = heap();
	bool ok;

	begin();
	memset(&sends, 0, sizeof sends);
	if (!path || pxd_sends_init(&sends, &d) < 0)
		return false;
	row("in: ranks");
	for (int i = 1; i < nsites; i++) {
		path[i].segs = &sends.segs;
		if (pxd_in_path_open(&path[i], &d.node, i, 0, window) < 0)
			return false;
	}
	row("in: paths");
	for (int r = 0; r < ranks; r++)
		pxd_in_path_freed(&path[1], r, PXD_CREDIT_MSG, 128);
	row("in: a site whose ranks have spoken to all");
	ok = heap() - start < daemon_most(nsites, ranks);
	printf("  %-44s %12.1f MiB\n", "in-daemon together", (double)(heap() - start) / MIB);
	return ok && !d.node.failed;
}

static bool world(int nsites, int ranks)
{
	bool ok;

	printf("%d sites x %d ranks, %d in all: a process\n", nsites, ranks, nsites * ranks);
	ok = process(nsites, ranks);
	printf("its site's daemons\n");
	ok &= node_make(nsites, ranks) && out_daemon(nsites, ranks) && in_daemon(nsites, ranks);
	printf("%s\n\n", ok ? "within bounds" : "NOT within bounds");
	return ok;
}

int main(int argc, char **argv)
{
	bool bad = false;

	px_n.Recv_init = fake_recv_init;
	px_n.Start = fake_start;
	px_n.Isend = px_n.Issend = fake_isend;
	px_n.Test = fake_test;
	if (argc == 3)
		return !world(atoi(argv[1]), atoi(argv[2]));
	for (int i = 0; i < 3; i++) {
		static const char *const worlds[][2] = { { "2", "64" }, { "8", "1024" }, { "64", "16384" } };
		char command[4200];

		/* Each in a process of its own: the channel is opened once. */
		snprintf(command, sizeof command, "'%s' %s %s", argv[0], worlds[i][0], worlds[i][1]);
		fflush(stdout);
		bad |= system(command) != 0;
	}
	return bad;
}
