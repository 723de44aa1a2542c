/* ranks_test.c: lists of ranks against plain arrays: regular ones, none at all, and any. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "test.h"

static struct px_world *world(int nsites, int ranks)
{
	struct px_hello *h = calloc((size_t)nsites, sizeof *h);
	struct px_world *w;

	for (int i = 0; h && i < nsites; i++)
		h[i].nranks = (uint32_t)(ranks + i % 3);
	w = px_world_new(nsites, 0, h);
	free(h);
	return w;
}

/* Everything that can be asked of the list, against the array it was made of. */
static void same(const struct px_world *w, const struct px_ranks *l, int n, const int *g)
{
	int *of_site = calloc((size_t)w->nsites, sizeof *of_site), *out = calloc((size_t)n + 1, sizeof *out);
	int last = -1, parts = 0, bad = 0;
	bool blocked = true;

	CHECK_INT(l->size, n);
	px_ranks_write(l, 0, n, out);
	for (int i = 0; i < n; i++) {
		int s = px_world_site(w, g[i]);

		bad += px_ranks_at(l, i) != g[i] || out[i] != g[i];
		blocked = blocked && s >= 0 && s >= last;
		last = s;
		if (s < 0)
			continue;
		bad += px_ranks_find(l, g[i]) != i || px_ranks_nth(l, i) != of_site[s];
		bad += px_ranks_member(l, px_ranks_run_of(l, i)->part, of_site[s]++) != i;
		bad += l->part[px_ranks_run_of(l, i)->part].site != s;
	}
	CHECK_INT(bad, 0);
	CHECK_INT(l->blocked, blocked);
	for (int s = 0; s < w->nsites; s++)
		if (of_site[s] > 0)
			CHECK_INT(l->part[parts++].count, of_site[s]);
	CHECK_INT(l->nparts, parts);
	for (int r = -1; r <= w->nranks; r++) {
		bool in = false;

		for (int i = 0; i < n && !in; i++)
			in = r >= 0 && g[i] == r;
		CHECK(in == (px_ranks_find(l, r) >= 0));
	}
	free(of_site);
	free(out);
}

static void check(const struct px_world *w, int n, const int *g)
{
	struct px_ranks *l = px_ranks_new(w, n, g), *again = px_ranks_new(w, n, g);

	REQUIRE(l != NULL);
	CHECK(again == l);
	same(w, l, n, g);
	px_ranks_drop(again);
	px_ranks_drop(l);
}

TEST(a_list_says_what_its_array_says)
{
	struct px_world *w = world(5, 20);
	int g[200], n = 0;

	REQUIRE(w != NULL);
	check(w, 0, g);
	for (int r = w->nranks - 1; r >= 0; r--) /* backwards */
		g[n++] = r;
	check(w, n, g);
	for (int step = 2; step < 30; step++) {
		n = 0;
		for (int first = 0; first < step; first++) /* strides beside each other, and beyond sites */
			for (int r = first; r < w->nranks; r += step)
				g[n++] = r;
		check(w, n, g);
	}
	g[3] = g[7] = g[8] = -1; /* processes of another world */
	check(w, 20, g);
	px_world_free(w);
}

TEST(any_list_does)
{
	struct px_world *w = world(4, 30);
	unsigned seed = 1;
	int g[200];

	REQUIRE(w != NULL);
	for (int round = 0; round < 50; round++) {
		int n = w->nranks;

		for (int i = 0; i < n; i++)
			g[i] = i;
		for (int i = n - 1; i > 0; i--) {
			int k = rand_r(&seed) % (i + 1), was = g[i];

			g[i] = g[k];
			g[k] = was;
		}
		check(w, rand_r(&seed) % (n + 1), g);
	}
	px_world_free(w);
}

TEST(a_million_ranks_take_what_their_sites_take)
{
	struct px_world *w = world(64, 16384);
	int *g = w ? malloc((size_t)w->nranks * sizeof *g) : NULL, n = 0;
	struct px_ranks *all = w ? px_ranks_world(w) : NULL, *same_list, *odd;

	REQUIRE(g && all);
	for (int r = 0; r < w->nranks; r++)
		g[r] = r;
	same_list = px_ranks_new(w, w->nranks, g);
	CHECK(same_list == all);
	CHECK_INT(all->nruns, 64);
	CHECK(px_ranks_bytes(all) < 100 << 10);
	CHECK_INT(px_ranks_find(all, 777777), 777777);
	for (int r = 1; r < w->nranks; r += 2)
		g[n++] = r;
	odd = px_ranks_new(w, n, g);
	REQUIRE(odd != NULL);
	CHECK(px_ranks_bytes(odd) < 100 << 10);
	CHECK_INT(px_ranks_find(odd, 777777), 777777 / 2);
	CHECK_INT(px_ranks_find(odd, 777776), -1);
	px_ranks_drop(odd);
	px_ranks_drop(same_list);
	px_ranks_drop(all);
	free(g);
	px_world_free(w);
}
