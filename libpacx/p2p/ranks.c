/* ranks.c: see ranks.h. */
#include "ranks.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 8 /* runs of a part that are looked through one by one */

static struct px_ranks *lists; /* all that live, by next */

/* How many members from position i on make one run; *stride between them. */
static int run_length(const struct px_world *w, int size, const int *grank, int i, int *stride)
{
	int site = px_world_site(w, grank[i]), n = 1;

	*stride = 0;
	if (i + 1 == size || px_world_site(w, grank[i + 1]) != site)
		return 1;
	*stride = site < 0 ? 0 : grank[i + 1] - grank[i];
	while (i + n < size && px_world_site(w, grank[i + n]) == site &&
		(site < 0 || grank[i + n] - grank[i + n - 1] == *stride))
		n++;
	return n;
}

static int runs_make(struct px_ranks *l, const int *grank)
{
	int stride, n = 0;

	for (int i = 0; i < l->size; i += run_length(l->world, l->size, grank, i, &stride))
		n++;
	l->run = calloc((size_t)n + 1, sizeof *l->run);
	if (!l->run)
		return -1;
	for (int i = 0; i < l->size;) {
		struct px_ranks_run *r = &l->run[l->nruns++];

		r->pos = i;
		r->count = run_length(l->world, l->size, grank, i, &r->stride);
		r->grank = px_world_site(l->world, grank[i]) < 0 ? -1 : grank[i];
		i += r->count;
	}
	return 0;
}

/* The sites with members, and which runs are whose. */
static int parts_make(struct px_ranks *l)
{
	int nsites = l->world->nsites, *part_of = malloc((size_t)nsites * sizeof *part_of), at = 0;

	l->of = malloc(((size_t)l->nruns + 1) * sizeof *l->of);
	if (!part_of || !l->of) {
		free(part_of);
		return -1;
	}
	for (int s = 0; s < nsites; s++)
		part_of[s] = -1;
	for (int k = 0; k < l->nruns; k++)
		if (l->run[k].grank >= 0)
			part_of[px_world_site(l->world, l->run[k].grank)] = 0;
	for (int s = 0; s < nsites; s++)
		if (part_of[s] == 0)
			part_of[s] = l->nparts++;
	l->part = calloc((size_t)l->nparts + 1, sizeof *l->part);
	for (int s = 0; l->part && s < nsites; s++)
		if (part_of[s] >= 0)
			l->part[part_of[s]] = (struct px_ranks_part){ .site = s, .low = INT_MAX };
	for (int k = 0; l->part && k < l->nruns; k++) {
		struct px_ranks_run *r = &l->run[k];

		r->part = r->grank < 0 ? -1 : part_of[px_world_site(l->world, r->grank)];
		if (r->part >= 0)
			l->part[r->part].nruns++;
	}
	free(part_of);
	if (!l->part)
		return -1;
	for (int p = 0; p < l->nparts; p++) {
		l->part[p].first = at;
		at += l->part[p].nruns;
		l->part[p].nruns = 0;
	}
	return 0;
}

/* What is known of each part when its runs are counted together, in order. */
static void parts_fill(struct px_ranks *l)
{
	l->blocked = true;
	for (int k = 0; k < l->nruns; k++) {
		struct px_ranks_run *r = &l->run[k];
		struct px_ranks_part *p = r->part < 0 ? NULL : &l->part[r->part];
		int last = r->grank + (r->count - 1) * r->stride;

		l->blocked &= p && (k == 0 || r->part >= r[-1].part);
		if (!p)
			continue;
		r->before = p->count;
		p->count += r->count;
		l->of[p->first + p->nruns++] = k;
		p->low = r->grank < p->low ? r->grank : p->low;
		p->low = last < p->low ? last : p->low;
		p->high = r->grank > p->high ? r->grank : p->high;
		p->high = last > p->high ? last : p->high;
	}
}

/* Where a part has many runs its members are looked up in a table. */
static int tables_make(struct px_ranks *l)
{
	for (int q = 0; q < l->nparts; q++) {
		struct px_ranks_part *p = &l->part[q];
		size_t n = (size_t)(p->high - p->low) + 1;

		if (p->nruns <= RUNS_MAX)
			continue;
		p->at = malloc(n * sizeof *p->at);
		if (!p->at)
			return -1;
		memset(p->at, -1, n * sizeof *p->at);
		for (int k = p->nruns - 1; k >= 0; k--) {
			const struct px_ranks_run *r = &l->run[l->of[p->first + k]];

			for (int i = r->count - 1; i >= 0; i--)
				p->at[r->grank + i * r->stride - p->low] = r->pos + i;
		}
	}
	return 0;
}

