/* names.c: see names.h. */
#include "names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "channel.h"
#include "comm.h"
#include "comm_find.h"
#include "endian.h"
#include "err.h"
#include "guest.h"
#include "p2p.h"
#include "raise.h"
#include "state.h"
#include "talk.h"

#define TAG_ASK     1
#define TAG_ANSWERS 16
#define ID_MASK     0xfffff
#define HEAD        8
#define MESSAGE_MAX (HEAD + PX_SERVICE_MAX + 1 + PX_PORT_MAX)
_Static_assert(MESSAGE_MAX <= PX_INLINE_MAX, "a question is one envelope");

struct px_match px_names;

static struct name {
	struct name *next;
	char *port; /* behind the name */
	char name[];
} * names; /* at rank 0 */

/* An answer that is leaving. */
struct out {
	struct out *next;
	struct px_req r;
	uint8_t bytes[HEAD + PX_PORT_MAX];
};

static struct out *outs;

static struct name **name_at(const char *name)
{
	struct name **p = &names;

	while (*p && strcmp((*p)->name, name) != 0)
		p = &(*p)->next;
	return p;
}

static enum px_answer_error publish(const char *name, const char *port)
{
	size_t n = strlen(name) + 1, m = strlen(port) + 1;
	struct name *new;

	if (*name_at(name))
		return PX_ANSWER_TAKEN;
	new = malloc(sizeof *new + n + m);
	if (!new)
		return PX_ANSWER_MEMORY;
	new->port = new->name + n;
	memcpy(new->name, name, n);
	memcpy(new->port, port, m);
	new->next = names;
	names = new;
	return PX_ANSWER_OK;
}

static enum px_answer_error unpublish(const char *name)
{
	struct name **p = name_at(name), *gone = *p;

	if (!gone)
		return PX_ANSWER_UNKNOWN;
	*p = gone->next;
	free(gone);
	return PX_ANSWER_OK;
}

/* The next site behind the hostfile's, for so many guests, and their first global rank. */
static enum px_answer_error number_guests(const char *how_many, struct px_answer *answer)
{
	static int sites, ranks;
	int n = atoi(how_many);

	if (n < 1 || n > INT_MAX - px.nranks - ranks)
		return PX_ANSWER_MEMORY;
	snprintf(answer->text, sizeof answer->text, "%d %d", px.nsites + sites, px.nranks + ranks);
	sites++;
	ranks += n;
	return PX_ANSWER_OK;
}

/* At rank 0. */
static void keep(enum px_question what, const char *name, const char *port, struct px_answer *answer)
{
	struct name *found;

	memset(answer, 0, sizeof *answer);
	switch (what) {
	case PX_ASK_PUBLISH:
		answer->error = publish(name, port);
		break;
	case PX_ASK_UNPUBLISH:
		answer->error = unpublish(name);
		break;
	case PX_ASK_GUESTS:
		answer->error = number_guests(name, answer);
		break;
	default:
		found = *name_at(name);
		answer->error = found ? PX_ANSWER_OK : PX_ANSWER_UNKNOWN;
		snprintf(answer->text, sizeof answer->text, "%s", found ? found->port : "");
	}
}

void px_reply(int dst, uint32_t id, const struct px_answer *answer)
{
	struct out *o = calloc(1, sizeof *o);
	size_t n = strlen(answer->text) + 1;

	if (!o)
		px_channel_abort(1, "out of memory for an answer");
	px_put32(o->bytes, (uint32_t)answer->error);
	px_put32(o->bytes + 4, answer->number);
	memcpy(o->bytes + HEAD, answer->text, n);
	px_req_init(&o->r, px_names.c);
	px_req_args(&o->r, o->bytes, (MPI_Count)(HEAD + n), MPI_BYTE, dst, TAG_ANSWERS + (int)(id & ID_MASK));
	o->r.kind = PX_SEND;
	if (px_channel_send(&o->r, PX_NAMES_CTX, px_grank(px_names.c, dst), 0) != MPI_SUCCESS)
		o->r.done = true; /* the channel is gone, and the job with it */
	o->next = outs;
	outs = o;
}

/* A question of n bytes. */
static void take(int src, const uint8_t *q, size_t n)
{
	const char *a = (const char *)q + HEAD, *b = NULL;
	enum px_question what = (enum px_question)px_get32(q);
	struct px_answer answer;
	size_t len;

	if (n > HEAD && q[n - 1] == '\0') {
		len = strlen(a);
		if (HEAD + len + 1 < n)
			b = a + len + 1;
	}
	if (!b) {
		px_log(PX_LOG_ERROR, "a malformed question of rank %d is dropped; please report this", src);
		return;
	}
	if (what == PX_ASK_CONNECT) {
		px_port_called(src, px_get32(q + 4), (uint32_t)strtoul(a, NULL, 10));
		return;
	}
	keep(what, a, b, &answer);
	px_reply(src, px_get32(q + 4), &answer);
}

