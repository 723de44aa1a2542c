/* bcast.c: barrier and broadcast. One message between sites, or groups of them and then sites, native inside (PACX-MPI; flat tree of MagPIe).
 *
 * Design: what the daemons do of it. A short message to n - 1 sites is one native message, whose body the out-daemon puts into the frames of all
 * (PX_FF_SAME, outbox.h): at 8 sites 1 native message instead of 7, 120 + 7 * 80 bytes instead of 7 * 200; so for all operations.
 * A payload beyond 8 KiB, which an out-daemon fetches by the credit of its receiver, is fetched for each: to fetch it once, all receivers would have to wait
 * for the slowest one, whose rank may wait for a message of one of them. Pieces do as well where bandwidth rules: of 64 KiB to 8 sites the root gives
 * its daemon 65,536 bytes, and each other site 6 / 7 of that; where latency rules, and `leader` gives 7 * 65,536, the copies more are 0.1 ms.
 * At the other end an in-daemon that served each of r receivers would send r native messages, one after the other, with r frames of credit over the
 * wide area; leader and native broadcast take r, too, and those in a tree. It would save the leader's turn only.
 */
#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "groups.h"
#include "model.h"
#include "native.h"
#include "raise.h"
#include "vendor.h"

int px_coll_root(struct px_comm *c, int root)
{
	return root >= 0 && root < c->size
		       ? MPI_SUCCESS
		       : px_raise(c, MPI_ERR_ROOT, "root %d, the communicator has %d", root, c->size);
}

void px_coll_strict(struct px_sched *s, int step)
{
	if (!PX_OVER_OPENMPI)
		px_sched_exact(s, step);
}

int px_coll_head(const struct px_comm *c, int part, int root)
{
	return px_part_of(c, root) == part ? root : px_leader(c, part);
}

int px_coll_lane(const struct px_comm *c, int part, int k)
{
	return px_member(c, part, k % px_part_count(c, part));
}

/* The whole to each other site. */
static void by_leaders(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int root)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_groups *g = px_groups_of(s);
	int head = px_coll_head(c, c->self, root), home = px_part_of(c, root);

	if (!g)
		return;
	if (c->rank == head && c->self != home) {
		px_coll_strict(s, px_sched_recv(s, buf, count, t,
					  px_coll_head(c, px_group_up(g, c->self, home), root)));
		px_sched_round(s);
	}
	for (int p = 0; p < c->nparts && c->rank == head; p++)
		if (px_group_up(g, p, home) == c->self)
			px_coll_strict(s, px_sched_send(s, buf, count, t, px_leader(c, p)));
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
				   .r = buf,
				   .count = count,
				   .type = t,
				   .root = px_lrank(c, head) });
	px_sched_round(s);
}

/* Packed data between a buffer of the user's that is not contiguous and ours. */
struct packing {
	void *buf, *packed;
	MPI_Count count, bytes;
	MPI_Datatype t;
};

static int pack(struct px_sched *s, void *arg)
{
	struct packing *x = arg;

	(void)s;
	return px_type_pack(x->buf, x->count, x->t, x->packed);
}

static int unpack(struct px_sched *s, void *arg)
{
	struct packing *x = arg;

	(void)s;
	return px_type_unpack(x->packed, (uint64_t)x->bytes, x->buf, x->count, x->t);
}

/* The rank of a part that sends and takes what crosses: its head, or (lane >= 0) one of those that take turns. */
static int carrier(const struct px_comm *c, int part, int root, int lane)
{
	return lane < 0 ? px_coll_head(c, part, root) : px_coll_lane(c, part, lane);
}

/* A segment on its way between sites, at the carrier of this one; the root's site has it after step `ready`. Returns the step when it is here. */
static int relay(struct px_sched *s, char *at, MPI_Count bytes, int root, int lane, int ready)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_groups *g = px_groups_of(s);
	int home = px_part_of(c, root);

	if (g && c->self != home)
		ready = px_sched_recv_all(
			s, at, bytes, carrier(c, px_group_up(g, c->self, home), root, lane));
	for (int p = 0; g && p < c->nparts; p++)
		if (px_group_up(g, p, home) == c->self) {
			px_sched_when(s, ready);
			px_sched_send(s, at, bytes, MPI_BYTE, carrier(c, p, root, lane));
		}
	return ready;
}

/* Bytes between sites, of pieces of one segment: piece k of n goes from the root to the k-th of the other sites, and from there to the
 * others. Returns the step when all are at this rank. */
static int by_pieces(struct px_sched *s, char *at, MPI_Count bytes, int root)
{
	struct px_comm *c = px_sched_comm(s);
	int home = px_part_of(c, root), n = c->nparts - 1, done = -1;
	int mine = c->self - (c->self > home); /* the piece that is ours to pass on */

	for (int p = 0; p < c->nparts; p++) {
		int k = p - (p > home); /* the piece that p gets from the root */
		MPI_Count first = bytes * k / n, own = bytes * mine / n;

		if (p == home)
			continue;
		if (c->rank == root) {
			px_sched_send(s, at + first, bytes * (k + 1) / n - first, MPI_BYTE, px_leader(c, p));
		} else if (p == c->self) {
			int got = px_sched_recv_all(s, at + first, bytes * (k + 1) / n - first, root);
			done = px_sched_join(s, done, got);
			for (int q = 0; q < c->nparts; q++)
				if (q != home && q != c->self) {
					px_sched_when(s, got);
					px_sched_send(s, at + own, bytes * (mine + 1) / n - own, MPI_BYTE,
						px_leader(c, q));
				}
		} else {
			done = px_sched_join(s, done,
				px_sched_recv_all(
					s, at + first, bytes * (k + 1) / n - first, px_leader(c, p)));
		}
	}
	return done;
}

