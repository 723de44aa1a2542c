/* place.c: which rank takes which node of a graph.
 *
 * Design. What counts is the site of each node only. Several candidates are made and each one is improved by exchanging nodes between sites
 * as long as that gains (Kernighan and Lin's exchange without its look-ahead); the best one wins. Candidates: as it is; the nodes in an order
 * of their own, cut into one piece per site: as they are numbered, a grid with each dimension as the slowest, and by growing from a node to its neighbours.
 * Sites take their pieces as they are numbered, and the largest first. (To find the best is NP-hard.)
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

/* What improving may cost: pairs of nodes looked at for each candidate, and cells of the table that it needs. */
#define PAIRS (1 << 22)
#define CELLS (1 << 22)

struct near {
	int to, weight;
};

struct work {
	const struct px_places *p;
	size_t *start;                                   /* [n + 1] of each node in near */
	struct near *near;                               /* both ways */
	int *cap;                                        /* [nparts] ranks at each site */
	int *site_order, *node_order, *at, *best, *room; /* at, best: [n] sites of nodes */
	long long *
		pull; /* [n * nparts] weight of a node's edges to each site; NULL: too much, nothing is improved */
	bool *seen;
	long long best_crosses;
};

long long px_place_crossing(const struct px_places *p, const int *rank_of)
{
	long long sum = 0;

	for (size_t i = 0; i < p->nedges; i++)
		if (p->part[rank_of[p->edge[i].from]] != p->part[rank_of[p->edge[i].to]])
			sum += p->edge[i].weight;
	return sum;
}

static long long crossing(const struct px_places *p, const int *at)
{
	long long sum = 0;

	for (size_t i = 0; i < p->nedges; i++)
		if (at[p->edge[i].from] != at[p->edge[i].to])
			sum += p->edge[i].weight;
	return sum;
}

/* The neighbours of each node, from the list of edges; a node is no neighbour of itself. */
static void join(struct work *w)
{
	const struct px_places *p = w->p;

	for (size_t i = 0; i < p->nedges; i++) {
		if (p->edge[i].from != p->edge[i].to) {
			w->start[p->edge[i].from + 1]++;
			w->start[p->edge[i].to + 1]++;
		}
	}
	for (int v = 0; v < p->n; v++)
		w->start[v + 1] += w->start[v];
	for (size_t i = p->nedges; i-- > 0;) { /* start[] rises to the end of each node's */
		const struct px_edge *e = &p->edge[i];

		if (e->from != e->to) {
			w->near[w->start[e->from]++] = (struct near){ e->to, e->weight };
			w->near[w->start[e->to]++] = (struct near){ e->from, e->weight };
		}
	}
	memmove(w->start + 1, w->start, (size_t)p->n * sizeof *w->start);
	w->start[0] = 0;
}

static long long *pull_of(struct work *w, int node)
{
	return w->pull + (size_t)node * (size_t)w->p->nparts;
}

/* Node v goes to another site. */
static void move(struct work *w, int v, int to)
{
	for (size_t i = w->start[v]; i < w->start[v + 1]; i++) {
		long long *pull = pull_of(w, w->near[i].to);

		pull[w->at[v]] -= w->near[i].weight;
		pull[to] += w->near[i].weight;
	}
	w->room[w->at[v]]++;
	w->room[to]--;
	w->at[v] = to;
}

static long long weight_between(const struct work *w, int u, int v)
{
	long long sum = 0;

	for (size_t i = w->start[u]; i < w->start[u + 1]; i++)
		if (w->near[i].to == v)
			sum += w->near[i].weight;
	return sum;
}

/* Move node u to where it gains: a site with room, or in exchange for a node v > u. True if it did. */
static bool improve_node(struct work *w, int u, long *pairs)
{
	long long *pull = pull_of(w, u);
	bool moved = false;

	for (int s = 0; s < w->p->nparts; s++) {
		if (w->room[s] > 0 && pull[s] > pull[w->at[u]]) {
			move(w, u, s);
			moved = true;
		}
	}
	for (int v = u + 1; v<w->p->n && * pairs> 0; v++, --*pairs) {
		int a = w->at[u], b = w->at[v];
		long long gain = pull[b] - pull[a] + pull_of(w, v)[a] - pull_of(w, v)[b];

		if (a != b && gain > 0 && gain > 2 * weight_between(w, u, v)) {
			move(w, u, b);
			move(w, v, a);
			moved = true;
		}
	}
	return moved;
}

static void improve(struct work *w)
{
	const struct px_places *p = w->p;
	long pairs = PAIRS;
	bool moved = w->pull != NULL;

	if (!moved)
		return;
	memset(w->pull, 0, (size_t)p->n * (size_t)p->nparts * sizeof *w->pull);
	memcpy(w->room, w->cap, (size_t)p->nparts * sizeof *w->room);
	for (int v = 0; v < p->n; v++) {
		w->room[w->at[v]]--;
		for (size_t i = w->start[v]; i < w->start[v + 1]; i++)
			pull_of(w, v)[w->at[w->near[i].to]] += w->near[i].weight;
	}
	while (moved && pairs > 0) {
		moved = false;
		for (int u = 0; u < p->n; u++)
			moved |= improve_node(w, u, &pairs);
	}
}