static bool serve(struct px_server *server)
{
	uint8_t q[MESSAGE_MAX];
	MPI_Count n = 0;
	struct px_req r;
	struct px_msg *u;
	bool did = false;

	(void)server;
	for (struct out **at = &outs, *o; (o = *at);) {
		if (!px_req_test(&o->r)) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		free(o);
	}
	while ((u = px_match_find(&px_names, MPI_ANY_SOURCE, TAG_ASK, true))) {
		px_req_init(&r, px_names.c);
		px_req_args(&r, q, sizeof q, MPI_BYTE, MPI_ANY_SOURCE, TAG_ASK);
		r.kind = PX_RECV;
		px_channel_take(&r, u); /* it is inline, so that is all */
		px_n.Get_elements_x(&r.status, MPI_BYTE, &n);
		take(r.status.MPI_SOURCE, q, (size_t)n);
		did = true;
	}
	return did;
}

static struct px_server server = { .serve = serve };

int px_names_open(void)
{
	px_match_init(&px_names, px_comm_find(px_world_native));
	if (px_channel_ctx_add(PX_NAMES_CTX, &px_names) < 0)
		return PX_ENOMEM;
	px_server_add(&server);
	if (!px_hooked && px.grank == 0)
		px_duty_add(1); /* others may ask while this rank waits */
	return PX_OK;
}

void px_names_close(void)
{
	px_server_del(&server);
	px_channel_ctx_del(PX_NAMES_CTX);
	if (!px_hooked && px.grank == 0)
		px_duty_add(-1);
	while (names) {
		struct name *gone = names;

		names = gone->next;
		free(gone);
	}
	while (outs) {
		struct out *gone = outs;

		outs = gone->next;
		free(gone);
	}
}

int px_ask(int dst, enum px_question what, const char *a, const char *b, struct px_answer *answer)
{
	static uint32_t last;
	uint32_t id = last++ & ID_MASK;
	uint8_t message[MESSAGE_MAX];
	size_t n = strlen(a) + 1, m = strlen(b) + 1;
	int rc;

	if (dst == px.grank && what != PX_ASK_CONNECT) {
		keep(what, a, b, answer);
		return MPI_SUCCESS;
	}
	px_put32(message, (uint32_t)what);
	px_put32(message + 4, id);
	memcpy(message + HEAD, a, n);
	memcpy(message + HEAD + n, b, m);
	rc = px_talk_send(&px_names, PX_NAMES_CTX, message, (int)(HEAD + n + m), dst, TAG_ASK, 0);
	memset(message, 0, sizeof message);
	if (rc == MPI_SUCCESS)
		rc = px_talk_recv(&px_names, message, HEAD + PX_PORT_MAX, dst, TAG_ANSWERS + (int)id);
	answer->error = (enum px_answer_error)px_get32(message);
	answer->number = px_get32(message + 4);
	snprintf(answer->text, sizeof answer->text, "%s", (const char *)message + HEAD);
	return rc;
}

/* A question to the keeper of the names; raises. */
static int ask_keeper(
	enum px_question what, const char *name, const char *port, int class, struct px_answer *answer)
{
	int rc;

	if (strlen(name) > PX_SERVICE_MAX)
		return px_raise(NULL, MPI_ERR_SERVICE, "a name of %zu characters, the longest is %d",
			strlen(name), PX_SERVICE_MAX);
	if (strlen(port) >= PX_PORT_MAX)
		return px_raise(NULL, MPI_ERR_PORT, "a port of %zu characters, the longest is %d",
			strlen(port), PX_PORT_MAX - 1);
	rc = px_ask(0, what, name, port, answer);
	if (rc != MPI_SUCCESS)
		return px_raise_as(NULL, rc, NULL);
	switch (answer->error) {
	case PX_ANSWER_OK:
		return MPI_SUCCESS;
	case PX_ANSWER_UNKNOWN:
		return px_raise(NULL, class, "nobody has published the name %s", name);
	case PX_ANSWER_TAKEN:
		return px_raise(NULL, class, "the name %s has been published already", name);
	default:
		return px_raise_memory(NULL);
	}
}

int px_Publish_name(const char *name, MPI_Info info, const char *port)
{
	struct px_answer answer;

	if (!px_spanning() || px_guest_self)
		return px_n.Publish_name(name, info, port);
	return ask_keeper(PX_ASK_PUBLISH, name, port, MPI_ERR_SERVICE, &answer);
}

int px_Unpublish_name(const char *name, MPI_Info info, const char *port)
{
	struct px_answer answer;

	if (!px_spanning() || px_guest_self)
		return px_n.Unpublish_name(name, info, port);
	return ask_keeper(PX_ASK_UNPUBLISH, name, "", MPI_ERR_SERVICE, &answer);
}

int px_Lookup_name(const char *name, MPI_Info info, char *port)
{
	struct px_answer answer;
	int rc;

	if (!px_spanning() || px_guest_self)
		return px_n.Lookup_name(name, info, port);
	rc = ask_keeper(PX_ASK_LOOKUP, name, "", MPI_ERR_NAME, &answer);
	if (rc != MPI_SUCCESS)
		return rc;
	if (strlen(answer.text) >= MPI_MAX_PORT_NAME)
		return px_raise(NULL, MPI_ERR_PORT,
			"the port of %s has %zu characters, MPI_MAX_PORT_NAME is %d here", name,
			strlen(answer.text), MPI_MAX_PORT_NAME);
	memcpy(port, answer.text, strlen(answer.text) + 1);
	return MPI_SUCCESS;
}
