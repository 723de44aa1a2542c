/* group.c: see group.h. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "comm.h"
#include "inter.h"
#include "map.h"
#include "raise.h"
#include "state.h"

struct list {
	int n;
	int rank[];
};

static struct px_map *spanning;               /* token -> struct list */
static MPI_Group apps_group = MPI_GROUP_NULL; /* the application ranks of this site */

static uint64_t group_key(MPI_Group g)
{
	return (uint64_t)(uintptr_t)g;
}

static struct list *find(MPI_Group g)
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

int px_group_new(int size, const int *grank, MPI_Group *group)
{
	struct list *l;
	MPI_Group all;
	int zero = 0, rc;
	bool outside = false;

	for (int i = 0; i < size; i++)
		outside |= !px_is_local(grank[i]);
	if (!outside)
		return native_part(size, grank, group);
	l = malloc(sizeof *l + (size_t)size * sizeof *l->rank);
	if (!l || (!spanning && !(spanning = px_map_new()))) {
		free(l);
		return MPI_ERR_NO_MEM;
	}
	l->n = size;
	memcpy(l->rank, grank, (size_t)size * sizeof *grank);
	rc = apps(&all);
	if (rc == MPI_SUCCESS)
		rc = px_n.Group_incl(all, 1, &zero, group);
	if (rc == MPI_SUCCESS && px_map_put(spanning, group_key(*group), l) < 0)
		rc = MPI_ERR_NO_MEM;
	if (rc != MPI_SUCCESS)
		free(l);
	return rc;
}

int px_group_list(MPI_Group group, int *size, int **grank)
{
	struct list *l = find(group);
	int n, rc, *from = NULL, *to = NULL;
	MPI_Group all;

	if (l) {
		to = malloc((size_t)(l->n + 1) * sizeof *to);
		if (!to)
			return MPI_ERR_NO_MEM;
		memcpy(to, l->rank, (size_t)l->n * sizeof *to);
		*size = l->n;
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

int px_Comm_group(struct px_comm *c, MPI_Group *group)
{
	struct px_side near = { 0, c->size };
	int rc;

	if (c->inter)
		near = px_inter_local(c);
	rc = px_group_new(near.hi - near.lo, (c->inter ? c->inter->all : c)->grank + near.lo, group);
	return rc == MPI_SUCCESS ? rc : px_raise_as(c, rc, NULL);
}

int px_Comm_remote_group(struct px_comm *c, MPI_Group *out)
{
	int rc;

	*out = MPI_GROUP_NULL;
	if (!c->inter)
		return px_raise(c, MPI_ERR_COMM, "the communicator is not an intercommunicator");
	rc = px_group_new(c->size, c->grank, out);
	return rc == MPI_SUCCESS ? rc : px_raise_as(c, rc, NULL);
}

int px_Group_size(MPI_Group group, int *size)
{
	struct list *l = find(group);

	if (!l)
		return px_n.Group_size(group, size);
	*size = l->n;
	return MPI_SUCCESS;
}

static int position(const int *rank, int n, int grank)
{
	for (int i = 0; i < n; i++)
		if (rank[i] == grank)
			return i;
	return MPI_UNDEFINED;
}

int px_Group_rank(MPI_Group group, int *rank)
{
	struct list *l = find(group);

	if (!l)
		return px_n.Group_rank(group, rank);
	*rank = position(l->rank, l->n, px.grank);
	return MPI_SUCCESS;
}

int px_Group_free(MPI_Group *group)
{
	if (spanning && *group != MPI_GROUP_NULL)
		free(px_map_del(spanning, group_key(*group)));
	return px_n.Group_free(group);
}

/* Two groups as lists; both are freed by pair_free. */
struct pair {
	int na, nb;
	int *a, *b;
};

static int pair_get(MPI_Group a, MPI_Group b, struct pair *p)
{
	int rc;

	memset(p, 0, sizeof *p);
	rc = px_group_list(a, &p->na, &p->a);
	if (rc == MPI_SUCCESS)
		rc = px_group_list(b, &p->nb, &p->b);
	if (rc != MPI_SUCCESS) {
		free(p->a);
		return raise_group(rc);
	}
	return MPI_SUCCESS;
}

static void pair_free(struct pair *p)
{
	free(p->a);
	free(p->b);
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
	*result = p.na == p.nb ? MPI_IDENT : MPI_UNEQUAL;
	for (int i = 0; i < p.na && *result != MPI_UNEQUAL; i++) {
		if (position(p.b, p.nb, p.a[i]) == MPI_UNDEFINED)
			*result = MPI_UNEQUAL;
		else if (p.a[i] != p.b[i])
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
		else if (ranks[i] < 0 || ranks[i] >= p.na)
			rc = raise_group(MPI_ERR_RANK);
		else
			out[i] = position(p.b, p.nb, p.a[ranks[i]]);
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
	r = malloc((size_t)(p.na + p.nb + 1) * sizeof *r);
	if (!r)
		rc = MPI_ERR_NO_MEM;
	for (int i = 0; r && i < p.na; i++) {
		bool both = position(p.b, p.nb, p.a[i]) != MPI_UNDEFINED;

		if (what == UNION || both == (what == INTERSECTION))
			r[n++] = p.a[i];
	}
	for (int i = 0; r && what == UNION && i < p.nb; i++)
		if (position(p.a, p.na, p.b[i]) == MPI_UNDEFINED)
			r[n++] = p.b[i];
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
static int select_from(const struct list *l, int n, const int pos[], bool others, MPI_Group *out)
{
	int *r = malloc((size_t)(l->n + 1) * sizeof *r);
	bool *hit = calloc((size_t)l->n + 1, sizeof *hit);
	int rc = r && hit ? MPI_SUCCESS : MPI_ERR_NO_MEM, k = 0;

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		if (pos[i] < 0 || pos[i] >= l->n || hit[pos[i]])
			rc = MPI_ERR_RANK;
		else
			hit[pos[i]] = true;
	}
	if (rc == MPI_SUCCESS) {
		for (int i = 0; others ? i < l->n : i < n; i++) {
			if (!others)
				r[k++] = l->rank[pos[i]];
			else if (!hit[i])
				r[k++] = l->rank[i];
		}
		rc = px_group_new(k, r, out);
	}
	free(r);
	free(hit);
	return rc == MPI_SUCCESS ? rc : raise_group(rc);
}

int px_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *out)
{
	struct list *l = find(group);

	return l ? select_from(l, n, ranks, false, out) : px_n.Group_incl(group, n, ranks, out);
}

int px_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *out)
{
	struct list *l = find(group);

	return l ? select_from(l, n, ranks, true, out) : px_n.Group_excl(group, n, ranks, out);
}

/* Ranges (first, last, stride) written out. */
static int ranges(const struct list *l, int n, int range[][3], bool others, MPI_Group *out)
{
	int *pos = malloc((size_t)(l->n + 1) * sizeof *pos);
	int k = 0, rc = pos ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		int first = range[i][0], last = range[i][1], step = range[i][2];

		if (step == 0) {
			rc = MPI_ERR_ARG;
			break;
		}
		for (int r = first; step > 0 ? r <= last : r >= last; r += step) {
			if (k == l->n) {
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
	struct list *l = find(group);

	return l ? ranges(l, n, range, false, out) : px_n.Group_range_incl(group, n, range, out);
}

int px_Group_range_excl(MPI_Group group, int n, int range[][3], MPI_Group *out)
{
	struct list *l = find(group);

	return l ? ranges(l, n, range, true, out) : px_n.Group_range_excl(group, n, range, out);
}