/* Improve the candidate in at, and keep it if it is better than what was there before. */
static void consider(struct work *w)
{
	long long crosses;

	improve(w);
	crosses = crossing(w->p, w->at);
	if (crosses < w->best_crosses) {
		w->best_crosses = crosses;
		memcpy(w->best, w->at, (size_t)w->p->n * sizeof *w->at);
	}
}

/* Candidates: the nodes in node_order, cut into pieces for the sites. */
static void cut(struct work *w)
{
	const struct px_places *p = w->p;

	for (int largest_first = 0; largest_first < 2; largest_first++) {
		int i = 0;

		for (int s = 0; s < p->nparts; s++) {
			int k = s;

			for (; largest_first && k > 0 && w->cap[w->site_order[k - 1]] < w->cap[s]; k--)
				w->site_order[k] = w->site_order[k - 1];
			w->site_order[k] = s;
		}
		for (int s = 0; s < p->nparts; s++)
			for (int k = 0; k < w->cap[w->site_order[s]] && i < p->n; k++)
				w->at[w->node_order[i++]] = w->site_order[s];
		consider(w);
	}
}

/* The nodes of the grid in an order in which dimension d is the slowest. */
static void order_grid(struct work *w, int d)
{
	const struct px_places *p = w->p;
	int inner = 1, k = 0;

	for (int i = d + 1; i < p->ndims; i++)
		inner *= p->dims[i];
	for (int x = 0; x < p->dims[d]; x++)
		for (int v = 0; v < p->n; v++)
			if (v / inner % p->dims[d] == x)
				w->node_order[k++] = v;
}

/* The nodes from one to its neighbours, to theirs, and so on; each connected part in turn. Returns the last one of the first part: an end of it. */
static int order_grown(struct work *w, int from)
{
	int n = w->p->n, k = 0, end = from, next = 0, parts = 0;

	memset(w->seen, 0, (size_t)n * sizeof *w->seen);
	for (int head = 0; head < n; head++) {
		if (head == k) {
			int v = parts++ == 0 ? from : next;

			while (w->seen[v])
				v = ++next;
			w->seen[v] = true;
			w->node_order[k++] = v;
		}
		for (size_t i = w->start[w->node_order[head]]; i < w->start[w->node_order[head] + 1]; i++) {
			int v = w->near[i].to;

			if (!w->seen[v]) {
				w->seen[v] = true;
				w->node_order[k++] = v;
			}
		}
		if (parts == 1)
			end = w->node_order[head];
	}
	return end;
}

static void candidates(struct work *w)
{
	const struct px_places *p = w->p;

	for (int v = 0; v < p->n; v++)
		w->at[v] = w->best[v] = p->part[v];
	w->best_crosses = crossing(p, w->best);
	if (w->best_crosses == 0)
		return;
	consider(w);
	for (int v = 0; v < p->n; v++)
		w->node_order[v] = v;
	cut(w);
	for (int d = 1; d < p->ndims; d++) {
		order_grid(w, d);
		cut(w);
	}
	order_grown(w, order_grown(w, 0));
	cut(w);
}

/* From sites to ranks: a node stays with its own rank if that is at its site; the others take in turn what is left there. */
static void settle(const struct work *w, int *rank_of, int *next, bool *taken)
{
	const struct px_places *p = w->p;

	memset(next, 0, (size_t)p->nparts * sizeof *next);
	memset(taken, 0, (size_t)p->size * sizeof *taken);
	for (int v = 0; v < p->n; v++)
		taken[v] = w->best[v] == p->part[v];
	for (int v = 0; v < p->n; v++) {
		int s = w->best[v];

		rank_of[v] = v;
		if (s == p->part[v])
			continue;
		while (p->part[next[s]] != s || taken[next[s]])
			next[s]++;
		rank_of[v] = next[s]++;
	}
}

bool px_place(const struct px_places *p, int *rank_of)
{
	size_t n = (size_t)p->n, parts = (size_t)p->nparts;
	struct work w = { .p = p };
	bool *taken = calloc((size_t)p->size + 1, sizeof *taken), table = n * parts <= CELLS, ok;

	w.start = calloc(n + 2, sizeof *w.start);
	w.near = malloc((2 * p->nedges + 1) * sizeof *w.near);
	w.cap = calloc(3 * parts + 3 * n + 1, sizeof *w.cap);
	w.seen = calloc(n + 1, sizeof *w.seen);
	w.pull = table ? malloc((n * parts + 1) * sizeof *w.pull) : NULL;
	ok = taken && w.start && w.near && w.cap && w.seen && (w.pull || !table);
	if (ok) {
		w.room = w.cap + parts;
		w.site_order = w.room + parts;
		w.node_order = w.site_order + parts;
		w.at = w.node_order + n;
		w.best = w.at + n;
		for (int r = 0; r < p->size; r++)
			w.cap[p->part[r]]++;
		join(&w);
		candidates(&w);
		settle(&w, rank_of, w.room, taken);
	}
	free(taken);
	free(w.start);
	free(w.near);
	free(w.cap);
	free(w.seen);
	free(w.pull);
	return ok;
}
