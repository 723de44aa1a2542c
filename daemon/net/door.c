/* door.c: see door.h.
 *
 * Design. A flood must cost us less than the flooder: a caller is read from as soon as it is accepted, so one that has said all needs no
 * handle of libuv; the others share one timer. What loses is reset, which leaves nothing behind in the kernel. The queue of the
 * kernel is emptied in batches, because what does not fit into it is lost without a word, an honest peer's connection like any other.
 *
 *  1. A caller's socket is closed, or given away, as soon as its handle is closing; its memory goes in the close callback.
 *  2. `came` may close the door; nothing of it is touched after that.
 */
#include "door.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "list.h"

#define BACKLOG  SOMAXCONN
#define BATCH    256 /* connections accepted before the loop goes on with something else */
#define SWEEP_MS 500
#define ROOM     16 /* callers that go when there are no descriptors */

struct caller {
	struct pxd_crowd_place place;
	uv_poll_t poll;
	struct pxd_door *door;
	int fd;
	uint64_t deadline; /* uv_now */
	struct sockaddr_storage from;
	uint8_t said[PX_PREAMBLE_SIZE];
	size_t n;
};

static void on_timer(uv_timer_t *t);
static void on_connection(uv_poll_t *p, int status, int events);

const char *pxd_peer_text(const struct sockaddr_storage *a, char text[PXD_PEER_TEXT])
{
	char host[64], port[8];

	if (a->ss_family != AF_UNIX && getnameinfo((const struct sockaddr *)a, sizeof *a, host, sizeof host,
					       port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(text, PXD_PEER_TEXT, a->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	else
		snprintf(text, PXD_PEER_TEXT, "unknown address");
	return text;
}

void pxd_door_reset(int fd)
{
	const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
}

static void on_caller_closed(uv_handle_t *h)
{
	free(h->data);
}

/* The caller is no more; its socket is somebody else's from now on. */
static int caller_take(struct caller *c)
{
	pxd_crowd_leave(&c->door->callers, &c->place);
	uv_close((uv_handle_t *)&c->poll, on_caller_closed);
	return c->fd;
}

static void caller_drop(struct caller *c)
{
	pxd_door_reset(caller_take(c));
}

static void caller_note(struct caller *c, const char *verb, const char *what)
{
	char who[PXD_PEER_TEXT], text[24];

	pxd_peer_text(&c->from, who);
	pxd_text_clean(c->said, c->n < sizeof text - 1 ? c->n : sizeof text - 1, text, sizeof text);
	pxd_quiet_log(c->door->quiet, PX_LOG_WARN, "%s a connection from %s: %s (it begins with \"%s\")",
		verb, who, what, text);
}

/* Read on. 1: the preamble is complete, in *p; 0: more has to come; -1: this is none, and has been told. */
static int caller_read(struct caller *c, struct px_preamble *p)
{
	int rc;
	ssize_t n;

	do
		n = recv(c->fd, c->said + c->n, sizeof c->said - c->n, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n <= 0) {
		/* A connection without a byte is a port scan, or a test whether we live. */
		if (c->n > 0)
			caller_note(c, "lost", "it ended before its preamble was complete");
		return -1;
	}
	c->n += (size_t)n;
	rc = px_preamble_get(c->said, c->n, p);
	if (rc >= 0)
		return 1;
	if (rc == PX_ESHORT)
		return 0;
	caller_note(c, "closed",
		rc == PX_EVERSION ? "another protocol version" : "what it sent is no PACX preamble");
	c->door->turned_away++;
	return -1;
}

static void on_caller(uv_poll_t *poll, int status, int events)
{
	struct caller *c = poll->data;
	struct pxd_door *d = c->door;
	struct sockaddr_storage from = c->from;
	struct px_preamble p;
	int rc = status < 0 ? -1 : caller_read(c, &p);

	(void)events;
	if (d->events)
		++*d->events;
	if (rc > 0)
		d->came(d->owner, caller_take(c), &from, &p);
	else if (rc < 0)
		caller_drop(c);
}

static void make_room(struct pxd_door *d, const char *why)
{
	struct pxd_crowd_place *p = pxd_crowd_victim(&d->callers);
	struct caller *c = px_list_entry(p, struct caller, place);
	char who[PXD_PEER_TEXT];

	pxd_peer_text(&c->from, who);
	pxd_quiet_log(d->quiet, PX_LOG_WARN,
		"closed a connection from %s: %s, and %d wait for their preamble: this one was drawn", who,
		why, d->callers.n);
	d->turned_away++;
	caller_drop(c);
}

/* A new connection: hear what it has said already. */
static void caller_new(struct pxd_door *d, int fd, const struct sockaddr_storage *from)
{
	struct caller *c = calloc(1, sizeof *c);
	struct px_preamble p;
	int rc;

	if (!c) {
		pxd_door_reset(fd);
		return;
	}
	c->door = d;
	c->fd = fd;
	c->from = *from;
	c->deadline = uv_now(d->loop) + PXD_DOOR_MS;
	rc = caller_read(c, &p);
	if (rc == 0 && d->callers.n >= d->callers.most)
		make_room(d, "there is no place left");
	if (rc == 0 && uv_poll_init(d->loop, &c->poll, fd) == 0) {
		c->poll.data = c;
		if (pxd_crowd_join(&d->callers, &c->place, (const struct sockaddr *)from) < 0 ||
			uv_poll_start(&c->poll, UV_READABLE, on_caller) < 0)
			caller_drop(c);
		else if (!uv_is_active((uv_handle_t *)&d->timer))
			uv_timer_start(&d->timer, on_timer, SWEEP_MS, 0);
		return;
	}
	free(c);
	if (rc > 0)
		d->came(d->owner, fd, from, &p);
	else
		pxd_door_reset(fd);
}

static void rest(struct pxd_door *d)
{
	d->resting = true;
	for (int i = 0; i < d->nsocks; i++)
		uv_poll_stop(&d->sock[i].poll);
	uv_timer_start(&d->timer, on_timer, PXD_DOOR_REST_MS, 0);
}

/* Neither must the loop spin on a connection that cannot be accepted, nor may those who say nothing keep all descriptors. */
static bool out_of_descriptors(struct pxd_door *d, int e)
{
	if (e != EMFILE && e != ENFILE && e != ENOBUFS && e != ENOMEM)
		return false;
	if (d->callers.n == 0) {
		pxd_quiet_log(d->quiet, PX_LOG_WARN,
			"cannot accept a connection: %s; trying again every %d ms", strerror(e),
			PXD_DOOR_REST_MS);
		rest(d);
		return true;
	}
	for (int i = 0; i < ROOM && d->callers.n > 0; i++)
		make_room(d, strerror(e));
	return true;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct pxd_door *d = poll->data;
	int i = 0;

	(void)events;
	if (d->events)
		++*d->events;
	while (i < d->nsocks && &d->sock[i].poll != poll)
		i++;
	uv_update_time(d->loop);
	for (int k = 0; k < BATCH && status == 0 && d->open; k++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof from;
		int fd = accept4(d->sock[i].fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			caller_new(d, fd, &from);
		else if (errno == EAGAIN || errno == EWOULDBLOCK || out_of_descriptors(d, errno))
			return;
		else if (errno != ECONNABORTED && errno != EINTR)
			pxd_quiet_log(
				d->quiet, PX_LOG_WARN, "cannot accept a connection: %s", strerror(errno));
	}
}

static void on_timer(uv_timer_t *t)
{
	struct pxd_door *d = t->data;
	uint64_t now = uv_now(d->loop);

	if (d->events)
		++*d->events;
	for (int i = 0; i < d->nsocks && d->resting; i++)
		uv_poll_start(&d->sock[i].poll, UV_READABLE, on_connection);
	d->resting = false;
	for (int i = d->callers.n - 1; i >= 0; i--) { /* the last one takes the place of one that goes */
		struct caller *c = px_list_entry(d->callers.place[i], struct caller, place);

		if (now < c->deadline)
			continue;
		caller_note(c, "closed", "no complete preamble within 10 s");
		caller_drop(c);
	}
	if (d->callers.n > 0)
		uv_timer_start(&d->timer, on_timer, SWEEP_MS, 0);
}

/* A bound socket, or -errno. SO_REUSEPORT comes second, because with it a second daemon on the same port would go unnoticed. */
static int bound_socket(const struct sockaddr *a, socklen_t len, bool shared)
{
	int one = 1, fd = -1, rc;

	for (int reuse = 0; reuse <= shared; reuse++) {
		fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return -errno;
		if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
			(a->sa_family != AF_INET6 ||
				setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
			(!reuse || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0) &&
			bind(fd, a, len) == 0)
			return fd;
		rc = -errno;
		close(fd);
		if (rc != -EADDRINUSE)
			break;
	}
	return rc;
}

int pxd_door_init(struct pxd_door *d)
{
	int rc = uv_timer_init(d->loop, &d->timer);

	if (rc < 0)
		return rc;
	d->timer.data = d;
	d->open = true;
	pxd_crowd_init(&d->callers, pxd_crowd_share(4, PXD_DOOR_CALLERS));
	return 0;
}

int pxd_door_listen(struct pxd_door *d, const struct sockaddr *a, socklen_t len, bool shared)
{
	int fd = d->nsocks < PXD_DOOR_ADDRESSES ? bound_socket(a, len, shared) : -ENOSPC, rc;

	if (fd < 0)
		return fd;
	rc = listen(fd, BACKLOG) < 0 ? -errno : uv_poll_init(d->loop, &d->sock[d->nsocks].poll, fd);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	d->sock[d->nsocks].fd = fd;
	d->sock[d->nsocks].poll.data = d;
	return uv_poll_start(&d->sock[d->nsocks++].poll, UV_READABLE, on_connection);
}

void pxd_door_close(struct pxd_door *d)
{
	if (!d->open)
		return;
	d->open = false;
	while (d->callers.n > 0)
		caller_drop(px_list_entry(d->callers.place[0], struct caller, place));
	pxd_crowd_fini(&d->callers);
	for (int i = 0; i < d->nsocks; i++) {
		uv_close((uv_handle_t *)&d->sock[i].poll, NULL);
		close(d->sock[i].fd);
	}
	uv_close((uv_handle_t *)&d->timer, NULL);
}