/* In bytes, in segments that each go through the steps by themselves. */
static void by_segments(struct px_sched *s, const struct packing *x, int root, bool pieces)
{
	struct px_comm *c = px_sched_comm(s);
	int head = px_coll_head(c, c->self, root), n = px_cost_segments(PX_ALG_SEGMENTS, (double)x->bytes);

	for (int k = 0; k < n; k++) {
		MPI_Count first = x->bytes * k / n, bytes = x->bytes * (k + 1) / n - first;
		char *at = (char *)x->packed + first;
		int there = -1;

		px_sched_sub(s, k);
		if (c->rank == head)
			there = pieces ? by_pieces(s, at, bytes, root) : relay(s, at, bytes, root, -1, -1);
		px_sched_when(s, there);
		px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
					   .r = at,
					   .count = bytes,
					   .type = MPI_BYTE,
					   .root = px_lrank(c, head),
					   .large = !px_fits(bytes) });
	}
	px_sched_sub(s, 0);
	px_sched_round(s);
}

/* In segments; each goes from another rank of the root's site to another one of each other site in turn. */
static void by_lanes(struct px_sched *s, const struct packing *x, int root)
{
	struct px_comm *c = px_sched_comm(s);
	int home = px_part_of(c, root), n = px_cost_segments(PX_ALG_LANES, (double)x->bytes);

	for (int k = 0; k < n; k++) {
		MPI_Count first = x->bytes * k / n, bytes = x->bytes * (k + 1) / n - first;
		int mine = px_coll_lane(c, c->self, k), head = c->self == home ? root : mine, there = -1;
		char *at = (char *)x->packed + first;

		px_sched_sub(s, k);
		if (c->self != home && c->rank == head)
			there = relay(s, at, bytes, root, k, -1);
		px_sched_when(s, there);
		there = px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
						   .r = at,
						   .count = bytes,
						   .type = MPI_BYTE,
						   .root = px_lrank(c, head),
						   .large = !px_fits(bytes) });
		if (c->self == home && c->rank == mine)
			relay(s, at, bytes, root, k, mine == root ? -1 : there);
	}
	px_sched_sub(s, 0);
	px_sched_round(s);
}

void px_coll_bcast(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int root)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_type *p = px_type_get(t);
	MPI_Count bytes = count * p->size;
	enum px_algorithm how = px_model_pick(c, PX_COLL_BCAST, bytes, 1);
	struct packing *x;

	if (how == PX_ALG_LEADER) {
		by_leaders(s, buf, count, t, root);
		return;
	}
	x = px_sched_temp(s, sizeof *x);
	if (!x)
		return;
	*x = (struct packing){ buf, p->contig ? buf : px_sched_temp(s, (size_t)bytes), count, bytes, t };
	if (!px_sched_ok(s))
		return;
	if (x->packed != buf && c->rank == root)
		px_sched_call(s, pack, x);
	px_sched_round(s);
	if (how == PX_ALG_LANES)
		by_lanes(s, x, root);
	else
		by_segments(s, x, root, how == PX_ALG_PIECES);
	if (x->packed != buf && c->rank != root)
		px_sched_call(s, unpack, x);
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

/* Leaders: this site's group has gathered at its head, the heads hear of each other, the others of it. */
static void meet(struct px_sched *s, const struct px_groups *g)
{
	struct px_comm *c = px_sched_comm(s);
	int head = px_group_head(g, c->self);

	if (head != c->self) {
		px_sched_send(s, NULL, 0, MPI_BYTE, px_leader(c, head));
		px_sched_recv(s, NULL, 0, MPI_BYTE, px_leader(c, head));
		px_sched_round(s);
		return;
	}
	for (int p = 0; p < c->nparts; p++)
		if (p != head && px_group_head(g, p) == head)
			px_sched_recv(s, NULL, 0, MPI_BYTE, px_leader(c, p));
	px_sched_round(s);
	for (int p = 0; p < c->nparts; p++)
		if (p != head && px_group_head(g, p) == p) {
			px_sched_send(s, NULL, 0, MPI_BYTE, px_leader(c, p));
			px_sched_recv(s, NULL, 0, MPI_BYTE, px_leader(c, p));
		}
	px_sched_round(s);
	for (int p = 0; p < c->nparts; p++)
		if (p != head && px_group_head(g, p) == head)
			px_sched_send(s, NULL, 0, MPI_BYTE, px_leader(c, p));
	px_sched_round(s);
}

static struct px_sched *build_barrier(struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_BARRIER);
	const struct px_groups *g = s ? px_groups_of(s) : NULL;
	const struct px_call barrier = { .kind = PX_CALL_BARRIER };

	if (!g)
		return s;
	px_sched_native(s, &barrier);
	px_sched_round(s);
	if (c->rank == px_leader(c, c->self))
		meet(s, g);
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
