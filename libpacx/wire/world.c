/* world.c: see world.h and PROTOCOL.md, section 8.
 *
 *   0 protocol (2)  2 nsites (2)  4 self (2)  6 files (2)  8 nranks (4)  12 per site: length (2), hello
 *   and, unless it says nothing, per site: group (2), uplink (8)
 */
#include "world.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "endian.h"
#include "err.h"
#include "frame.h"

#define FIXED 12
#define SHAPE 10 /* of a site, behind the hellos */

struct px_world *px_world_new(int nsites, int self, const struct px_hello *hellos)
{
	struct px_world *w;

	if (nsites < 1 || nsites > UINT16_MAX || self < 0 || self >= nsites)
		return NULL;
	w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->nsites = nsites;
	w->self = self;
	w->site = malloc((size_t)nsites * sizeof *w->site);
	w->base = malloc(((size_t)nsites + 1) * sizeof *w->base);
	w->group = malloc((size_t)nsites * sizeof *w->group);
	w->uplink = calloc((size_t)nsites, sizeof *w->uplink);
	if (!w->site || !w->base || !w->group || !w->uplink)
		goto fail;
	memcpy(w->site, hellos, (size_t)nsites * sizeof *w->site);
	w->base[0] = 0;
	for (int i = 0; i < nsites; i++) {
		w->group[i] = i;
		if (hellos[i].nranks > (uint32_t)(INT_MAX - w->base[i]))
			goto fail;
		w->base[i + 1] = w->base[i] + (int)hellos[i].nranks;
	}
	w->nranks = w->base[nsites];
	return w;
fail:
	px_world_free(w);
	return NULL;
}

void px_world_free(struct px_world *w)
{
	if (!w)
		return;
	free(w->base);
	free(w->site);
	free(w->group);
	free(w->uplink);
	free(w);
}

