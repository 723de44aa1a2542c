/* bcast.c: barrier and broadcast. One message between sites, native inside (PACX-MPI; flat tree of MagPIe). */
#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "raise.h"

int px_coll_root(struct px_comm *c, int root)
{
	return root >= 0 && root < c->size
		       ? MPI_SUCCESS
		       : px_raise(c, MPI_ERR_ROOT, "root %d, the communicator has %d", root, c->size);
}

int px_coll_head(const struct px_comm *c, int part, int root)
{
	return px_part_of(c, root) == part ? root : px_leader(c, part);
}

void px_coll_bcast(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int root)
{
	struct px_comm *c = px_sched_comm(s);
	int head = px_coll_head(c, c->self, root);

	if (c->rank == root) {
		for (int p = 0; p < c->nparts; p++)
			if (p != c->self)
				px_sched_send(s, buf, count, t, px_leader(c, p));
	} else if (c->rank == head) {
		px_sched_recv(s, buf, count, t, root);
		px_sched_round(s);
	}
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
				   .r = buf,
				   .count = count,
				   .type = t,
				   .root = px_lrank(c, head) });
	px_sched_round(s);
}

static struct px_sched *build_bcast(void *buf, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_BCAST);

	if (s)
		px_coll_bcast(s, buf, count, t, root);
	return s;
}

static int check_bcast(MPI_Count count, MPI_Datatype t, int root, struct px_comm *c)
{
	if (count < 0)
		return px_raise_count(c, count);
	if (!px_type_get(t))
		return px_raise_type(c);
	return px_coll_root(c, root);
}

int px_Bcast(void *buf, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c)
{
	int rc = check_bcast(count, t, root, c);

	return rc != MPI_SUCCESS ? rc : px_sched_run(build_bcast(buf, count, t, root, c), c);
}

int px_Ibcast(void *buf, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c, MPI_Request *req)
{
	int rc = check_bcast(count, t, root, c);

	return rc != MPI_SUCCESS ? rc : px_sched_start(build_bcast(buf, count, t, root, c), c, req);
}

static struct px_sched *build_barrier(struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_BARRIER);
	const struct px_call barrier = { .kind = PX_CALL_BARRIER };

	if (!s)
		return NULL;
	px_sched_native(s, &barrier);
	px_sched_round(s);
	if (c->rank == px_leader(c, c->self)) {
		for (int p = 0; p < c->nparts; p++) {
			if (p == c->self)
				continue;
			px_sched_send(s, NULL, 0, MPI_BYTE, px_leader(c, p));
			px_sched_recv(s, NULL, 0, MPI_BYTE, px_leader(c, p));
		}
		px_sched_round(s);
	}
	px_sched_native(s, &barrier); /* the leader enters when all sites have reported */
	return s;
}

int px_Barrier(struct px_comm *c)
{
	return px_sched_run(build_barrier(c), c);
}

int px_Ibarrier(struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(build_barrier(c), c, req);
}
