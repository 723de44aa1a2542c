/* model.c: see model.h.
 *
 * Links: at the start the leaders of all sites exchange a ping and a train of TRAIN bytes, which fits into TCP's first window, so that what
 * spreads its arrival is the link. Every pair at once: what links share is seen as such. All ranks get the same numbers.
 */
#include "model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "channel.h"
#include "coll.h"
#include "comm.h"
#include "comm_find.h"
#include "err.h"
#include "groups.h"
#include "guest.h"
#include "state.h"
#include "unlike.h"
#include "wait.h"

#define TRAIN     12288
#define SITES_MAX 64    /* more are not measured, and have links as these: */
#define LATENCY   0.005 /* s */
#define RATE      10e6  /* bytes/s */
#define MOST      0.7   /* of an uplink: links that have had more of it together were kept back by it */

/* Operations with a choice, and what the user forces: PACX_COLL_<name>. */
static const struct {
	enum px_coll op;
	enum px_cost_op cost;
	const char *name;
} forced[] = { { PX_COLL_BCAST, PX_COST_BCAST, "PACX_COLL_BCAST" },
	{ PX_COLL_REDUCE, PX_COST_REDUCE, "PACX_COLL_REDUCE" },
	{ PX_COLL_ALLREDUCE, PX_COST_ALLREDUCE, "PACX_COLL_ALLREDUCE" },
	{ PX_COLL_ALLTOALL, PX_COST_ALLTOALL, "PACX_COLL_ALLTOALL" },
	{ PX_COLL_ALLGATHER, PX_COST_ALLGATHER, "PACX_COLL_ALLGATHER" } };
#define FORCED (int)(sizeof forced / sizeof forced[0])

/* Agreed on: for each pair of sites, from * sites + to. */
struct link {
	double latency, rate; /* s, bytes/s */
};
static struct {
	bool known;
	int sites;
	int gateways;              /* of the site that has fewest */
	double choice[FORCED + 1]; /* an algorithm + 1, 0 = none; last: associative */
	struct link *link;         /* NULL: LATENCY, RATE */
} model;

static double uplink_of(const struct px_comm *c, int part)
{
	return (double)px.world->uplink[c->ranks->part[part].site];
}

/* *least becomes uplink if that is less; 0: there is none. */
static void narrower(double *least, double uplink)
{
	if (uplink > 0 && (*least <= 0 || uplink < *least))
		*least = uplink;
}

/* The slowest of the links between the sites of c, looked up once: every collective asks. */
static struct link links_of(struct px_comm *c)
{
	struct link all = { LATENCY, RATE };
	bool first = true;

