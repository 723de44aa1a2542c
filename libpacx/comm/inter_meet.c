/* inter_meet.c: see inter_meet.h.
 *
 * Design. Nobody knows beforehand whether both groups are at one site. The leaders tell each other their groups, and tell their groups
 * of the other one. A leader that has failed tells its own group so, and the other one if it can.
 */
#include "inter_meet.h"

#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm_find.h"
#include "endian.h"
#include "group.h"
#include "inter.h"
#include "inter_plan.h"
#include "raise.h"
#include "request.h"
#include "state.h"
#include "vendor.h"

int px_party_tell(const struct px_party *s, void *buf, int bytes)
{
	MPI_Request req;
	int rc;

	if (s->c)
		return px_Bcast(buf, bytes, MPI_BYTE, s->leader, s->c);
	rc = px_n.Ibcast(buf, bytes, MPI_BYTE, s->leader, s->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

/* The smallest of a group's numbers, at all its members. */
static int least(const struct px_party *s, int *n)
{
	int mine = *n, rc;
	MPI_Request req;

	if (s->c)
		return px_Allreduce(&mine, n, 1, MPI_INT, MPI_MIN, s->c);
	rc = px_n.Iallreduce(&mine, n, 1, MPI_INT, MPI_MIN, s->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

/* The leaders' way in MPI_Intercomm_create: the peer communicator. */
static int say(const struct px_peer *p, const void *buf, int bytes)
{
	MPI_Request req;
	int rc;

	if (p->c) /* a negative tag in the context of collectives, as in MPI_Comm_create_group */
		return px_internal_send(p->c, buf, bytes, p->rank, -1 - p->tag);
	rc = px_n.Isend(buf, bytes, MPI_BYTE, p->rank, p->tag, p->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

static int hear(const struct px_peer *p, void *buf, int bytes)
{
	MPI_Request req;
	int rc;

	if (p->c)
		return px_internal_recv(p->c, buf, bytes, p->rank, -1 - p->tag);
	rc = px_n.Irecv(buf, bytes, MPI_BYTE, p->rank, p->tag, p->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

static int swap(const struct px_peer *p, const void *out, int outbytes, void *in, int inbytes)
{
	int rc = p->speaks_first ? p->say(p, out, outbytes) : p->hear(p, in, inbytes);

	if (rc != MPI_SUCCESS)
		return rc;
	return p->speaks_first ? p->hear(p, in, inbytes) : p->say(p, out, outbytes);
}

/* What one group says of itself to the other: members, first member, 1 = the leader can go on, context id. */
#define NOTE_BYTES 20

static void note_make(uint8_t note[NOTE_BYTES], const struct px_party *s)
{
	px_put32(note, (uint32_t)s->size);
	px_put32(note + 4, (uint32_t)s->grank[0]);
	px_put32(note + 8, 1);
	px_put64(note + 12, px_ctx_candidate());
}

/* Leaders only: the note and the members (4 bytes each, on the heap) of the other group; mine: our note. MPI error code. */
static int meet_leader(const struct px_party *s, struct px_peer *p, const uint8_t *mine,
	uint8_t other[NOTE_BYTES], uint8_t **list)
{
	int rc, n;
	uint8_t *out = malloc(4 * (size_t)s->size);

	*list = NULL;
	if (!out)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < s->size; i++)
		px_put32(out + 4 * i, (uint32_t)s->grank[i]);
	rc = p->say(p, mine, NOTE_BYTES); /* short: leaves without its receiver */
	if (rc == MPI_SUCCESS)
		rc = p->hear(p, other, NOTE_BYTES);
	n = (int)px_get32(other);
	p->speaks_first = s->grank[0] < (int)px_get32(other + 4);
	if (rc == MPI_SUCCESS)
		*list = malloc(4 * (size_t)n);
	if (*list)
		rc = swap(p, out, 4 * s->size, *list, 4 * n);
	else if (rc == MPI_SUCCESS)
		rc = MPI_ERR_NO_MEM;
	free(out);
	return rc;
}

/* Of the leaders' notes and the two groups: the plan. Groups that have a member in common are none. MPI error code, raised. */
static int plan_make(struct px_plan *p, const struct px_party *s, const uint8_t *mine, const uint8_t *other,
	const uint8_t *list)
{
	int m = (int)px_get32(other);
	bool first = s->grank[0] < (int)px_get32(list);
	struct px_ranks *ours = px_ranks_new(px.world, s->size, s->grank);
	int both = -1;

	p->n = s->size + m;
	p->first = first ? s->size : m;
	p->ctx = px_get64((first ? mine : other) + 12);
	p->grank = malloc((size_t)p->n * sizeof *p->grank);
	if (!p->grank || !ours) {
		px_ranks_drop(ours);
		return px_raise_memory(s->on);
	}
	memcpy(p->grank + (first ? 0 : m), s->grank, (size_t)s->size * sizeof *p->grank);
	for (int i = 0; i < m; i++) {
		int g = (int)px_get32(list + 4 * i);

		p->grank[(first ? s->size : 0) + i] = g;
		if (px_ranks_find(ours, g) >= 0)
			both = g;
	}
	px_ranks_drop(ours);
	if (both >= 0)
		return px_raise(s->on, MPI_ERR_COMM, "rank %d of MPI_COMM_WORLD is in both groups", both);
	return MPI_SUCCESS;
}

/* Both groups learn of each other. MPI error code, raised. */
static int introduce(struct px_plan *p, const struct px_party *s, struct px_peer *peer)
{
	uint8_t notes[2][NOTE_BYTES] = { { 0 } }, *list = NULL;
	int rc = peer->error, told;

	if (s->leads) {
		note_make(notes[0], s);
		if (rc == MPI_SUCCESS) {
			rc = meet_leader(s, peer, notes[0], notes[1], &list);
			if (rc != MPI_SUCCESS)
				px_raise_as(s->on, rc, NULL);
		}
		if (rc != MPI_SUCCESS)
			px_put32(notes[1] + 8, 0);
	}
	told = px_party_tell(s, notes, sizeof notes);
	if (rc == MPI_SUCCESS)
		rc = told;
	if (rc == MPI_SUCCESS && px_get32(notes[1] + 8) == 0)
		rc = px_raise(s->on, MPI_ERR_OTHER, "the leader of the group has failed");
	if (rc == MPI_SUCCESS && !s->leads) {
		list = malloc(4 * (size_t)px_get32(notes[1]));
		if (!list)
			rc = px_raise_memory(s->on);
	}
	if (rc != MPI_SUCCESS) {
		free(list);
		return rc;
	}
	rc = px_party_tell(s, list, 4 * (int)px_get32(notes[1]));
	if (rc == MPI_SUCCESS)
		rc = plan_make(p, s, notes[0], notes[1], list);
	free(list);
	return rc;
}

/* made: result of the native constructors here. All members of both groups learn whether all have succeeded. MPI error code, raised. */
static int confirm(const struct px_party *s, const struct px_peer *peer, int made)
{
	int good = made == MPI_SUCCESS, rc = least(s, &good);
	uint8_t mine[4], other[4] = { 0 };

	px_put32(mine, (uint32_t)good);
	if (rc == MPI_SUCCESS && s->leads)
		rc = swap(peer, mine, sizeof mine, other, sizeof other);
	if (rc == MPI_SUCCESS)
		rc = px_party_tell(s, other, sizeof other);
	if (rc != MPI_SUCCESS || made != MPI_SUCCESS)
		return rc != MPI_SUCCESS ? rc : made;
	if (good && px_get32(other))
		return MPI_SUCCESS;
	return px_raise(s->on, MPI_ERR_OTHER, "another member could not make the communicator");
}

int px_party_init(struct px_party *s, MPI_Comm comm, int leader, const char *what)
{
	MPI_Group group;
	int rank = -1, rc, inter = 0;

	*s = (struct px_party){ .c = px_comm_find(comm), .native = comm, .leader = leader };
	s->stub.native = s->stub.face = comm;
	s->on = s->c ? s->c : &s->stub;
	if (s->c && s->c->inter)
		return px_not_inter(s->c);
	if (!s->c) { /* the vendor checks the handle */
		rc = px_n.Comm_test_inter(comm, &inter);
		if (rc == MPI_SUCCESS)
			rc = px_n.Comm_rank(comm, &rank);
		if (rc == MPI_SUCCESS)
			rc = px_n.Comm_group(comm, &group);
		if (rc == MPI_SUCCESS && inter)
			rc = px_not_inter(s->on);
	} else {
		rank = s->c->rank;
		rc = px_Comm_group(s->c, &group);
	}
	if (rc != MPI_SUCCESS)
		return rc;
	rc = px_group_list(group, &s->size, &s->grank);
	px_Group_free(&group);
	s->leads = rank == leader;
	if (rc == MPI_SUCCESS && (leader < 0 || leader >= s->size)) {
		px_party_fini(s);
		return px_raise(s->on, MPI_ERR_RANK, "%s %d, the communicator has %d", what, leader, s->size);
	}
	return rc == MPI_SUCCESS ? rc : px_raise_as(s->on, rc, NULL);
}

void px_party_fini(struct px_party *s)
{
	free(s->grank);
	s->grank = NULL;
}

int px_inter_meet(struct px_party *s, struct px_peer *peer, MPI_Comm *out)
{
	struct px_plan p;
	int rc;

	px_plan_init(&p);
	rc = introduce(&p, s, peer);
	if (rc == MPI_SUCCESS) {
		rc = px_plan_native(&p);
		if (rc == MPI_SUCCESS)
			rc = px_plan_face(&p);
		rc = confirm(s, peer, rc);
	}
	return rc == MPI_SUCCESS ? px_plan_carry_out(&p, s->on, s->native, out) : px_plan_drop(&p, rc);
}

int px_Intercomm_create(
	MPI_Comm local, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm *out)
{
	struct px_peer peer = {
		.say = say, .hear = hear, .native = peer_comm, .rank = remote_leader, .tag = tag
	};
	struct px_party s;
	int rc;

	if (!px_spanning())
		return px_n.Intercomm_create(local, local_leader, peer_comm, remote_leader, tag, out);
	*out = MPI_COMM_NULL;
	rc = px_party_init(&s, local, local_leader, "local leader");
	if (rc != MPI_SUCCESS)
		return rc;
	if (s.leads)
		peer.c = px_comm_find(peer_comm);
	if (tag < 0 || tag > px.tag_ub)
		peer.error =
			px_raise(s.on, MPI_ERR_TAG, "tag %d, the largest is %d (MPI_TAG_UB)", tag, px.tag_ub);
	else if (peer.c && peer.c->inter)
		peer.error = px_not_inter(peer.c);
	else if (peer.c && (remote_leader < 0 || remote_leader >= peer.c->size))
		peer.error = px_raise(s.on, MPI_ERR_RANK, "remote leader %d, the communicator has %d",
			remote_leader, peer.c->size);
	rc = px_inter_meet(&s, &peer, out);
	px_party_fini(&s);
	return rc;
}
