/* group.c: see group.h. */
#include "group.h"

#include <stdlib.h>

#include "bind.h"
#include "comm.h"
#include "inter.h"
#include "map.h"
#include "raise.h"
#include "state.h"

static struct px_map *spanning;               /* token -> struct px_ranks */
static MPI_Group apps_group = MPI_GROUP_NULL; /* the application ranks of this site */

static uint64_t group_key(MPI_Group g)
{
	return (uint64_t)(uintptr_t)g;
}

static struct px_ranks *find(MPI_Group g)
{
	return spanning ? px_map_get(spanning, group_key(g)) : NULL;
}

static int apps(MPI_Group *g)
{
	int rc = MPI_SUCCESS;

	if (apps_group == MPI_GROUP_NULL)
		rc = px_n.Comm_group(px.map.apps, &apps_group);
	*g = apps_group;
	return rc;
}

/* The members at this site, in group order. */
static int native_part(int size, const int *grank, MPI_Group *native)
{
	int *local = malloc((size_t)(size + 1) * sizeof *local);
	MPI_Group all;
	int n = 0, rc;

	if (!local)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < size; i++)
		if (grank[i] >= 0 && px_is_local(grank[i]))
			local[n++] = grank[i] - px.world->base[px.site];
	rc = apps(&all);
	if (rc == MPI_SUCCESS)
		rc = px_n.Group_incl(all, n, local, native);
	free(local);
	return rc;
}

/* Is everybody at this site? */
static bool here(const struct px_ranks *l)
{
	return l->size == 0 || (l->part[0].site == px.site && l->part[0].count == l->size);
}

int px_group_of(struct px_ranks *l, MPI_Group *group)
{
	MPI_Group all;
	int zero = 0, rc;

	if (here(l)) {
		int *grank = malloc(((size_t)l->size + 1) * sizeof *grank);

		if (!grank)
			return MPI_ERR_NO_MEM;
		px_ranks_write(l, 0, l->size, grank);
		rc = native_part(l->size, grank, group);
		free(grank);
		return rc;
	}
	if (!spanning && !(spanning = px_map_new()))
		return MPI_ERR_NO_MEM;
	rc = apps(&all);
	if (rc == MPI_SUCCESS)
		rc = px_n.Group_incl(all, 1, &zero, group);
	if (rc == MPI_SUCCESS && px_map_put(spanning, group_key(*group), l) < 0)
		rc = MPI_ERR_NO_MEM;
	if (rc == MPI_SUCCESS)
		px_ranks_hold(l);
	return rc;
}

bool px_group_spans(MPI_Group g)
{
	bool spans;

	if (!px_active)
		return false;
	px_lock();
	spans = find(g) != NULL;
	px_unlock();
	return spans;
}

int px_group_new(int size, const int *grank, MPI_Group *group)
{
	struct px_ranks *l = px_ranks_new(px.world, size, grank);
	int rc = l ? px_group_of(l, group) : MPI_ERR_NO_MEM;

	px_ranks_drop(l);
	return rc;
}

int px_group_list(MPI_Group group, int *size, int **grank)
{
	struct px_ranks *l = find(group);
	int n, rc, *from = NULL, *to = NULL;
	MPI_Group all;

	if (l) {
		to = malloc((size_t)(l->size + 1) * sizeof *to);
		if (!to)
			return MPI_ERR_NO_MEM;
		px_ranks_write(l, 0, l->size, to);
		*size = l->size;
		*grank = to;
		return MPI_SUCCESS;
	}
	rc = px_n.Group_size(group, &n);
	if (rc == MPI_SUCCESS)
		rc = apps(&all);
	if (rc != MPI_SUCCESS)
		return rc;
	from = malloc((size_t)(n + 1) * sizeof *from);
	to = malloc((size_t)(n + 1) * sizeof *to);
	if (!from || !to) {
		rc = MPI_ERR_NO_MEM;
		goto fail;
	}
	for (int i = 0; i < n; i++)
		from[i] = i;
	if (n > 0)
		rc = px_n.Group_translate_ranks(group, n, from, all, to);
	if (rc != MPI_SUCCESS)
		goto fail;
	for (int i = 0; i < n; i++)
		to[i] = to[i] == MPI_UNDEFINED ? -1 : to[i] + px.world->base[px.site];
	free(from);
	*size = n;
	*grank = to;
	return MPI_SUCCESS;
fail:
	free(from);
	free(to);
	return rc;
}

/* Errors of group functions go to MPI_COMM_WORLD's handler. */
static int raise_group(int rc)
{
	return px_raise_as(NULL, rc, NULL);
}

