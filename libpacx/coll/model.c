/* model.c: see model.h.
 *
 * Links: at the start the leaders of all sites exchange a ping and a train of TRAIN bytes, which fits into TCP's first window, so that what
 * spreads its arrival is the link. Every pair at once: what links share is seen as such. All ranks get the same numbers.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "comm_find.h"
#include "err.h"
#include "state.h"
#include "unlike.h"
#include "wait.h"

#define TRAIN        12288
#define SITES_MAX    64        /* more are not measured, and have links as these: */
#define LATENCY      0.005     /* s */
#define RATE         10e6      /* bytes/s */
#define LOCAL_RATE   1e9       /* bytes/s that a step inside a site takes from the vector */
#define STEP         50e-6     /* s that one message or local step costs, whatever its length */
#define SEGMENT      (1 << 20) /* bytes */
#define SEGMENTS_MAX (PX_SUBS / 2)

static const char *const algorithms[PX_ALG_COUNT] = { "leader", "segments", "pieces" };

/* Shares of the vector that a link carries in sequence: n sites, k terms of a site (terms.h; 1 in a broadcast). */
static double whole(int n, int k)
{
	(void)n;
	return k;
}

static double spread_pieces(int n, int k)
{
	(void)k;
	return 2.0 / (n - 1);
}

static double folded_pieces(int n, int k)
{
	return (k + 1.0) / n;
}

/* The table: M bytes over links of L seconds and B bytes/s cost latencies * L + share * M / B, local * M / LOCAL_RATE for the steps inside
 * sites that the wide area waits for, and STEP for each message. */
static const struct row {
	enum px_coll op;
	enum px_algorithm how;
	int latencies;
	double (*share)(int n, int k);
	int local;
} table[] = {
	{ PX_COLL_BCAST, PX_ALG_LEADER, 1, whole, 2 },
	{ PX_COLL_BCAST, PX_ALG_SEGMENTS, 1, whole, 1 },
	{ PX_COLL_BCAST, PX_ALG_PIECES, 2, spread_pieces, 1 },
	{ PX_COLL_REDUCE, PX_ALG_LEADER, 1, whole, 2 },
	{ PX_COLL_REDUCE, PX_ALG_SEGMENTS, 1, whole, 1 },
	{ PX_COLL_REDUCE, PX_ALG_PIECES, 2, folded_pieces, 1 },
	{ PX_COLL_ALLREDUCE, PX_ALG_LEADER, 1, whole, 3 },
	{ PX_COLL_ALLREDUCE, PX_ALG_SEGMENTS, 1, whole, 1 },
	{ PX_COLL_ALLREDUCE, PX_ALG_PIECES, 2, folded_pieces, 1 },
};
#define ROWS (int)(sizeof table / sizeof table[0])

/* What the user forces: PACX_COLL_<name>. */
static const struct {
	enum px_coll op;
	const char *name;
} forced[] = { { PX_COLL_BCAST, "PACX_COLL_BCAST" }, { PX_COLL_REDUCE, "PACX_COLL_REDUCE" },
	{ PX_COLL_ALLREDUCE, "PACX_COLL_ALLREDUCE" } };
#define FORCED (int)(sizeof forced / sizeof forced[0])

/* Agreed on: for each pair of sites, from * sites + to. */
struct link {
	double latency, rate; /* s, bytes/s */
};
static struct {
	bool known;
	int sites;
	double choice[FORCED + 1]; /* an algorithm + 1, 0 = none; last: associative */
	struct link *link;         /* NULL: LATENCY, RATE */
} model;

int px_model_segments(MPI_Count bytes)
{
	MPI_Count n = bytes / SEGMENT;

	return n < 1 ? 1 : n > SEGMENTS_MAX ? SEGMENTS_MAX : (int)n;
}

/* The slowest of the links between the sites of c, looked up once: every collective asks. */
static struct link links_of(struct px_comm *c)
{
	struct link all = { LATENCY, RATE };
	bool first = true;

