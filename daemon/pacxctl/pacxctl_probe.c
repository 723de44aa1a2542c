/* pacxctl_probe.c: pacxctl probe: latency and bandwidth of every link that a site dials, and what to write into the hostfile.
 *
 * Latency: echoes of one byte, one after the other. Bandwidth: S connections at once, each with as many SINK requests under way as
 * it takes; what counts is what was answered between a quarter of the time and its end, so the beginning of the connections and
 * what is left in buffers do not. One thread for each connection.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "costs.h"
#include "pacxctl.h"
#include "way.h"
#include "wait.h"

#define ECHOES  200
#define ECHO_NS UINT64_C(2000000000) /* no longer than this */
#define PIECE   65536                /* of a SINK */
#define STEPS   4                    /* 1, 2, 4, 8 streams */
#define STREAMS (1 << (STEPS - 1))
#define ENOUGH  0.9 /* of the best rate: fewer streams are cheaper */
#define UNSENT  (2 * PIECE)

struct sender {
	struct pxd_way way;
	uint64_t count_from, end;    /* px_now_ns */
	uint64_t first, last, bytes; /* answered between count_from and end */
	const uint8_t *request;      /* one SINK of PIECE bytes */
	int rc;
};

static int by_value(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* latency: us of min and median. 0 or PX_E.... */
static int latency(struct pxd_way *w, double *least, double *median)
{
	double us[ECHOES];
	uint64_t start = px_now_ns();
	int n = 0, rc = 0;

	while (n < ECHOES && (n < 5 || px_now_ns() - start < ECHO_NS)) {
		uint64_t at = px_now_ns();

		rc = pxd_way_echo(w, 1, at + (uint64_t)w->ctl->o.timeout_ms * 1000000);
		if (rc < 0)
			return rc;
		us[n++] = (double)(px_now_ns() - at) / 1e3;
	}
	qsort(us, (size_t)n, sizeof us[0], by_value);
	*least = us[0];
	*median = us[n / 2];
	return 0;
}

/* answers_take: count what has been answered; partial heads stay in `head`. 0 or PX_E.... */
static int answers_take(struct sender *s, uint8_t *head, size_t *nhead)
{
	while (pxd_talk_wait(&s->way.talk, true, false, 0)) {
		ssize_t k = pxd_talk_some(&s->way.talk, head + *nhead, PX_PROBING_SIZE - *nhead, 0);
		struct px_probing p;
		uint64_t now;

		if (k < 0)
			return (int)k;
		*nhead += (size_t)k;
		if (k == 0 || *nhead < PX_PROBING_SIZE)
			return 0;
		*nhead = 0;
		if (px_probing_get(head, &p) < 0 || !p.answer || p.op != PX_PROBING_SINK)
			return PX_EPROTO;
		now = px_now_ns();
		if (now < s->count_from || now > s->end)
			continue;
		if (s->first)
			s->bytes += PIECE; /* the first one begins the time */
		else
			s->first = now;
		s->last = now;
	}
	return 0;
}

static void *sender_run(void *arg)
{
	struct sender *s = arg;
	struct pxd_talk *t = &s->way.talk;
	const uint8_t *request = s->request;
	const size_t n = PX_PROBING_SIZE + PIECE;
	uint8_t head[PX_PROBING_SIZE];
	size_t nhead = 0, at = 0;
	int unsent = UNSENT;

	/* Not more in the kernel than is under way: what counts is what arrives. */
	setsockopt(t->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
	while (s->rc == 0 && px_now_ns() < s->end) {
		ssize_t k = pxd_talk_push(t, request + at, n - at);

		if (k < 0) {
			s->rc = (int)k;
			break;
		}
		at = (at + (size_t)k) % n;
		if (k == 0)
			pxd_talk_wait(t, true, true, s->end);
		s->rc = answers_take(s, head, &nhead);
	}
	return NULL;
}

/* rate: bytes/s over n streams; below 0: PX_E... with talk.why of the first. */
static double rate(struct sender *s, int n, uint64_t ns)
{
	static uint8_t request[PX_PROBING_SIZE + PIECE];
	uint64_t now = px_now_ns(), first = UINT64_MAX, last = 0, bytes = 0;
	pthread_t thread[STREAMS];
	int started = 0;

	px_probing_put(&(struct px_probing){ PX_PROBING_SINK, 0, PIECE }, request);
	for (; started < n; started++) {
		struct sender *x = &s[started];

		x->request = request;
		x->count_from = now + ns / 4;
		x->end = now + ns;
		x->first = x->last = x->bytes = 0;
		x->rc = 0;
		if (pthread_create(&thread[started], NULL, sender_run, x) != 0)
			break;
	}
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < started; i++) {
		if (s[i].rc < 0)
			return s[i].rc;
		bytes += s[i].bytes;
		if (s[i].first && s[i].first < first)
			first = s[i].first;
		if (s[i].last > last)
			last = s[i].last;
	}
	return last > first ? (double)bytes / ((double)(last - first) / 1e9) : 0;
}

static void print_rate(double bytes)
{
	if (bytes >= 1e8)
		printf("%.2f GB/s", bytes / 1e9);
	else
		printf("%.2f MB/s", bytes / 1e6);
}

/* What was measured of the slowest links. */
struct slowest {
	double latency, rate; /* s, bytes/s; 0 = not yet */
};

/* bandwidth: prints a line for each number of streams, notes the rate; returns the proposed one, 0 = cannot say. */
static int bandwidth(struct pxd_way *w, uint64_t ns, struct slowest *slow)
{
	struct sender s[STREAMS] = { { .rc = 0 } };
	double best = 0, got[STEPS] = { 0 };
	int steps = 0, proposal = 0;

	for (; steps < STEPS; steps++) {
		int n = 1 << steps, open = 0, rc = 0;

		/* New connections each time: a request that was cut off cannot be taken up again. */
		for (; open < n && rc >= 0; open++) {
			s[open].way = *w;
			s[open].way.stream = open;
			rc = pxd_way_open(&s[open].way);
		}
		if (rc >= 0)
			got[steps] = rate(s, n, ns);
		if (rc < 0 || got[steps] < 0)
			printf("  %d stream%s: %s\n", n, n > 1 ? "s" : "",
				rc < 0 ? s[open - 1].way.why : "broken off");
		for (int i = 0; i < open; i++)
			pxd_way_close(&s[i].way);
		if (rc < 0 || got[steps] < 0)
			break;
		printf("  %d stream%s: ", n, n > 1 ? "s" : "");
		print_rate(got[steps]);
		putchar('\n');
		best = got[steps] > best ? got[steps] : best;
	}
	for (int i = steps - 1; i >= 0 && best > 0; i--)
		if (got[i] >= ENOUGH * best)
			proposal = 1 << i;
	if (best > 0 && (slow->rate == 0 || best < slow->rate))
		slow->rate = best;
	return proposal;
}

/* What libpacx would choose over such links, by length (costs.h), and what it would cost. */
static void print_choices(const struct pxd_hosts *h, const struct slowest *l)
{
	static const char *const ops[] = { "bcast", "reduce", "allreduce", "alltoall" };
	static const struct {
		const char *name;
		double bytes;
	} sizes[] = { { "1 B", 1 }, { "1 KiB", 1 << 10 }, { "64 KiB", 1 << 16 }, { "1 MiB", 1 << 20 },
		{ "32 MiB", 1 << 25 } };
	struct px_cost_links on = { .latency = l->latency,
		.rate = l->rate,
		.sites = h->nsites,
		.ranks = h->sites[0].ranks,
		.gateways = h->sites[0].ngateways };
	bool grouped = false, several = false;

	for (int i = 0; i < h->nsites; i++) {
		const struct pxd_site *s = &h->sites[i];

		on.ranks = s->ranks < on.ranks ? s->ranks : on.ranks;
		on.gateways = s->ngateways < on.gateways ? s->ngateways : on.gateways;
		on.uplink =
			s->uplink > 0 && (on.uplink <= 0 || s->uplink < on.uplink) ? s->uplink : on.uplink;
		grouped = grouped || pxd_hosts_group(h, i) != i;
		several = several || pxd_hosts_group(h, i) != 0;
	}
	on.grouped = grouped && several;
	printf("collectives over all %d sites, all links as the slowest of these: algorithm (segments; of an "
	       "alltoall, by block: messages from site to site), ms\n",
		on.sites);
	for (int op = 0; op <= PX_COST_ALLTOALL; op++) { /* an allgather of equal blocks has no choice */
		printf("  %-10s", ops[op]);
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			/* Of an alltoall: blocks of this size. */
			int terms = op == PX_COST_ALLTOALL ? on.ranks * on.ranks : 1;
			double bytes = terms * sizes[i].bytes;
			enum px_algorithm how = px_cost_pick((enum px_cost_op)op, &on, terms, bytes);

			printf("%s %s: %s (%d) %.1f", i ? "," : "", sizes[i].name, px_algorithm_name(how),
				how == PX_ALG_DIRECT ? terms : px_cost_segments(how, bytes),
				1e3 * px_cost((enum px_cost_op)op, how, &on, terms, bytes));
		}
		putchar('\n');
	}
}