/* Positions side.lo .. side.hi - 1 of c's list as a group. */
static int group_of_side(struct px_comm *c, struct px_side side, MPI_Group *group)
{
	int n = side.hi - side.lo, rc = MPI_ERR_NO_MEM, *grank;

	if (n == c->ranks->size)
		return px_group_of(c->ranks, group);
	grank = malloc(((size_t)n + 1) * sizeof *grank);
	if (grank) {
		px_ranks_write(c->ranks, side.lo, n, grank);
		rc = px_group_new(n, grank, group);
	}
	free(grank);
	return rc;
}

int px_Comm_group(struct px_comm *c, MPI_Group *group)
{
	int rc = group_of_side(c, c->inter ? px_inter_local(c) : (struct px_side){ 0, c->size }, group);

	return rc == MPI_SUCCESS ? rc : px_raise_as(c, rc, NULL);
}

int px_Comm_remote_group(struct px_comm *c, MPI_Group *out)
{
	int rc;

	*out = MPI_GROUP_NULL;
	if (!c->inter)
		return px_raise(c, MPI_ERR_COMM, "the communicator is not an intercommunicator");
	rc = group_of_side(c, px_inter_remote(c), out);
	return rc == MPI_SUCCESS ? rc : px_raise_as(c, rc, NULL);
}

int px_Group_size(MPI_Group group, int *size)
{
	struct px_ranks *l = find(group);

	if (!l)
		return px_n.Group_size(group, size);
	*size = l->size;
	return MPI_SUCCESS;
}

static int position(const struct px_ranks *l, int grank)
{
	int r = px_ranks_find(l, grank);

	return r < 0 ? MPI_UNDEFINED : r;
}

int px_Group_rank(MPI_Group group, int *rank)
{
	struct px_ranks *l = find(group);

	if (!l)
		return px_n.Group_rank(group, rank);
	*rank = position(l, px.grank);
	return MPI_SUCCESS;
}

int px_Group_free(MPI_Group *group)
{
	if (spanning && *group != MPI_GROUP_NULL)
		px_ranks_drop(px_map_del(spanning, group_key(*group)));
	return px_n.Group_free(group);
}

/* Two groups as lists; both are dropped by pair_free. */
struct pair {
	struct px_ranks *a, *b;
};

/* The list of any group; NULL: *rc says why. */
static struct px_ranks *list_of(MPI_Group group, int *rc)
{
	struct px_ranks *l = find(group);
	int n, *grank;

	if (l)
		return px_ranks_hold(l);
	*rc = px_group_list(group, &n, &grank);
	if (*rc != MPI_SUCCESS)
		return NULL;
	l = px_ranks_new(px.world, n, grank);
	free(grank);
	if (!l)
		*rc = MPI_ERR_NO_MEM;
	return l;
}

static void pair_free(struct pair *p)
{
	px_ranks_drop(p->a);
	px_ranks_drop(p->b);
}

static int pair_get(MPI_Group a, MPI_Group b, struct pair *p)
{
	int rc = MPI_SUCCESS;

	p->b = NULL;
	p->a = list_of(a, &rc);
	if (p->a)
		p->b = list_of(b, &rc);
	if (p->b)
		return MPI_SUCCESS;
	pair_free(p);
	return raise_group(rc);
}

int px_Group_compare(MPI_Group a, MPI_Group b, int *result)
{
	struct pair p;
	int rc;

	if (!find(a) && !find(b))
		return px_n.Group_compare(a, b, result);
	rc = pair_get(a, b, &p);
	if (rc != MPI_SUCCESS)
		return rc;
	*result = p.a->size == p.b->size ? MPI_IDENT : MPI_UNEQUAL;
	for (int i = 0; p.a != p.b && i < p.a->size && *result != MPI_UNEQUAL; i++) {
		int r = px_ranks_find(p.b, px_ranks_at(p.a, i));

		if (r < 0)
			*result = MPI_UNEQUAL;
		else if (r != i)
			*result = MPI_SIMILAR;
	}
	pair_free(&p);
	return MPI_SUCCESS;
}

int px_Group_translate_ranks(MPI_Group a, int n, const int ranks[], MPI_Group b, int out[])
{
	struct pair p;
	int rc;

	if (!find(a) && !find(b))
		return px_n.Group_translate_ranks(a, n, ranks, b, out);
	rc = pair_get(a, b, &p);
	if (rc != MPI_SUCCESS)
		return rc;
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		if (ranks[i] == MPI_PROC_NULL)
			out[i] = MPI_PROC_NULL;
		else if (ranks[i] < 0 || ranks[i] >= p.a->size)
			rc = raise_group(MPI_ERR_RANK);
		else
			out[i] = position(p.b, px_ranks_at(p.a, ranks[i]));
	}
	pair_free(&p);
	return rc;
}

