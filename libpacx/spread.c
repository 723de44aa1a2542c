/* spread.c: see spread.h. Ranks are counted from the root; rank r gets from r without its lowest bit, and sends to r plus each
 * lower power of two.
 */
#include "spread.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "vendor.h"

/* True when the bytes have come. */
static int receive(struct px_spread *s, MPI_Comm c, int from)
{
	MPI_Status st;
	int flag = 0;

	if (px_n.Iprobe(from, PX_TAG_WORLD, c, &flag, &st) != MPI_SUCCESS)
		return PX_EMPI;
	if (!flag)
		return 0;
	px_n.Get_count(&st, MPI_BYTE, &s->len);
	s->bytes = malloc((size_t)s->len + 1);
	if (!s->bytes)
		return PX_ENOMEM;
	return px_n.Recv(s->bytes, s->len, MPI_BYTE, from, PX_TAG_WORLD, c, MPI_STATUS_IGNORE) == MPI_SUCCESS
		       ? 1
		       : PX_EMPI;
}

int px_spread_poll(struct px_spread *s, const struct px_site_map *map, int root)
{
	int size, rank, low = 1, flag = 0, rc;

	px_n.Comm_size(map->relay, &size);
	px_n.Comm_rank(map->relay, &rank);
	rank = (rank - root + size) % size;
	while (low < size && !(rank & low))
		low *= 2;
	if (!s->bytes) {
		rc = receive(s, map->relay, (rank - low + root) % size);
		if (rc <= 0)
			return rc;
	}
	for (int d = low / 2; d > 0 && !s->sent; d /= 2)
		if (rank + d < size && px_n.Isend(s->bytes, s->len, MPI_BYTE, (rank + d + root) % size,
					       PX_TAG_WORLD, map->relay, &s->req[s->nreq++]) != MPI_SUCCESS)
			return PX_EMPI;
	s->sent = true;
	if (px_n.Testall(s->nreq, s->req, &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
		return PX_EMPI;
	return flag;
}

void px_spread_fini(struct px_spread *s)
{
	free(s->bytes);
	memset(s, 0, sizeof *s);
}