	if (c->rate > 0)
		return (struct link){ c->latency, c->rate };
	for (int p = 0; model.link && p < c->nparts; p++)
		for (int q = 0; q < c->nparts; q++) {
			int from = px_world_site(px.world, px_grank(c, px_leader(c, p)));
			int to = px_world_site(px.world, px_grank(c, px_leader(c, q)));
			struct link l = model.link[from * model.sites + to];

			if (p == q)
				continue;
			if (first || l.latency > all.latency)
				all.latency = l.latency;
			if (first || l.rate < all.rate)
				all.rate = l.rate;
			first = false;
		}
	c->latency = all.latency;
	c->rate = all.rate;
	return all;
}

static double cost(const struct row *w, struct link l, int n, int terms, double bytes)
{
	int segments = w->how == PX_ALG_LEADER ? 1 : px_model_segments((MPI_Count)bytes);
	int messages = segments * (w->how == PX_ALG_PIECES ? 2 * (n - 1) : 1);

	return w->latencies * l.latency + w->share(n, terms) * bytes / l.rate +
	       w->local * bytes / LOCAL_RATE + messages * STEP;
}

enum px_algorithm px_model_pick(struct px_comm *c, enum px_coll op, MPI_Count bytes, int terms)
{
	enum px_algorithm best = PX_ALG_LEADER;
	double least = 0;
	struct link l;

	/* Before the links are known, and where a datatype has as many bytes as its site pleases. */
	if (!model.known || px_unlike_any)
		return best;
	for (int i = 0; i < FORCED; i++)
		if (forced[i].op == op && model.choice[i] > 0)
			return (enum px_algorithm)(model.choice[i] - 1);
	l = links_of(c);
	for (int i = 0; i < ROWS; i++) {
		double this = cost(&table[i], l, c->nparts, terms, (double)bytes);

		if (table[i].op != op || (table[i].how == PX_ALG_SEGMENTS && px_model_segments(bytes) == 1))
			continue;
		if (table[i].how == PX_ALG_LEADER || this < least) {
			best = table[i].how;
			least = this;
		}
	}
	return best;
}

bool px_model_associative(void)
{
	return model.choice[FORCED] > 0;
}

/* What a leader measures at one other site. */
struct probe {
	uint64_t begin, pong, mark, end; /* ns */
};

struct stamp {
	uint64_t *at;
};

static int stamp(struct px_sched *s, void *arg)
{
	(void)s;
	*((struct stamp *)arg)->at = px_now_ns();
	return MPI_SUCCESS;
}

static int add_stamp(struct px_sched *s, int after, uint64_t *at)
{
	struct stamp *x = px_sched_temp(s, sizeof *x);

	if (!x)
		return -1;
	x->at = at;
	px_sched_when(s, after);
	return px_sched_call(s, stamp, x);
}

enum { PING = 1, PONG, TRAIN_FIRST, TRAIN_REST };

static int add_message(struct px_sched *s, int sub, int after, void *buf, int bytes, int peer, bool out)
{
	px_sched_sub(s, sub);
	px_sched_when(s, after);
	return out ? px_sched_send(s, buf, bytes, MPI_BYTE, peer)
		   : px_sched_recv(s, buf, bytes, MPI_BYTE, peer);
}

/* Ping and pong both ways, and when our pong is here, the train. */
static void probe_site(struct px_sched *s, struct probe *x, char *train, int peer)
{
	char *room = px_sched_temp(s, TRAIN);
	int pong, ping = add_message(s, PING, -1, NULL, 0, peer, false);

	add_stamp(s, -1, &x->begin);
	add_message(s, PING, -1, NULL, 0, peer, true);
	add_message(s, PONG, ping, NULL, 0, peer, true);
	pong = add_message(s, PONG, -1, NULL, 0, peer, false);
	add_stamp(s, pong, &x->pong);
	add_message(s, TRAIN_FIRST, pong, NULL, 0, peer, true);
	add_message(s, TRAIN_REST, pong, train, TRAIN, peer, true);
	add_stamp(s, add_message(s, TRAIN_FIRST, -1, NULL, 0, peer, false), &x->mark);
	if (room)
		add_stamp(s, add_message(s, TRAIN_REST, -1, room, TRAIN, peer, false), &x->end);
}