enum set { UNION, INTERSECTION, DIFFERENCE };

static int combine(MPI_Group a, MPI_Group b, MPI_Group *out, enum set what)
{
	struct pair p;
	int rc = pair_get(a, b, &p), n = 0;
	int *r;

	if (rc != MPI_SUCCESS)
		return rc;
	r = malloc((size_t)(p.a->size + p.b->size + 1) * sizeof *r);
	if (!r)
		rc = MPI_ERR_NO_MEM;
	for (int i = 0; r && i < p.a->size; i++) {
		int g = px_ranks_at(p.a, i);

		if (what == UNION || (px_ranks_find(p.b, g) >= 0) == (what == INTERSECTION))
			r[n++] = g;
	}
	for (int i = 0; r && what == UNION && i < p.b->size; i++) {
		int g = px_ranks_at(p.b, i);

		if (px_ranks_find(p.a, g) < 0)
			r[n++] = g;
	}
	if (r)
		rc = px_group_new(n, r, out);
	free(r);
	pair_free(&p);
	return rc == MPI_SUCCESS ? rc : raise_group(rc);
}

int px_Group_union(MPI_Group a, MPI_Group b, MPI_Group *out)
{
	return !find(a) && !find(b) ? px_n.Group_union(a, b, out) : combine(a, b, out, UNION);
}

int px_Group_intersection(MPI_Group a, MPI_Group b, MPI_Group *out)
{
	return !find(a) && !find(b) ? px_n.Group_intersection(a, b, out) : combine(a, b, out, INTERSECTION);
}

int px_Group_difference(MPI_Group a, MPI_Group b, MPI_Group *out)
{
	return !find(a) && !find(b) ? px_n.Group_difference(a, b, out) : combine(a, b, out, DIFFERENCE);
}

/* The group of l's members at positions pos[0..n), or of all others. */
static int select_from(const struct px_ranks *l, int n, const int pos[], bool others, MPI_Group *out)
{
	int *r = malloc((size_t)(l->size + 1) * sizeof *r);
	bool *hit = calloc((size_t)l->size + 1, sizeof *hit);
	int rc = r && hit ? MPI_SUCCESS : MPI_ERR_NO_MEM, k = 0;

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		if (pos[i] < 0 || pos[i] >= l->size || hit[pos[i]])
			rc = MPI_ERR_RANK;
		else
			hit[pos[i]] = true;
	}
	if (rc == MPI_SUCCESS) {
		for (int i = 0; others ? i < l->size : i < n; i++) {
			if (!others)
				r[k++] = px_ranks_at(l, pos[i]);
			else if (!hit[i])
				r[k++] = px_ranks_at(l, i);
		}
		rc = px_group_new(k, r, out);
	}
	free(r);
	free(hit);
	return rc == MPI_SUCCESS ? rc : raise_group(rc);
}

int px_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *out)
{
	struct px_ranks *l = find(group);

	return l ? select_from(l, n, ranks, false, out) : px_n.Group_incl(group, n, ranks, out);
}

int px_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *out)
{
	struct px_ranks *l = find(group);

	return l ? select_from(l, n, ranks, true, out) : px_n.Group_excl(group, n, ranks, out);
}

/* Ranges (first, last, stride) written out. */
static int ranges(const struct px_ranks *l, int n, int range[][3], bool others, MPI_Group *out)
{
	int *pos = malloc((size_t)(l->size + 1) * sizeof *pos);
	int k = 0, rc = pos ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		int first = range[i][0], last = range[i][1], step = range[i][2];

		if (step == 0) {
			rc = MPI_ERR_ARG;
			break;
		}
		for (int r = first; step > 0 ? r <= last : r >= last; r += step) {
			if (k == l->size) {
				rc = MPI_ERR_RANK;
				break;
			}
			pos[k++] = r;
		}
	}
	rc = rc == MPI_SUCCESS ? select_from(l, k, pos, others, out) : raise_group(rc);
	free(pos);
	return rc;
}

int px_Group_range_incl(MPI_Group group, int n, int range[][3], MPI_Group *out)
{
	struct px_ranks *l = find(group);

	return l ? ranges(l, n, range, false, out) : px_n.Group_range_incl(group, n, range, out);
}

int px_Group_range_excl(MPI_Group group, int n, int range[][3], MPI_Group *out)
{
	struct px_ranks *l = find(group);

	return l ? ranges(l, n, range, true, out) : px_n.Group_range_excl(group, n, range, out);
}
