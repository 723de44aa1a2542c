/* world.h: the world map: which sites make up the job and which global rank lives where.
 *
 * Built by each site's out-daemon from the hellos, in hostfile order, and handed to
 * every local rank. Global rank = ranks of the sites before + local rank.
 */
#ifndef PX_WORLD_H
#define PX_WORLD_H

#include "hello.h"

/* The hostfile's `files:`. */
enum px_world_files { PX_WORLD_FILES_SHARED, PX_WORLD_FILES_LOCAL, PX_WORLD_FILES_SITE };

struct px_world {
	int nsites;
	int self;              /* this site's index */
	int nranks;            /* application ranks of all sites */
	int files;             /* where MPI_File_open finds files: enum px_world_files, or that plus a site */
	struct px_hello *site; /* [nsites] */
	int *base;             /* [nsites + 1]: first global rank of a site; base[nsites] = nranks */
	int *group;            /* [nsites]: the first site of its group; itself where it is in none */
	uint64_t *uplink;      /* [nsites]: bytes/s in each direction that its links share, 0 = not known */
};

/* px_world_new: from hellos in site order (copied), without groups and uplinks. NULL when out of memory or nranks overflows. */
struct px_world *px_world_new(int nsites, int self, const struct px_hello *hellos);
void px_world_free(struct px_world *w);
/* px_world_site: site of a global rank; -1 when out of range. */
int px_world_site(const struct px_world *w, int grank);

/* px_world_grow: site `site`, behind those of the hostfile, has n ranks from `base` on, and is otherwise as site `like`. Sites before it that
 * have not been heard of stay without a name for their ranks. What pointed into the map still does. 0 or PX_ENOMEM. */
int px_world_grow(struct px_world *w, int site, int base, int n, int like);

/* px_world_put: encode; with out == NULL only the length is returned. Negative PX_E... on error. */
long px_world_put(const struct px_world *w, uint8_t *out, size_t cap);
/* px_world_get: decode into *w (new); 0 or PX_E... */
int px_world_get(const uint8_t *in, size_t len, struct px_world **w);

#endif