static bool way_probe(struct pxd_ctl *c, int self, int peer, int gateway, struct pxd_tls_ctx *tls, bool keyed,
	struct slowest *slow)
{
	const struct pxd_site *a = &c->h->sites[self], *b = &c->h->sites[peer];
	struct pxd_way w = {
		.ctl = c, .self = self, .peer = peer, .gateway = gateway, .tls = tls, .keyed = keyed
	};
	double least, median;
	int streams = 0, rc = pxd_way_open(&w);
	bool job;

	if (b->ngateways > 1)
		printf("%s -> %s/%d\n", a->name, b->name, gateway);
	else
		printf("%s -> %s\n", a->name, b->name);
	if (rc < 0) {
		printf("  no way: %s; see pacxctl doctor\n", w.why);
		pxd_way_close(&w);
		return false;
	}
	rc = latency(&w, &least, &median);
	job = w.id.flags & PX_PROBING_JOB;
	if (rc < 0)
		printf("  latency: %s\n", w.talk.why);
	else
		printf("  latency: %.1f us there and back at best, %.1f us the median\n", least, median);
	pxd_way_close(&w);
	if (rc < 0)
		return false;
	if (median / 2e6 > slow->latency)
		slow->latency = median / 2e6;
	if (job) {
		printf("  a job runs there; its bandwidth is not disturbed by a test\n");
		return true;
	}
	streams = bandwidth(&w, c->o.for_ms ? (uint64_t)c->o.for_ms * 1000000 : UINT64_C(1000000000), slow);
	if (streams == 0)
		return false;
	printf("  proposed: {between: [%s, %s], streams: %d, compress: auto}\n", a->name, b->name, streams);
	return true;
}

