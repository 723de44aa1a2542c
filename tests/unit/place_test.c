/* place_test.c: which rank takes which node: never worse than as it was, every rank at most once, the best where that is known or can be
 * tried out. */
#include <stdint.h>
#include <stdlib.h>

#include "place.h"
#include "test.h"

#define MOST 64

/* Weight that crosses once the nodes are placed; checks that they are placed soundly. */
static long long placed(const struct px_places *p)
{
	int rank_of[MOST], own[MOST], again[MOST], used[MOST] = { 0 }, bad = 0;
	long long crosses;

	CHECK(px_place(p, rank_of) && px_place(p, again));
	for (int i = 0; i < p->n; i++) {
		own[i] = i;
		bad += rank_of[i] < 0 || rank_of[i] >= p->size || used[rank_of[i]]++ ||
		       again[i] != rank_of[i];
	}
	CHECK_INT(bad, 0);
	crosses = px_place_crossing(p, rank_of);
	CHECK(crosses <= px_place_crossing(p, own));
	if (crosses == px_place_crossing(p, own))
		for (int i = 0; i < p->n; i++)
			CHECK_INT(rank_of[i], i);
	return crosses;
}

/* The edges of a grid; returns their number. */
static size_t grid(struct px_edge *e, int ndims, const int *dims, int periodic)
{
	int n = 1, inner;
	size_t k = 0;

	for (int d = 0; d < ndims; d++)
		n *= dims[d];
	inner = n;
	for (int d = 0; d < ndims; d++) {
		inner /= dims[d];
		for (int v = 0; v < n; v++) {
			if (v / inner % dims[d] < dims[d] - 1)
				e[k++] = (struct px_edge){ v, v + inner, 1 };
			else if (periodic && dims[d] > 1)
				e[k++] = (struct px_edge){ v, v - (dims[d] - 1) * inner, 1 };
		}
	}
	return k;
}

TEST(grids_cross_as_little_as_is_known)
{
	static const struct {
		int ndims, dims[3], periodic, nparts, of[4], interleaved, best;
	} row[] = {
		{ 1, { 8 }, 0, 2, { 4, 4 }, 0, 1 }, { 1, { 8 }, 1, 2, { 4, 4 }, 1, 2 },
		{ 1, { 12 }, 1, 3, { 3, 7, 2 }, 1, 3 }, { 2, { 2, 4 }, 0, 2, { 4, 4 }, 0, 2 },
		{ 2, { 4, 4 }, 0, 2, { 8, 8 }, 1, 4 }, { 2, { 4, 4 }, 0, 3, { 4, 8, 4 }, 1, 8 },
		{ 2, { 2, 8 }, 1, 2, { 8, 8 }, 0, 4 }, { 2, { 4, 8 }, 0, 4, { 8, 8, 8, 8 }, 1, 12 },
		{ 3, { 2, 2, 4 }, 0, 2, { 8, 8 }, 0, 4 },
		{ 2, { 2, 3 }, 0, 3, { 3, 6, 3 }, 0,
			0 }, /* more ranks than places: one site has room for all */
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct px_edge e[4 * MOST];
		int part[MOST], left[4], size = 0, n = 1;
		struct px_places p = { .nparts = row[i].nparts, .part = part, .edge = e };

		for (int s = 0; s < p.nparts; s++)
			size += left[s] = row[i].of[s];
		for (int r = 0, s = 0; r < size; r++, s = row[i].interleaved ? (s + 1) % p.nparts : s) {
			while (left[s] == 0)
				s = (s + 1) % p.nparts;
			left[s]--;
			part[r] = s;
		}
		for (int d = 0; d < row[i].ndims; d++)
			n *= row[i].dims[d];
		p.size = size;
		p.n = n;
		p.ndims = row[i].ndims;
		p.dims = row[i].dims;
		p.nedges = grid(e, p.ndims, p.dims, row[i].periodic);
		CHECK_INT(placed(&p), row[i].best);
	}
}

/* The least that can cross, by trying every way. */
static long long least(const struct px_places *p, int i, int *rank_of, int *used)
{
	long long best = INT64_MAX;

	if (i == p->n)
		return px_place_crossing(p, rank_of);
	for (int r = 0; r < p->size; r++) {
		long long x;

		if (used[r])
			continue;
		used[r] = 1;
		rank_of[i] = r;
		x = least(p, i + 1, rank_of, used);
		best = x < best ? x : best;
		used[r] = 0;
	}
	return best;
}

TEST(small_graphs_come_close_to_the_best_of_all_ways)
{
	uint32_t seed = 1;
	long long sum = 0, sum_least = 0;

	for (int round = 0; round < 60; round++) {
		struct px_edge e[16];
		int part[7], rank_of[7], used[7] = { 0 };
		struct px_places p = { .size = 7, .nparts = 2 + round % 2, .part = part, .edge = e };

		p.n = 7 - round % 3;
		p.nedges = 4 + (size_t)round % 12;
		for (int r = 0; r < p.size; r++)
			part[r] = (int)((seed = seed * 1103515245 + 12345) >> 16) % p.nparts;
		for (size_t i = 0; i < p.nedges; i++) {
			e[i].from = (int)((seed = seed * 1103515245 + 12345) >> 16) % p.n;
			e[i].to = (int)((seed = seed * 1103515245 + 12345) >> 16) % p.n;
			e[i].weight = (int)((seed = seed * 1103515245 + 12345) >> 16) % 100;
		}
		sum += placed(&p);
		sum_least += least(&p, 0, rank_of, used);
	}
	CHECK(sum <= sum_least + sum_least / 10);
	CHECK(sum >= sum_least);
}

TEST(a_large_ring_is_unrolled)
{
	enum { N = 100000 };
	struct px_edge *e = calloc(N, sizeof *e);
	int *part = calloc(N, sizeof *part), *rank_of = calloc(N, sizeof *rank_of);
	struct px_places p = { .size = N, .nparts = 50, .part = part, .n = N, .edge = e, .nedges = N };

	for (int i = 0; i < N; i++) { /* a ring, whose neighbours are far apart in number */
		part[i] = i % 50;
		e[i] = (struct px_edge){ (int)(i * 7LL % N), (int)((i + 1) * 7LL % N), 1 };
	}
	CHECK(px_place(&p, rank_of));
	CHECK(px_place_crossing(&p, rank_of) <=
		102); /* grown both ways from its beginning, pieces have four ends */
	free(e);
	free(part);
	free(rank_of);
}
