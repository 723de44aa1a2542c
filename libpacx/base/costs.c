/* costs.c: see costs.h. */
#include "costs.h"

#include <stddef.h>

#define LOCAL_RATE 1e9       /* bytes/s that a step inside a site takes from the vector */
#define STEP       50e-6     /* s that one message or local step costs, whatever its length */
#define SEGMENT    (1 << 20) /* bytes */
#define CHANGED    1.25      /* a rate so many times larger or smaller is another one */

static const char *const names[PX_ALG_COUNT] = { "leader", "segments", "pieces", "lanes", "direct" };

/* Shares of the vector that a link carries in sequence: n sites, k terms of a site (1 in a broadcast). */
static double whole(const struct px_cost_links *on, int k)
{
	(void)on;
	return k;
}

/* Bytes that are counted for all terms together. */
static double together(const struct px_cost_links *on, int k)
{
	(void)on;
	(void)k;
	return 1;
}

static double spread_pieces(const struct px_cost_links *on, int k)
{
	(void)k;
	return 2.0 / (on->sites - 1);
}

static double folded_pieces(const struct px_cost_links *on, int k)
{
	return (k + 1.0) / on->sites;
}

/* A link carries a piece of each block but that of its end. */
static double passed_on(const struct px_cost_links *on, int k)
{
	(void)k;
	return on->others / (on->sites - 1);
}

/* The table: M bytes over links of L seconds and B bytes/s cost latencies * L + share * M / B, local * M / LOCAL_RATE for the steps inside
 * sites that the wide area waits for, and STEP for each message. Every algorithm uses all links of the site that has most to do at once, so
 * those of n sites that share an uplink of U bytes/s have U / (n - 1) each. */
static const struct row {
	enum px_cost_op op;
	enum px_algorithm how;
	int latencies;
	double (*share)(const struct px_cost_links *on, int k);
	double local;
} table[] = {
	{ PX_COST_BCAST, PX_ALG_LEADER, 1, whole, 2 },
	{ PX_COST_BCAST, PX_ALG_SEGMENTS, 1, whole, 1 },
	{ PX_COST_BCAST, PX_ALG_PIECES, 2, spread_pieces, 1 },
	{ PX_COST_BCAST, PX_ALG_LANES, 1, whole, 0.9 },
	{ PX_COST_REDUCE, PX_ALG_LEADER, 1, whole, 2 },
	{ PX_COST_REDUCE, PX_ALG_SEGMENTS, 1, whole, 1 },
	{ PX_COST_REDUCE, PX_ALG_PIECES, 2, folded_pieces, 1 },
	{ PX_COST_REDUCE, PX_ALG_LANES, 1, whole, 0.9 },
	{ PX_COST_ALLREDUCE, PX_ALG_LEADER, 1, whole, 3 },
	{ PX_COST_ALLREDUCE, PX_ALG_SEGMENTS, 1, whole, 1 },
	{ PX_COST_ALLREDUCE, PX_ALG_PIECES, 2, folded_pieces, 1 },
	{ PX_COST_ALLREDUCE, PX_ALG_LANES, 1, whole, 0.5 },
	{ PX_COST_ALLTOALL, PX_ALG_LEADER, 1, together, 4 },
	{ PX_COST_ALLTOALL, PX_ALG_DIRECT, 1, together, 0 },
	{ PX_COST_ALLGATHER, PX_ALG_LEADER, 1, together, 2 },
	{ PX_COST_ALLGATHER, PX_ALG_PIECES, 2, passed_on, 2 },
};
#define ROWS (int)(sizeof table / sizeof table[0])

const char *px_algorithm_name(enum px_algorithm how)
{
	return names[how];
}

int px_cost_segments(enum px_algorithm how, double bytes)
{
	double n = bytes / SEGMENT;

	return how == PX_ALG_LEADER || how == PX_ALG_DIRECT || n < 1 ? 1
	       : n > PX_COST_SEGMENTS                                ? PX_COST_SEGMENTS
								     : (int)n;
}

static double cost(const struct row *w, const struct px_cost_links *on, int terms, double bytes)
{
	int segments = px_cost_segments(w->how, bytes);
	int messages = segments * (w->how == PX_ALG_PIECES ? 2 * (on->sites - 1) : 1);
	double shared = on->uplink / (on->sites - 1);
	double rate = on->uplink > 0 && shared < on->rate ? shared : on->rate;

	if (w->op == PX_COST_ALLTOALL)
		messages = w->how == PX_ALG_DIRECT ? terms : 3; /* two within sites */
	if (w->op == PX_COST_ALLGATHER)
		messages = w->how == PX_ALG_PIECES ? (on->sites - 1) * (on->sites - 1) : 1;
	if ((w->how == PX_ALG_SEGMENTS || w->how == PX_ALG_LANES) && segments == 1)
		return -1;
	if (w->how == PX_ALG_PIECES && on->grouped)
		return -1;
	/* What several ranks send goes through one process where there is one gateway. */
	if (w->how == PX_ALG_LANES && (on->ranks < 2 || on->gateways < 2))
		return -1;
	return w->latencies * on->latency + w->share(on, terms) * bytes / rate +
	       w->local * bytes / LOCAL_RATE + messages * STEP;
}

bool px_cost_news(double told, double seen)
{
	return seen > 0 && (told <= 0 || seen > CHANGED * told || seen < told / CHANGED);
}

static const struct row *row_of(enum px_cost_op op, enum px_algorithm how)
{
	for (int i = 0; i < ROWS; i++)
		if (table[i].op == op && table[i].how == how)
			return &table[i];
	return NULL;
}

bool px_cost_has(enum px_cost_op op, enum px_algorithm how)
{
	return row_of(op, how) != NULL;
}

double px_cost(
	enum px_cost_op op, enum px_algorithm how, const struct px_cost_links *on, int terms, double bytes)
{
	const struct row *w = row_of(op, how);

	return w ? cost(w, on, terms, bytes) : -1;
}

enum px_algorithm px_cost_pick(enum px_cost_op op, const struct px_cost_links *on, int terms, double bytes)
{
	enum px_algorithm best = PX_ALG_LEADER;
	double least = px_cost(op, best, on, terms, bytes);

	for (int how = 0; how < PX_ALG_COUNT; how++) {
		double this = px_cost(op, (enum px_algorithm)how, on, terms, bytes);

		if (this >= 0 && this < least) {
			best = (enum px_algorithm)how;
			least = this;
		}
	}
	return best;
}