int pxd_ctl_probe(int argc, char **argv)
{
	struct slowest slow = { 0, 0 };
	struct pxd_ctl c;
	bool all = true;
	int rc = pxd_ctl_open(&c, argc, argv);

	if (rc != 0)
		return rc;
	if (c.o.recording)
		return pxd_ctl_propose(&c.o);
	for (int self = 0; self < c.h->nsites; self++) {
		struct pxd_tls_ctx *tls = NULL;
		char why[PXD_WHY];
		bool keyed;

		if (!pxd_ctl_selected(&c, self))
			continue;
		if (pxd_ctl_tls(&c, self, &tls, &keyed, why, sizeof why) < 0) {
			printf("%s: %s\n", c.h->sites[self].name, why);
			all = false;
			continue;
		}
		for (int peer = 0; peer < c.h->nsites; peer++) {
			if (peer == self || (!pxd_hosts_dials(c.h, self, self, peer) &&
						    !pxd_hosts_dials(c.h, self, peer, self)))
				continue;
			for (int g = 0; g < c.h->sites[peer].ngateways; g++)
				all = way_probe(&c, self, peer, g, tls, keyed, &slow) && all;
		}
		pxd_tls_ctx_free(tls);
	}
	if (slow.rate > 0)
		print_choices(c.h, &slow);
	pxd_ctl_close(&c);
	return all ? 0 : PXD_CTL_WRONG;
}
