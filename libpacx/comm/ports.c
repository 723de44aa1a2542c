/* ports.c: MPI_Open_port, MPI_Comm_accept, MPI_Comm_connect between ranks of one world that spans sites.
 *
 * Design. A port names the process that has opened it, and a number. The root of MPI_Comm_connect asks that process (names.h), which
 * answers when it is the root of an MPI_Comm_accept; then the two roots are leaders who know a way to each other, and the rest is
 * as in MPI_Intercomm_create (inter_meet.h), whether the groups are at one site or not. A port of the vendor's own (a
 * program outside of this job has it) serves communicators within one site, natively.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "comm_find.h"
#include "guest.h"
#include "inter_meet.h"
#include "lock.h"
#include "names.h"
#include "raise.h"
#include "request.h"
#include "state.h"
#include "talk.h"
#include "vendor.h"
#include "wait.h"

#define PREFIX "pacx-port:"

/* Somebody who wants to connect. */
struct call {
	struct call *next;
	int src;
	uint32_t id;
};

static struct port {
	struct port *next;
	uint32_t number;
	struct call *calls; /* in the order in which they came */
} * ports;

static struct port **port_at(uint32_t number)
{
	struct port **p = &ports;

	while (*p && (*p)->number != number)
		p = &(*p)->next;
	return p;
}

/* Is `name` a port of this world? */
static bool parse(const char *name, int *owner, uint32_t *number)
{
	int end = -1;

	return sscanf(name, PREFIX "%d:%u%n", owner, number, &end) == 2 && end > 0 && name[end] == '\0' &&
	       *owner >= 0 && *owner < px.world->nranks;
}

int px_Open_port(MPI_Info info, char *name)
{
	static uint32_t last;
	struct port *p;

	if (!px_spanning() || px_guest_self) /* a guest's are the vendor's own */
		return px_n.Open_port(info, name);
	p = calloc(1, sizeof *p);
	if (!p)
		return px_raise_memory(NULL);
	p->number = ++last;
	p->next = ports;
	ports = p;
	if (!px_hooked)
		px_duty_add(1); /* others may call while this rank waits */
	snprintf(name, MPI_MAX_PORT_NAME, PREFIX "%d:%u", px.grank, p->number);
	return MPI_SUCCESS;
}

static void refuse(int src, uint32_t id)
{
	px_reply(src, id, &(struct px_answer){ .error = PX_ANSWER_CLOSED });
}

int px_Close_port(const char *name)
{
	struct port **at, *gone;
	uint32_t number;
	int owner;

	if (!px_spanning() || px_guest_self || !parse(name, &owner, &number))
		return px_n.Close_port(name);
	at = port_at(number);
	gone = *at;
	if (owner != px.grank || !gone)
		return px_raise(NULL, MPI_ERR_PORT, "%s is not open at this rank", name);
	*at = gone->next;
	while (gone->calls) {
		struct call *c = gone->calls;

		gone->calls = c->next;
		refuse(c->src, c->id);
		free(c);
	}
	free(gone);
	if (!px_hooked)
		px_duty_add(-1);
	return MPI_SUCCESS;
}

void px_port_called(int src, uint32_t id, uint32_t number)
{
	struct port *p = *port_at(number);
	struct call *c = p ? malloc(sizeof *c) : NULL, **end;

	if (!c) {
		refuse(src, id);
		return;
	}
	*c = (struct call){ .src = src, .id = id };
	for (end = &p->calls; *end; end = &(*end)->next)
		;
	*end = c;
}

/* The two roots talk: each says with its tag and hears with the other one, which differs in the lowest bit. */
static int say(const struct px_peer *p, const void *buf, int bytes)
{
	return px_talk_send(&px_names, PX_NAMES_CTX, buf, bytes, p->rank, p->tag, 0);
}