static void list_free(struct px_ranks *l)
{
	for (int p = 0; l->part && p < l->nparts; p++)
		free(l->part[p].at);
	free(l->part);
	free(l->of);
	free(l->run);
	free(l);
}

/* The list with these runs that others have already, instead of l; or l itself, complete and known to others. */
static struct px_ranks *settle(struct px_ranks *l)
{
	if (parts_make(l) < 0)
		goto fail;
	parts_fill(l);
	for (struct px_ranks *k = lists; k; k = k->next)
		if (k->size == l->size && k->nruns == l->nruns && k->world == l->world &&
			memcmp(k->run, l->run, (size_t)l->nruns * sizeof *l->run) == 0) {
			list_free(l);
			return px_ranks_hold(k);
		}
	if (tables_make(l) < 0)
		goto fail;
	l->refs = 1;
	l->next = lists;
	lists = l;
	return l;
fail:
	list_free(l);
	return NULL;
}

static struct px_ranks *list_new(const struct px_world *w, int size)
{
	struct px_ranks *l = calloc(1, sizeof *l);

	if (l) {
		l->world = w;
		l->size = size;
	}
	return l;
}

struct px_ranks *px_ranks_new(const struct px_world *w, int size, const int *grank)
{
	struct px_ranks *l = list_new(w, size);

	if (l && runs_make(l, grank) < 0) {
		list_free(l);
		return NULL;
	}
	return l ? settle(l) : NULL;
}

struct px_ranks *px_ranks_world(const struct px_world *w)
{
	struct px_ranks *l = list_new(w, w->nranks);

	if (l)
		l->run = calloc((size_t)w->nsites + 1, sizeof *l->run);
	if (!l || !l->run) {
		free(l);
		return NULL;
	}
	for (int s = 0; s < w->nsites; s++) {
		int n = w->base[s + 1] - w->base[s];

		if (n > 0) /* as px_ranks_new would make it */
			l->run[l->nruns++] = (struct px_ranks_run){
				.pos = w->base[s], .count = n, .grank = w->base[s], .stride = n > 1
			};
	}
	return settle(l);
}

struct px_ranks *px_ranks_hold(struct px_ranks *l)
{
	l->refs++;
	return l;
}

void px_ranks_drop(struct px_ranks *l)
{
	struct px_ranks **at = &lists;

	if (!l || --l->refs > 0)
		return;
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	list_free(l);
}

static const struct px_ranks_part *part_at(const struct px_ranks *l, int site)
{
	int low = 0, high = l->nparts - 1;

	while (low < high) {
		int mid = (low + high) / 2;

		if (l->part[mid].site < site)
			low = mid + 1;
		else
			high = mid;
	}
	return high >= 0 && l->part[low].site == site ? &l->part[low] : NULL;
}

int px_ranks_find(const struct px_ranks *l, int grank)
{
	const struct px_ranks_part *p = grank < 0 ? NULL : part_at(l, px_world_site(l->world, grank));

	if (!p || grank < p->low || grank > p->high)
		return -1;
	if (p->at)
		return p->at[grank - p->low];
	for (int k = 0; k < p->nruns; k++) {
		const struct px_ranks_run *r = &l->run[l->of[p->first + k]];
		int away = grank - r->grank;

		if (away == 0)
			return r->pos;
		if (r->stride != 0 && away % r->stride == 0 && away / r->stride > 0 &&
			away / r->stride < r->count)
			return r->pos + away / r->stride;
	}
	return -1;
}

int px_ranks_member(const struct px_ranks *l, int part, int i)
{
	const int *of = l->of + l->part[part].first;
	int low = 0, high = l->part[part].nruns - 1;

	while (low < high) { /* the last run with before <= i */
		int mid = (low + high + 1) / 2;

		if (l->run[of[mid]].before <= i)
			low = mid;
		else
			high = mid - 1;
	}
	return l->run[of[low]].pos + (i - l->run[of[low]].before);
}

void px_ranks_write(const struct px_ranks *l, int from, int n, int *grank)
{
	const struct px_ranks_run *r = n > 0 ? px_ranks_run_of(l, from) : NULL;

	for (int i = 0; i < n; i++) {
		if (from + i >= r->pos + r->count)
			r++;
		grank[i] = r->grank + (from + i - r->pos) * r->stride;
	}
}

size_t px_ranks_bytes(const struct px_ranks *l)
{
	size_t n = sizeof *l + ((size_t)l->nruns + 1) * (sizeof *l->run + sizeof *l->of) +
		   ((size_t)l->nparts + 1) * sizeof *l->part;

	for (int p = 0; p < l->nparts; p++)
		if (l->part[p].at)
			n += ((size_t)(l->part[p].high - l->part[p].low) + 1) * sizeof(int);
	return n;
}
