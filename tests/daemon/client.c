/* client.c: an application rank without libpacx: speaks the protocol of attach.h with its daemons directly.
 *
 * client MODE [ARG...]; run by relay_test.py. Global rank 0 prints results as "name value" lines.
 *   pingpong N         1-byte messages between global rank 0 and the first rank of the last site: one-way us
 *   stream SIZE COUNT  rank 0 -> the first rank of the last site: MB/s
 *   random N           every rank sends N messages to every rank of other sites, sizes 0 .. 3 MiB, all
 *     checked
 *   abort CODE         rank 0 aborts, the others wait for the end
 *   idle SECONDS       nobody sends
 *   crash              rank 0 kills itself while the others wait
 *   leave              rank 0 sends long messages that nobody receives, then all finish
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach.h"
#include "bell.h"
#include "err.h"
#include "frame.h"
#include "vendor.h"
#include "wait.h"
#include "world.h"

#define RING   32
#define WINDOW 4

/* Payload segments under way; owned by one message. */
struct xfer {
	MPI_Request *req;
	int n, done;
	uint8_t *data;
};

struct message {
	struct message *next;
	struct px_frame f;
	int from;
	uint8_t *data; /* inline payload */
};

static struct px_site_map map;
static struct px_world *world;
static int me, next_tag;
static uint32_t next_msg;
static uint8_t ring_buf[RING][PX_BATCH_MAX];
static MPI_Request ring[RING];
static int head;
static int fins;
static struct message *first, **last = &first;
static struct px_wait waiter;

static void die(const char *what)
{
	fprintf(stderr, "client rank %d: %s\n", me, what);
	px_n.Abort(MPI_COMM_WORLD, 99);
}

static void frame_take(const struct px_frame *f, const uint8_t *body, int from)
{
	struct message *m;

	if (f->type != PX_F_MSG && f->type != PX_F_ACK) {
		/* CREDIT: this client sends less than a window before it looks. PULL: its payload is always under way. */
		fins += f->type == PX_F_FIN;
		return;
	}
	m = calloc(1, sizeof *m);
	if (!m || !(m->data = malloc(f->body + 1)))
		die("out of memory");
	m->f = *f;
	m->from = from;
	memcpy(m->data, body, f->body);
	*last = m;
	last = &m->next;
}