static int hear(const struct px_peer *p, void *buf, int bytes)
{
	return px_talk_recv(&px_names, buf, bytes, p->rank, p->tag ^ 1);
}

/* At the root of MPI_Comm_accept: the next one who calls. MPI error code, raised. */
static int answer_call(struct px_party *s, const char *name, struct px_peer *peer)
{
	static uint32_t conversations;
	struct call *c = NULL;
	struct px_wait w;
	struct port *p;
	uint32_t number;
	int owner;

	if (!parse(name, &owner, &number))
		return px_raise(s->on, MPI_ERR_PORT, "%s is no port", name);
	if (owner != px.grank || !*port_at(number))
		return px_raise(s->on, MPI_ERR_PORT, "%s is not open at this rank", name);
	px_loop_enter(&w);
	while ((p = *port_at(number)) && !p->calls)
		px_relax(&w, px_progress());
	px_loop_leave();
	if (!p)
		return px_raise(s->on, MPI_ERR_PORT, "%s has been closed", name);
	c = p->calls;
	p->calls = c->next;
	peer->rank = c->src;
	peer->tag = (int)(PX_TAG_PORT + (conversations++ & 0xfffff) * 2);
	px_reply(c->src, c->id, &(struct px_answer){ .number = (uint32_t)peer->tag });
	free(c);
	return MPI_SUCCESS;
}

/* At the root of MPI_Comm_connect. MPI error code, raised. */
static int call(struct px_party *s, const char *name, struct px_peer *peer)
{
	struct px_answer answer;
	uint32_t number;
	char text[16];
	int owner, rc;

	if (!parse(name, &owner, &number))
		return px_raise(s->on, MPI_ERR_PORT, "%s is no port", name);
	if (owner == px.grank)
		return px_raise(s->on, MPI_ERR_PORT, "%s is a port of this rank itself", name);
	snprintf(text, sizeof text, "%u", number);
	rc = px_ask(owner, PX_ASK_CONNECT, text, "", &answer);
	if (rc != MPI_SUCCESS)
		return px_raise_as(s->on, rc, NULL);
	if (answer.error != PX_ANSWER_OK)
		return px_raise(s->on, MPI_ERR_PORT, "%s is not open", name);
	peer->rank = owner;
	peer->tag = (int)answer.number ^ 1;
	return MPI_SUCCESS;
}

/* Where all members are at one site the root's port may be the vendor's own; all members learn that. MPI error code, raised. */
static int is_native(struct px_party *s, const char *name, int *native)
{
	uint32_t number;
	int owner;

	*native = s->leads && !s->c && !parse(name, &owner, &number);
	return s->c ? MPI_SUCCESS : px_party_tell(s, native, sizeof *native);
}

static int join(const char *name, MPI_Info info, int root, MPI_Comm comm, bool accept, MPI_Comm *out)
{
	struct px_peer peer = { .say = say, .hear = hear };
	int rc, native = !px_spanning() || (px_guest_self && !px_comm_find(comm));
	struct px_party s;

	*out = MPI_COMM_NULL;
	if (!native) {
		rc = px_party_init(&s, comm, root, "root");
		if (rc != MPI_SUCCESS)
			return rc;
		rc = is_native(&s, name, &native);
		if (rc == MPI_SUCCESS && !native) {
			if (s.leads)
				peer.error = accept ? answer_call(&s, name, &peer) : call(&s, name, &peer);
			rc = px_inter_meet(&s, &peer, out);
		}
		px_party_fini(&s);
		if (rc != MPI_SUCCESS || !native)
			return rc;
	}
	px_blocking(rc, accept ? px_n.Comm_accept(name, info, root, comm, out)
			       : px_n.Comm_connect(name, info, root, comm, out));
	return rc;
}

int px_Comm_accept(const char *name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *out)
{
	return join(name, info, root, comm, true, out);
}

int px_Comm_connect(const char *name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *out)
{
	return join(name, info, root, comm, false, out);
}