/* Bytes that do not compress. */
static void fill(char *train)
{
	uint64_t x = 88172645463325252u + (uint64_t)px.grank;

	for (size_t i = 0; i < TRAIN; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		train[i] = (char)(x >> 32);
	}
}

/* This leader's view: latency to each other site, rate from it; the rest of mine[] stays 0. */
static int measure(struct px_comm *c, struct link *mine)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_COMM);
	struct probe *x = calloc((size_t)c->nparts, sizeof *x);
	char *train = s ? px_sched_temp(s, TRAIN) : NULL;
	int rc;

	if (train && x) {
		fill(train);
		for (int p = 0; p < c->nparts && c->lrank == 0; p++)
			if (p != c->self)
				probe_site(s, &x[p], train, px_leader(c, p));
	}
	rc = px_sched_run(s, c);
	for (int p = 0; x && p < c->nparts && rc == MPI_SUCCESS && c->lrank == 0; p++)
		if (p != c->self) {
			uint64_t ns = x[p].end > x[p].mark ? x[p].end - x[p].mark : 1;

			mine[c->self * model.sites + p].latency = (double)(x[p].pong - x[p].begin) / 2e9;
			mine[p * model.sites + c->self].rate = TRAIN / ((double)ns / 1e9);
		}
	rc = rc == MPI_SUCCESS && !x ? MPI_ERR_NO_MEM : rc;
	free(x);
	return rc;
}

/* An algorithm + 1; 0: none is named; -1: none of this name. */
static int choice_of(const char *variable)
{
	const char *v = getenv(variable);

	if (!v || !*v)
		return 0;
	for (int i = 0; i < PX_ALG_COUNT; i++)
		if (strcmp(v, algorithms[i]) == 0)
			return i + 1;
	px_log(PX_LOG_ERROR, "%s is \"%s\": the algorithms are leader, segments and pieces", variable, v);
	return -1;
}

static bool switched_on(const char *variable)
{
	const char *v = getenv(variable);

	return v && *v && strcmp(v, "0") != 0;
}

/* The choices of rank 0 and what the leaders have measured, at all ranks. */
static int agree(struct px_comm *c, double *mine, double *all, int n)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_COMM);

	if (s)
		px_coll_allreduce(s, mine, all, n, MPI_DOUBLE, MPI_MAX);
	return px_sched_run(s, c);
}

int px_model_start(void)
{
	struct px_comm *c = px_comm_find(px_world_native);
	int sites = px.world->nsites, links = sites <= SITES_MAX ? sites * sites : 0,
	    n = FORCED + 1 + 2 * links;
	double *v = calloc(2 * (size_t)n, sizeof *v), *all = v ? v + n : NULL;
	struct px_coll_stat keep = px_coll_stat[PX_COLL_COMM];
	int rc = v ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	model.sites = sites;
	for (int i = 0; i < FORCED && v && px.grank == 0; i++) {
		int how = choice_of(forced[i].name);

		if (how < 0)
			rc = MPI_ERR_ARG;
		v[i] = how;
	}
	if (v && px.grank == 0)
		v[FORCED] = switched_on("PACX_ASSOCIATIVE");
	if (sites > 1 && rc == MPI_SUCCESS && links > 0)
		rc = measure(c, (struct link *)(v + FORCED + 1));
	if (sites > 1 && rc == MPI_SUCCESS)
		rc = agree(c, v, all, n);
	if (sites > 1 && rc == MPI_SUCCESS) {
		memcpy(model.choice, all, sizeof model.choice);
		model.link = links > 0 ? calloc((size_t)links, sizeof *model.link) : NULL;
		if (model.link)
			memcpy(model.link, all + FORCED + 1, (size_t)links * sizeof *model.link);
		model.known = links == 0 || model.link;
	}
	free(v);
	px_coll_stat[PX_COLL_COMM] = keep; /* not the application's */
	return rc == MPI_SUCCESS && sites > 1 && !model.known ? MPI_ERR_NO_MEM : rc;
}