static int poll_ring(void)
{
	int n = 0, flag, len, rc;
	MPI_Status st;

	while (n < RING) {
		const uint8_t *body;
		struct px_frame f;
		size_t at = 0;

		px_n.Test(&ring[head], &flag, &st);
		if (!flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		while ((rc = px_frame_next(ring_buf[head], (size_t)len, &at, &f, &body)) > 0)
			frame_take(&f, body, st.MPI_SOURCE);
		if (rc < 0)
			die("malformed frame from the daemon");
		px_n.Start(&ring[head]);
		head = (head + 1) % RING;
		n++;
	}
	return n;
}

static void relax(int some)
{
	if (some)
		px_wait_reset(&waiter);
	else
		px_wait_idle(&waiter);
}

static void header(struct px_frame *f, int type, int dst)
{
	memset(f, 0, sizeof *f);
	f->version = PX_PROTOCOL_VERSION;
	f->type = (uint8_t)type;
	f->src = (uint32_t)me;
	f->dst = (uint32_t)dst;
}

static void envelope(const struct px_frame *f, const void *body, int to, int tag)
{
	uint8_t env[PX_ENVELOPE_MAX];

	px_frame_put(f, env);
	if (f->body)
		memcpy(env + PX_FRAME_SIZE, body, f->body);
	px_n.Send(env, PX_FRAME_SIZE + (int)f->body, MPI_BYTE, to, tag, map.relay);
	px_bell_ring(to);
}

static void send_start(struct xfer *x, int dst, uint8_t *buf, uint64_t total)
{
	struct px_frame f;
	int tag;

	memset(x, 0, sizeof *x);
	header(&f, PX_F_MSG, dst);
	f.total = total;
	f.msg = next_msg++;
	f.ctx = 2;
	if (total <= PX_INLINE_MAX) {
		f.body = total;
		envelope(&f, buf, map.out[0], PX_TAG_UP);
		return;
	}
	f.seg = total <= 4u * PX_SEG_MAX ? PX_SEG_MIN : PX_SEG_MAX;
	/* Of a test's life no tag is used again, so never while it is in use. */
	tag = PX_TAG_DATA + next_tag++ % PX_TAG_COUNT;
	f.local = (uint32_t)tag;
	envelope(&f, NULL, map.out[0], PX_TAG_UP);
	x->n = (int)((total + f.seg - 1) / f.seg);
	x->req = malloc((size_t)x->n * sizeof *x->req);
	for (int i = 0; i < x->n; i++) {
		uint64_t at = (uint64_t)i * f.seg, len = total - at < f.seg ? total - at : f.seg;

		px_n.Issend(buf + at, (int)len, MPI_BYTE, map.out[0], tag, map.relay, &x->req[i]);
		px_bell_ring(map.out[0]);
	}
}

static int xfer_test(struct xfer *x)
{
	int flag;

	while (x->done < x->n) {
		px_n.Test(&x->req[x->done], &flag, MPI_STATUS_IGNORE);
		if (!flag)
			return 0;
		x->done++;
	}
	free(x->req);
	x->req = NULL;
	return 1;
}

static void xfer_wait(struct xfer *x)
{
	while (!xfer_test(x))
		relax(poll_ring());
}

static struct message *take(void)
{
	struct message *m;

	while (!first)
		relax(poll_ring());
	px_wait_reset(&waiter);
	m = first;
	first = m->next;
	if (!first)
		last = &first;
	return m;
}

/* Receive the payload of m into buf. */
static void payload(struct message *m, uint8_t *buf)
{
	struct xfer x = { 0 };
	struct px_frame f;

	if (m->f.seg == 0) {
		memcpy(buf, m->data, m->f.body);
		return;
	}
	header(&f, PX_F_PULL, me);
	f.src = m->f.src;
	f.msg = m->f.msg;
	f.total = m->f.total;
	f.seg = m->f.seg;
	/* A middling message may come without a PULL, under the tag that its announcement names. */
	f.local = m->f.local ? m->f.local : (uint32_t)(PX_TAG_DATA + next_tag++ % PX_TAG_COUNT);
	x.n = (int)((m->f.total + m->f.seg - 1) / m->f.seg);
	x.req = malloc((size_t)x.n * sizeof *x.req);
	for (int i = 0; i < x.n; i++) {
		uint64_t at = (uint64_t)i * m->f.seg,
			 len = m->f.total - at < m->f.seg ? m->f.total - at : m->f.seg;

		px_n.Irecv(buf + at, (int)len, MPI_BYTE, map.in[0], (int)f.local, map.relay, &x.req[i]);
	}
	if (!m->f.local)
		envelope(&f, NULL, map.in[0], PX_TAG_DONE);
	xfer_wait(&x);
}

static void message_free(struct message *m)
{
	free(m->data);
	free(m);
}

static void finish(void)
{
	static const char json[] = "{\"barrier\":[1,2,3,4]}";
	struct px_frame f;

	if (getenv("PACX_STATS") && me == world->base[world->self]) {
		header(&f, PX_F_STATS, me);
		f.body = f.total = sizeof json - 1;
		envelope(&f, json, map.out[0], PX_TAG_UP);
	}
	header(&f, PX_F_FIN, me);
	envelope(&f, NULL, map.in[0], PX_TAG_DONE);
	envelope(&f, NULL, map.out[0], PX_TAG_UP);
	while (fins < 2)
		relax(poll_ring());
	while (first)
		message_free(take());
	for (int i = 0; i < RING; i++) {
		px_n.Cancel(&ring[i]);
		px_n.Wait(&ring[i], MPI_STATUS_IGNORE);
	}
}

static void test_bcast(void *buf, int n, MPI_Datatype t)
{
	MPI_Request req;
	int flag = 0;

	px_n.Ibcast(buf, n, t, map.out[0], map.relay, &req);
	while (px_n.Test(&req, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
		px_wait_idle(&waiter);
}

static void start(void)
{
	int len = 0, lrank;
	uint8_t *bytes;

	px_vendor_load();
	px_n.Init(NULL, NULL);
	px_log_init("client", PX_LOG_INFO);
	if (px_attach_roles(PX_ROLE_APP, &map) < 0)
		die("attach");
	px_wait_setup(map.procs_here, false);
	px_wait_init(&waiter);
	test_bcast(&len, 1, MPI_INT);
	bytes = malloc((size_t)len);
	test_bcast(bytes, len, MPI_BYTE);
	if (px_world_get(bytes, (size_t)len, &world) < 0)
		die("malformed world map");
	free(bytes);
	px_n.Comm_rank(map.apps, &lrank);
	me = world->base[world->self] + lrank;
	for (int i = 0; i < RING; i++) {
		px_n.Recv_init(ring_buf[i], PX_BATCH_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_DOWN, map.relay,
			&ring[i]);
		px_n.Start(&ring[i]);
	}
}

static void send(int dst, uint8_t *buf, uint64_t n)
{
	struct xfer x;

	send_start(&x, dst, buf, n);
	xfer_wait(&x);
}

static void recv(uint8_t *buf)
{
	struct message *m = take();

	payload(m, buf);
	message_free(m);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void pingpong(int n)
{
	int other = world->base[world->nsites - 1];
	double *t = malloc((size_t)n * sizeof *t);
	uint8_t b = 1;

	for (int i = 0; i < n; i++) {
		uint64_t from = px_now_ns();

		if (me == 0) {
			send(other, &b, 1);
			recv(&b);
			t[i] = (double)(px_now_ns() - from) / 2e3;
		} else if (me == other) {
			recv(&b);
			send(0, &b, 1);
		}
	}
	if (me == 0) {
		qsort(t, (size_t)n, sizeof *t, compare);
		printf("oneway_us %.2f\np10_us %.2f\np90_us %.2f\n", t[n / 2], t[n / 10], t[n * 9 / 10]);
	}
	free(t);
}

static void stream(uint64_t size, int count)
{
	int other = world->base[world->nsites - 1];
	uint8_t *buf = malloc(size + 1), b = 0;
	struct xfer x[WINDOW];
	uint64_t from;

	memset(buf, 1, size);
	for (int round = 0; round < 2; round++) { /* the first warms up */
		from = px_now_ns();
		for (int i = 0; me == 0 && i < count + WINDOW; i++) {
			if (i >= WINDOW)
				xfer_wait(&x[i % WINDOW]);
			if (i < count)
				send_start(&x[i % WINDOW], other, buf, size);
			else
				memset(&x[i % WINDOW], 0, sizeof x[0]);
		}
		for (int i = 0; me == other && i < count; i++)
			recv(buf);
		if (me == 0)
			recv(&b);
		else if (me == other)
			send(0, &b, 1);
	}
	if (me == 0)
		printf("mbs %.0f\n", (double)size * count / ((double)(px_now_ns() - from) / 1e3));
	free(buf);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

static uint64_t random_size(int src, int dst, int k)
{
	uint64_t r = mix(((uint64_t)src << 40) + ((uint64_t)dst << 20) + (uint64_t)k + 1);

	switch (r % 8) {
	case 0:
		return r / 8 % (3u << 20);
	case 1:
		return PX_INLINE_MAX + r / 8 % 3 - 1;
	case 2:
		return r / 8 % (300u << 10);
	default:
		return r / 8 % 1500;
	}
}

static void fill(uint8_t *p, uint64_t n, uint64_t seed)
{
	for (uint64_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed + i * 2654435761u) >> 7);
}

static void random_mode(int n)
{
	int lo = world->base[world->self], hi = world->base[world->self + 1],
	    remote = world->nranks - (hi - lo);
	int *seen = calloc((size_t)world->nranks, sizeof *seen), got = 0, sent = 0, bad = 0;
	uint8_t *buf = malloc(4u << 20), *want = malloc(4u << 20), *out[WINDOW];
	struct xfer x[WINDOW] = { 0 };

	for (int i = 0; i < WINDOW; i++)
		out[i] = malloc(4u << 20);
	while (got < n * remote || sent < n * remote) {
		if (sent < n * remote && xfer_test(&x[sent % WINDOW])) {
			int k = sent / remote, dst = sent % remote;
			uint64_t size;

			dst = dst < lo ? dst : dst + (hi - lo);
			size = random_size(me, dst, k);
			fill(out[sent % WINDOW], size, mix((uint64_t)me * 1000003 + (uint64_t)k));
			send_start(&x[sent % WINDOW], dst, out[sent % WINDOW], size);
			sent++;
		}
		relax(poll_ring());
		if (first) {
			struct message *m = take();
			int src = (int)m->f.src;
			uint64_t size = random_size(src, me, seen[src]);

			if (m->f.total != size || m->f.dst != (uint32_t)me) {
				fprintf(stderr,
					"rank %d: message %d of rank %d has %llu bytes, expected %llu\n", me,
					seen[src], src, (unsigned long long)m->f.total,
					(unsigned long long)size);
				die("lost or reordered message");
			}
			payload(m, buf);
			fill(want, size, mix((uint64_t)src * 1000003 + (uint64_t)seen[src]));
			bad += memcmp(buf, want, size) != 0;
			seen[src]++;
			got++;
			message_free(m);
		}
	}
	for (int i = 0; i < WINDOW; i++)
		xfer_wait(&x[i]);
	if (bad)
		die("wrong bytes");
	printf("rank%d_ok %d\n", me, got);
	for (int i = 0; i < WINDOW; i++)
		free(out[i]);
	free(buf);
	free(want);
	free(seen);
}

static void wait_seconds(double s)
{
	uint64_t from = px_now_ns();

	while ((double)(px_now_ns() - from) < s * 1e9) {
		struct timespec t = { 0, 20000000 };

		poll_ring();
		nanosleep(&t, NULL);
	}
}

static void abort_mode(int code)
{
	static const char why[] = "MPI_Abort(by client)";
	struct px_frame f;

	if (me == 0) {
		header(&f, PX_F_ABORT, me);
		f.tag = code;
		f.body = f.total = sizeof why - 1;
		envelope(&f, why, map.out[0], PX_TAG_UP);
	}
	wait_seconds(30);
	die("nobody ended this job");
}

static void leave_mode(void)
{
	struct xfer x[8];
	static uint8_t big[5u << 20];

	for (int i = 0; me == 0 && i < 8; i++)
		send_start(&x[i], world->base[world->nsites - 1], big, i % 2 ? sizeof big : 100);
	for (int i = 0; me == 0 && i < 8; i++)
		xfer_wait(&x[i]);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "idle";
	long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;

	start();
#ifdef OPEN_MPI
	/* As libpacx would: one yield per turn of the waiting loop, not one more in each native call. */
	bool (*set)(bool) =
		(bool (*)(bool))(uintptr_t)dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");

	if (set)
		set(false);
#endif
	if (strcmp(mode, "pingpong") == 0)
		pingpong((int)a);
	else if (strcmp(mode, "stream") == 0)
		stream((uint64_t)a, (int)b);
	else if (strcmp(mode, "random") == 0)
		random_mode((int)a);
	else if (strcmp(mode, "abort") == 0)
		abort_mode((int)a);
	else if (strcmp(mode, "idle") == 0)
		wait_seconds((double)a);
	else if (strcmp(mode, "leave") == 0)
		leave_mode();
	else if (strcmp(mode, "crash") == 0 && me == 0)
		raise(SIGKILL);
	else if (strcmp(mode, "crash") == 0)
		wait_seconds(30);
	else
		die("unknown mode");
	finish();
	px_world_free(world);
	px_attach_drop(&map);
	px_n.Finalize();
	return 0;
}