int px_world_site(const struct px_world *w, int grank)
{
	int low = 0, high = w->nsites - 1;

	if (grank < 0 || grank >= w->nranks)
		return -1;
	/* The last site whose base is <= grank. */
	while (low < high) {
		int mid = (low + high + 1) / 2;

		if (w->base[mid] <= grank)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

int px_world_grow(struct px_world *w, int site, int base, int n, int like)
{
	int nsites = site < w->nsites ? w->nsites : site + 1;
	struct px_hello *sites = malloc((size_t)nsites * sizeof *sites);
	int *bases = malloc(((size_t)nsites + 1) * sizeof *bases);
	int *groups = malloc((size_t)nsites * sizeof *groups);
	uint64_t *uplinks = calloc((size_t)nsites, sizeof *uplinks);

	if (!sites || !bases || !groups || !uplinks) {
		free(sites);
		free(bases);
		free(groups);
		free(uplinks);
		return PX_ENOMEM;
	}
	memcpy(sites, w->site, (size_t)w->nsites * sizeof *sites);
	memcpy(bases, w->base, ((size_t)w->nsites + 1) * sizeof *bases);
	memcpy(groups, w->group, (size_t)w->nsites * sizeof *groups);
	memcpy(uplinks, w->uplink, (size_t)w->nsites * sizeof *uplinks);
	for (int i = w->nsites; i < nsites; i++) {
		sites[i] = w->site[like];
		bases[i + 1] = base; /* ranks between: of sites that we know nothing of */
		groups[i] = i;
	}
	sites[site] = w->site[like];
	sites[site].nranks = (uint32_t)n;
	bases[site] = base;
	bases[site + 1] = base + n;
	groups[site] = w->group[like];
	w->site = sites; /* the old ones stay: others point into them */
	w->base = bases;
	w->group = groups;
	w->uplink = uplinks;
	w->nsites = nsites;
	w->nranks = bases[nsites];
	return 0;
}

static bool has_shape(const struct px_world *w)
{
	bool has = false;

	for (int i = 0; i < w->nsites; i++)
		has = has || w->group[i] != i || w->uplink[i] != 0;
	return has;
}

static void shape_put(const struct px_world *w, uint8_t *out)
{
	for (int i = 0; i < w->nsites; i++, out += SHAPE) {
		px_put16(out, (uint16_t)w->group[i]);
		px_put64(out + 2, w->uplink[i]);
	}
}

/* What is behind the hellos; false: it is not as it must be. */
static bool shape_get(struct px_world *w, const uint8_t *in)
{
	for (int i = 0; i < w->nsites; i++, in += SHAPE) {
		w->group[i] = px_get16(in);
		w->uplink[i] = px_get64(in + 2);
		if (w->group[i] > i || w->group[w->group[i]] != w->group[i])
			return false;
	}
	return has_shape(w);
}

long px_world_put(const struct px_world *w, uint8_t *out, size_t cap)
{
	uint8_t hello[PX_HELLO_MAX];
	size_t at = FIXED;

	if ((out && cap < FIXED) || w->files < 0 || w->files >= PX_WORLD_FILES_SITE + w->nsites)
		return PX_EINVAL;
	for (int i = 0; i < w->nsites; i++) {
		int n = px_hello_put(&w->site[i], hello, sizeof hello);

		if (n < 0)
			return n;
		if (w->site[i].protocol != PX_PROTOCOL_VERSION || w->site[i].site != i ||
			w->site[i].nsites != w->nsites)
			return PX_EINVAL;
		if (out) {
			if (cap - at < 2 + (size_t)n)
				return PX_EINVAL;
			px_put16(out + at, (uint16_t)n);
			memcpy(out + at + 2, hello, (size_t)n);
		}
		at += 2 + (size_t)n;
		if (at > PX_CONTROL_MAX)
			return PX_EINVAL;
	}
	if (has_shape(w)) {
		size_t n = SHAPE * (size_t)w->nsites;

		if (at + n > PX_CONTROL_MAX || (out && cap - at < n))
			return PX_EINVAL;
		if (out)
			shape_put(w, out + at);
		at += n;
	}
	if (out) {
		px_put16(out, PX_PROTOCOL_VERSION);
		px_put16(out + 2, (uint16_t)w->nsites);
		px_put16(out + 4, (uint16_t)w->self);
		px_put16(out + 6, (uint16_t)w->files);
		px_put32(out + 8, (uint32_t)w->nranks);
	}
	return (long)at;
}

static uint64_t ranks_of_all(const struct px_hello *hellos, int nsites)
{
	uint64_t sum = 0;

	for (int i = 0; i < nsites; i++)
		sum += hellos[i].nranks;
	return sum;
}

int px_world_get(const uint8_t *in, size_t len, struct px_world **w)
{
	struct px_hello *hellos = NULL;
	struct px_world *got = NULL;
	size_t at = FIXED;
	uint64_t sum;
	int nsites, self, rc;

	if (len < FIXED)
		return PX_ESHORT;
	if (px_get16(in) != PX_PROTOCOL_VERSION)
		return PX_EVERSION;
	nsites = px_get16(in + 2);
	self = px_get16(in + 4);
	if (len > PX_CONTROL_MAX || nsites < 1 || self >= nsites ||
		px_get16(in + 6) >= PX_WORLD_FILES_SITE + nsites)
		return PX_EPROTO;
	/* The smallest hello bounds the number of sites by what is there, before memory is asked for. */
	if ((len - FIXED) / 2 < (size_t)nsites)
		return PX_ESHORT;
	hellos = calloc((size_t)nsites, sizeof *hellos);
	if (!hellos)
		return PX_ENOMEM;
	for (int i = 0; i < nsites; i++) {
		size_t n;

		rc = PX_ESHORT;
		if (len - at < 2)
			goto out;
		n = px_get16(in + at);
		at += 2;
		if (len - at < n)
			goto out;
		rc = px_hello_get(in + at, n, &hellos[i]);
		if (rc == PX_ESHORT)
			rc = PX_EPROTO; /* it is all there, but says it is longer */
		if (rc < 0)
			goto out;
		at += n;
		rc = PX_EPROTO;
		if (hellos[i].site != i || hellos[i].nsites != nsites)
			goto out;
	}
	rc = PX_EPROTO;
	/* Summed here as well: px_world_new cannot say whether memory was short or the ranks too many. */
	sum = ranks_of_all(hellos, nsites);
	if ((at != len && len - at != SHAPE * (size_t)nsites) || sum > INT_MAX || sum != px_get32(in + 8))
		goto out;
	got = px_world_new(nsites, self, hellos);
	rc = !got ? PX_ENOMEM : at != len && !shape_get(got, in + at) ? PX_EPROTO : 0;
	if (rc < 0) {
		px_world_free(got);
		goto out;
	}
	got->files = px_get16(in + 6);
	*w = got;
out:
	free(hellos);
	return rc;
}
