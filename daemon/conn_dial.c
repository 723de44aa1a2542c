/* conn_dial.c: see conn_dial.h. */
#include "conn_dial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "err.h"

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000

static void attempt(struct pxd_dial *dial);
static void next_address(struct pxd_dial *dial);

static void on_pause_over(uv_timer_t *t)
{
	struct pxd_dial *dial = t->data;

	pxd_of(t->loop)->events++;
	attempt(dial);
}

/* This round has failed, `why` says how: pause, then begin anew. */
static void again(struct pxd_dial *dial)
{
	if (dial->list)
		uv_freeaddrinfo(dial->list);
	dial->list = dial->at = NULL;
	if (dial->closed)
		return;
	uv_timer_start(&dial->timer, on_pause_over, dial->pause_ms, 0);
	dial->pause_ms = dial->pause_ms * 2 < PAUSE_MAX_MS ? dial->pause_ms * 2 : PAUSE_MAX_MS;
}

static void drop(struct pxd_dial *dial, const char *why)
{
	if (dial->conn)
		pxd_conn_close(dial->conn);
	dial->conn = NULL;
	uv_timer_stop(&dial->timer);
	snprintf(dial->why, sizeof dial->why, "%s", why);
}

static void on_limit(uv_timer_t *t)
{
	struct pxd_dial *dial = t->data;

	pxd_of(t->loop)->events++;
	drop(dial, dial->hand.n ? "its answer is incomplete" : "no answer");
	next_address(dial);
}

static void hand_room(struct pxd_conn *c, uv_buf_t *buf)
{
	struct pxd_dial *dial = c->owner;

	*buf = uv_buf_init(
		(char *)dial->hand.buf + dial->hand.n, (unsigned)(sizeof dial->hand.buf - dial->hand.n));
}

static void accepted(struct pxd_dial *dial, const struct px_hello *hello)
{
	struct pxd *d = dial->d;
	char why[PXD_REASON];
	int rc = px_hello_check(&d->hello, hello, why, sizeof why);
	struct pxd_conn *c = dial->conn;

	if (rc == 0 &&
		(hello->site != dial->peer || strcmp(hello->name, pxd_site_name(d, dial->peer)) != 0)) {
		snprintf(why, sizeof why,
			"expected site %s, found site %s; use the same hostfile on all sites, "
			"with one port for each",
			pxd_site_name(d, dial->peer), hello->name);
		rc = PX_ESITE;
	}
	if (rc < 0) {
		pxd_hand_put_refuse(c, why);
		pxd_fail(d, PXD_EXIT_START, "the answer of site %s (%s) does not fit: %s",
			pxd_site_name(d, dial->peer), c->peer, why);
		return;
	}
	uv_timer_stop(&dial->timer);
	dial->conn = NULL;
	dial->up(dial, c, hello);
	again(dial); /* frees the addresses; the owner has closed us, so nothing is tried */
}

static void hand_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct pxd_dial *dial = c->owner;
	struct px_hello hello;
	char reason[PXD_REASON], text[160];
	int type = 0, rc;

	(void)base;
	dial->hand.n += n;
	rc = pxd_hand_get(&dial->hand, &type, &hello, reason);
	if (rc == PX_ESHORT)
		return;
	if (rc == PX_EVERSION) {
		pxd_fail(dial->d, PXD_EXIT_START, "site %s at %s: %s", pxd_site_name(dial->d, dial->peer),
			c->peer, reason);
	} else if (rc < 0) {
		/* Not PACX: perhaps something else has the port for the moment. The status line shows it. */
		snprintf(text, sizeof text, "%.60s: %.90s", c->peer, reason);
		drop(dial, text);
		next_address(dial);
	} else if (type == PX_F_REFUSE) {
		pxd_fail(dial->d, PXD_EXIT_START, "site %s (%s) refused us: %s",
			pxd_site_name(dial->d, dial->peer), c->peer, reason);
	} else {
		accepted(dial, &hello);
	}
}

static void hand_lost(struct pxd_conn *c, int err)
{
	struct pxd_dial *dial = c->owner;
	char text[160];

	snprintf(text, sizeof text, "%s: %s", c->peer,
		err == UV_EOF ? "it closed the connection" : uv_strerror(err));
	drop(dial, text);
	next_address(dial);
}

static const struct pxd_conn_ops hand_ops = { hand_room, hand_got, hand_lost };

static void on_connect(uv_connect_t *req, int status)
{
	struct pxd_conn *c = req->handle->data;
	struct pxd_dial *dial = c->owner;

	pxd_of(req->handle->loop)->events++;
	if (dial->closed || dial->conn != c)
		return; /* the limit came first, or we are closed: the connection closes already */
	if (status == 0)
		status = pxd_conn_begin(c);
	if (status == 0 && pxd_hand_put_hello(c, &dial->d->hello) < 0)
		status = UV_ECONNRESET;
	if (status < 0) {
		drop(dial, uv_strerror(status));
		next_address(dial);
	}
}

/* Try the address dial->at, or if there is none left, pause. */
static void next_address(struct pxd_dial *dial)
{
	while (dial->at && !dial->closed) {
		struct addrinfo *a = dial->at;
		int rc;

		dial->at = a->ai_next;
		dial->hand.n = 0;
		dial->conn = pxd_conn_new(&dial->d->loop, &hand_ops, dial);
		if (!dial->conn)
			break;
		rc = uv_tcp_connect(&dial->conn->connect, &dial->conn->tcp, a->ai_addr, on_connect);
		if (rc == 0) {
			uv_timer_start(&dial->timer, on_limit, PXD_HAND_MS, 0);
			return;
		}
		drop(dial, uv_strerror(rc));
	}
	again(dial);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct pxd_dial *dial = req->data;
	char text[160];

	pxd_of(req->loop)->events++;
	dial->resolving = false;
	if (status < 0 && !dial->closed) {
		snprintf(text, sizeof text, "cannot find the address of %s: %s",
			dial->d->hosts->sites[dial->peer].host, uv_strerror(status));
		drop(dial, text);
	}
	dial->list = dial->at = status < 0 ? NULL : list;
	if (dial->closed)
		again(dial);
	else
		next_address(dial);
}

static void attempt(struct pxd_dial *dial)
{
	const struct pxd_site *s = &dial->d->hosts->sites[dial->peer];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char port[12];
	int rc;

	snprintf(port, sizeof port, "%d", s->port);
	dial->resolve.data = dial;
	rc = uv_getaddrinfo(&dial->d->loop, &dial->resolve, on_resolved, s->host, port, &hints);
	if (rc < 0) {
		drop(dial, uv_strerror(rc));
		again(dial);
		return;
	}
	dial->resolving = true;
}

int pxd_dial_open(struct pxd_dial *dial, struct pxd *d, int peer)
{
	dial->d = d;
	dial->peer = peer;
	dial->pause_ms = PAUSE_MIN_MS;
	if (uv_timer_init(&d->loop, &dial->timer) < 0)
		return PX_ENOMEM;
	dial->timer.data = dial;
	attempt(dial);
	return PX_OK;
}

void pxd_dial_close(struct pxd_dial *dial)
{
	if (dial->closed)
		return;
	dial->closed = true;
	if (dial->conn)
		pxd_conn_close(dial->conn);
	dial->conn = NULL;
	if (dial->resolving)
		uv_cancel((uv_req_t *)&dial->resolve);
	uv_close((uv_handle_t *)&dial->timer, NULL);
}
