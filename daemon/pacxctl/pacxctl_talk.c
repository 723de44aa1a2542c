/* pacxctl_talk.c: see pacxctl_talk.h. */
#include "pacxctl_talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "wait.h"

void pxd_talk_init(struct pxd_talk *t, int fd)
{
	*t = (struct pxd_talk){ .fd = fd };
}

void pxd_talk_close(struct pxd_talk *t)
{
	if (t->tls)
		pxd_tls_shutdown(t->tls);
	pxd_tls_free(t->tls);
	if (t->fd >= 0)
		close(t->fd);
	*t = (struct pxd_talk){ .fd = -1 };
}

bool pxd_talk_wait(struct pxd_talk *t, bool in, bool out, uint64_t until)
{
	struct pollfd p = { t->fd, (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0)), 0 };

	if (in && t->tls && pxd_tls_pending(t->tls))
		return true;
	for (;;) {
		uint64_t now = px_now_ns();
		int n = poll(&p, 1, now >= until ? 0 : (int)((until - now) / 1000000 + 1));

		if (n > 0)
			return true;
		if ((n < 0 && errno != EINTR) || px_now_ns() >= until)
			return false;
	}
}

static int fail(struct pxd_talk *t, int rc, const char *why)
{
	snprintf(t->why, sizeof t->why, "%s", why);
	return rc;
}

/* tls_result: one of ours for an error of TLS. */
static int tls_result(struct pxd_talk *t, ssize_t rc)
{
	if (rc == PXD_TLS_EOF)
		return fail(t, PX_ECLOSED, "the other side closed the connection");
	return fail(t, PX_EPROTO, pxd_tls_why(t->tls));
}

int pxd_talk_secure(struct pxd_talk *t, struct pxd_tls_ctx *ctx, bool dials, int peer, uint64_t until)
{
	t->tls = dials ? pxd_tls_client(ctx, t->fd, peer) : pxd_tls_server(ctx, t->fd);
	if (!t->tls)
		return fail(t, PX_ENOMEM, "out of memory");
	for (;;) {
		int rc = pxd_tls_shake(t->tls);

		if (rc == 0)
			return 0;
		if (rc != PXD_TLS_WANT_READ && rc != PXD_TLS_WANT_WRITE)
			return tls_result(t, rc);
		if (!pxd_talk_wait(t, rc == PXD_TLS_WANT_READ, rc == PXD_TLS_WANT_WRITE, until))
			return fail(t, PX_ETIMEOUT, "no answer in time");
	}
}

ssize_t pxd_talk_push(struct pxd_talk *t, const void *p, size_t n)
{
	struct iovec v = { (void *)(uintptr_t)p, n };
	ssize_t k;

	if (t->tls) {
		k = pxd_tls_writev(t->tls, &v, 1);
		if (k > 0)
			return k;
		return k == PXD_TLS_WANT_READ || k == PXD_TLS_WANT_WRITE ? 0 : tls_result(t, k);
	}
	k = send(t->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (k >= 0)
		return k;
	return errno == EAGAIN || errno == EINTR ? 0 : fail(t, PX_EIO, strerror(errno));
}

int pxd_talk_send(struct pxd_talk *t, const void *p, size_t n, uint64_t until)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = pxd_talk_push(t, (const uint8_t *)p + at, n - at);

		if (k < 0)
			return (int)k;
		at += (size_t)k;
		if (k == 0 && !pxd_talk_wait(t, false, true, until))
			return fail(t, PX_ETIMEOUT, "the other side takes nothing more");
	}
	return 0;
}

ssize_t pxd_talk_some(struct pxd_talk *t, void *p, size_t n, uint64_t until)
{
	for (;;) {
		ssize_t k;

		if (t->tls) {
			k = pxd_tls_read(t->tls, p, n);
			if (k > 0)
				return k;
			if (k != PXD_TLS_WANT_READ && k != PXD_TLS_WANT_WRITE)
				return tls_result(t, k);
		} else {
			k = recv(t->fd, p, n, MSG_DONTWAIT);
			if (k > 0)
				return k;
			if (k == 0)
				return fail(t, PX_ECLOSED, "the other side closed the connection");
			if (errno != EAGAIN && errno != EINTR)
				return fail(t, PX_EIO, strerror(errno));
		}
		if (!pxd_talk_wait(t, true, false, until))
			return 0;
	}
}

int pxd_talk_recv(struct pxd_talk *t, void *p, size_t n, uint64_t until)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = pxd_talk_some(t, (uint8_t *)p + at, n - at, until);

		if (k < 0)
			return (int)k;
		if (k == 0)
			return fail(t, PX_ETIMEOUT, "no answer in time");
		at += (size_t)k;
	}
	return 0;
}
