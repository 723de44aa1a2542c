/* costs.h: what the collective operations cost by each algorithm, over links of a latency and a rate: one table (costs.c), for libpacx, which chooses by
 * it, and pacxctl probe, which shows it.
 */
#ifndef PX_COSTS_H
#define PX_COSTS_H

#include <stdbool.h>

enum px_algorithm {
	PX_ALG_LEADER, /* the leader of a site, or the root, sends the whole to each other site; the steps follow one another */
	PX_ALG_SEGMENTS, /* the same in segments, whose steps overlap */
	PX_ALG_PIECES,   /* the sites exchange pieces; segments of the whole overlap, too */
	PX_ALG_LANES,    /* in segments, each by another rank of every site in turn */
	PX_ALG_DIRECT,   /* from each rank to each other */
	PX_ALG_COUNT
};

enum px_cost_op {
	PX_COST_BCAST,
	PX_COST_REDUCE,
	PX_COST_ALLREDUCE,
	PX_COST_ALLTOALL,
	PX_COST_ALLGATHER,
	PX_COST_COUNT
};

struct px_cost_links {
	double latency, rate; /* s, bytes/s of the slowest link between two sites */
	double uplink; /* bytes/s in each direction that all links of a site share, of the site that has least; 0 = no limit */
	int sites, ranks, gateways; /* ranks and gateways of the sites that have fewest */
	bool grouped;               /* what goes to several sites of a group shall cross to it once */
	double others; /* allgather: the blocks of all sites but the one with least, in blocks of the site with most */
};

const char *px_algorithm_name(enum px_algorithm how);

/* px_cost_has: is there this algorithm for op? */
bool px_cost_has(enum px_cost_op op, enum px_algorithm how);

/* px_cost_segments: into how many segments `how` cuts so many bytes. At most PX_COST_SEGMENTS. */
#define PX_COST_SEGMENTS 512
int px_cost_segments(enum px_algorithm how, double bytes);

/* px_cost: s, of `bytes` bytes of one operand, of which `terms` have to leave a site (1 in a broadcast); of an alltoall: `terms` blocks, of `bytes`
 * together, go from a site to another; of an allgather: of the site with most. Below 0: not to be had. */
double px_cost(
	enum px_cost_op op, enum px_algorithm how, const struct px_cost_links *on, int terms, double bytes);

/* px_cost_news: does a link that was said to carry `told` bytes/s (0 = nothing was said) and is seen to carry `seen` (0 = nothing is known) have to be
 * spoken of again? After a change by a quarter and more, so that what varies a little does not make choices change to and fro. */
bool px_cost_news(double told, double seen);

/* px_cost_pick: the one that costs least. */
enum px_algorithm px_cost_pick(enum px_cost_op op, const struct px_cost_links *on, int terms, double bytes);

#endif
