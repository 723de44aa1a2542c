/* split_type.c: MPI_Comm_split_type of communicators that span sites.
 *
 * Design. What processes can share never reaches beyond a site, so each site's own MPI splits its members. But MPICH carries some hints out
 * only if all members give the same, of which a site sees its own; and its search for who shares a directory hangs where its first
 * member cannot make a file there. So the members compare these hints first, and a site's MPI gets none on which they differ. This is
 * one more exchange between sites for each call: no member knows what the others ask for, as some may be in no part (MPI_UNDEFINED).
 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "crc.h"
#include "schedule.h"
#include "state.h"
#include "vendor.h"

static const struct hint {
	const char *key;
	bool directory;
} hints[] = { { "nbhd_common_dirname", true }, { "network_topo", false } };
enum { N_HINTS = sizeof hints / sizeof *hints };

/* A number for what this member says; 0: nothing, or a directory where it cannot make files. */
static long long said(MPI_Info info, const struct hint *h)
{
	char value[MPI_MAX_INFO_VAL + 1] = "";
	int there = 0;

	if (info == MPI_INFO_NULL ||
		px_n.Info_get(info, h->key, MPI_MAX_INFO_VAL, value, &there) != MPI_SUCCESS || !there)
		return 0;
	if (h->directory && access(value, W_OK | X_OK) != 0)
		return 0;
	return 1 + (long long)px_crc32c(0, value, strlen(value));
}

/* What of info all members of c say; Info_free *copy unless MPI_INFO_NULL. MPI error code, raised. */
static int common(struct px_comm *c, bool in, MPI_Info info, MPI_Info *copy)
{
	long long v[N_HINTS][2]; /* the largest number and the smallest */
	int there, len;

	for (int i = 0; i < N_HINTS; i++) {
		long long mine = in ? said(info, &hints[i]) : 0;

		v[i][0] = in ? mine : LLONG_MIN;
		v[i][1] = in ? -mine : LLONG_MIN;
	}
	int rc = px_comm_max(c, v[0], 2 * N_HINTS);

	for (int i = 0; i < N_HINTS && in && rc == MPI_SUCCESS && info != MPI_INFO_NULL; i++) {
		if (v[i][0] == -v[i][1] && v[i][0] > 0)
			continue;
		rc = px_n.Info_get_valuelen(info, hints[i].key, &len, &there);
		if (rc != MPI_SUCCESS || !there)
			continue;
		if (*copy == MPI_INFO_NULL)
			rc = px_n.Info_dup(info, copy);
		if (rc == MPI_SUCCESS)
			rc = px_n.Info_delete(*copy, hints[i].key);
	}
	return rc;
}

int px_Comm_split_type(struct px_comm *c, int type, int key, MPI_Info info, MPI_Comm *out)
{
	MPI_Info copy = MPI_INFO_NULL;
	int rc = common(c, type != MPI_UNDEFINED, info, &copy);

	if (rc == MPI_SUCCESS)
		rc = px_comm_turn(c);
	if (rc == MPI_SUCCESS)
		px_blocking(rc,
			px_n.Comm_split_type(c->native, type, key, copy == MPI_INFO_NULL ? info : copy, out));
	if (copy != MPI_INFO_NULL)
		px_n.Info_free(&copy);
	return rc;
}