	if (c->rate > 0)
		return (struct link){ c->latency, c->rate };
	for (int p = 0; p < c->nparts; p++)
		narrower(&c->uplink, uplink_of(c, p));
	for (int p = 0; model.link && p < c->nparts; p++)
		for (int q = 0; q < c->nparts; q++) {
			int from = c->ranks->part[p].site, to = c->ranks->part[q].site;
			struct link l = model.link[from * model.sites + to];
			double shared = uplink_of(c, p);

			narrower(&shared, uplink_of(c, q));
			if (l.rate * (model.sites - 1) > MOST * shared && shared > l.rate)
				l.rate = shared; /* it was measured together with the others */

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

/* Offers are ns for OFFER bytes, so that the largest is the slowest. */
#define OFFER 1e6

long long px_model_offer(struct px_comm *c)
{
	double least = 0;

	for (int p = 0; p < c->nparts && model.known; p++) {
		int site = c->ranks->part[p].site;
		double rate = px_channel_seen(site);

		if (p == c->self)
			continue;
		if (rate <= 0)
			rate = model.link ? model.link[c->ranks->part[c->self].site * model.sites + site].rate
					  : RATE;
		narrower(&least, rate);
	}
	return least > 0 ? (long long)(1e9 * OFFER / least) + 1 : 0;
}

void px_model_agreed(struct px_comm *c, long long most)
{
	links_of(c);
	if (most > 0 && c->uplink <= 0) /* what one of several links carried says little of the others */
		c->rate = 1e9 * OFFER / (double)most;
}

void px_model_inherit(struct px_comm *made, const struct px_comm *c)
{
	made->latency = c->latency;
	made->rate = c->rate;
	made->uplink = c->uplink;
}

static enum px_algorithm pick(struct px_comm *c, enum px_coll op, MPI_Count bytes, int terms, double others)
{
	struct px_cost_links on = {
		.sites = c->nparts, .ranks = INT_MAX, .gateways = model.gateways, .others = others
	};
	const struct px_groups *g;
	struct link l;

	/* Before the links are known, where a datatype has as many bytes as its site pleases, and with guests, who know no links. */
	if (!model.known || px_unlike_any || px_guests_among(c))
		return PX_ALG_LEADER;
	for (int i = 0; i < FORCED; i++)
		if (forced[i].op == op && model.choice[i] > 0)
			return (enum px_algorithm)(model.choice[i] - 1);
	l = links_of(c);
	on.latency = l.latency;
	on.rate = l.rate;
	on.uplink = c->uplink;
	g = px_groups_get(c);
	on.grouped = g && g->any;
	for (int p = 0; p < c->nparts; p++)
		if (px_part_count(c, p) < on.ranks)
			on.ranks = px_part_count(c, p);
	for (int i = 0; i < FORCED; i++)
		if (forced[i].op == op)
			return px_cost_pick(forced[i].cost, &on, terms, (double)bytes);
	return PX_ALG_LEADER;
}

enum px_algorithm px_model_pick(struct px_comm *c, enum px_coll op, MPI_Count bytes, int terms)
{
	return pick(c, op, bytes, terms, 0);
}

enum px_algorithm px_model_pick_allgather(struct px_comm *c, MPI_Count bytes, double others)
{
	return pick(c, PX_COLL_ALLGATHER, bytes, 1, others);
}

bool px_model_associative(void)
{
	return model.choice[FORCED] > 0;
}

void px_model_join(bool associative)
{
	model.choice[FORCED] = associative;
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
static int choice_of(const char *variable, enum px_cost_op op)
{
	const char *v = getenv(variable);
	char there[80] = "";

	if (!v || !*v)
		return 0;
	for (int i = 0; i < PX_ALG_COUNT; i++) {
		const char *name = px_algorithm_name((enum px_algorithm)i);
		size_t n = strlen(there);

		if (!px_cost_has(op, (enum px_algorithm)i))
			continue;
		if (strcmp(v, name) == 0)
			return i + 1;
		snprintf(there + n, sizeof there - n, "%s%s", n ? ", " : "", name);
	}
	px_log(PX_LOG_ERROR, "%s is \"%s\": the algorithms are %s", variable, v, there);
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

/* The out-daemons of this site do not have to wait until somebody fills their links. */
static void tell(struct px_comm *c)
{
	for (int p = 0; model.link && c->lrank == 0 && p < c->nparts; p++)
		if (p != c->self)
			px_channel_rate(px_leader(c, p), model.link[c->self * model.sites + p].rate);
}

int px_model_start(void)
{
	struct px_comm *c = px_comm_find(px_world_native);
	int sites = px.world->nsites, links = sites <= SITES_MAX ? sites * sites : 0,
	    n = FORCED + 2 + 2 * links;
	double *v = calloc(2 * (size_t)n, sizeof *v), *all = v ? v + n : NULL;
	struct px_coll_stat keep = px_coll_stat[PX_COLL_COMM];
	int rc = v ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	model.sites = sites;
	for (int i = 0; i < FORCED && v && px.grank == 0; i++) {
		int how = choice_of(forced[i].name, forced[i].cost);

		if (how < 0)
			rc = MPI_ERR_ARG;
		v[i] = how;
	}
	if (v && px.grank == 0)
		v[FORCED] = switched_on("PACX_ASSOCIATIVE");
	if (v)
		v[FORCED + 1] = -px.map.gateways; /* of which the largest is agreed on */
	if (sites > 1 && rc == MPI_SUCCESS && links > 0)
		rc = measure(c, (struct link *)(v + FORCED + 2));
	if (sites > 1 && rc == MPI_SUCCESS)
		rc = agree(c, v, all, n);
	if (sites > 1 && rc == MPI_SUCCESS) {
		memcpy(model.choice, all, sizeof model.choice);
		model.gateways = (int)-all[FORCED + 1];
		model.link = links > 0 ? calloc((size_t)links, sizeof *model.link) : NULL;
		if (model.link)
			memcpy(model.link, all + FORCED + 2, (size_t)links * sizeof *model.link);
		model.known = links == 0 || model.link;
		tell(c);
	}
	free(v);
	px_coll_stat[PX_COLL_COMM] = keep; /* not the application's */
	return rc == MPI_SUCCESS && sites > 1 && !model.known ? MPI_ERR_NO_MEM : rc;
}
