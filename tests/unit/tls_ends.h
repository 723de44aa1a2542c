/* tls_ends.h: two ends of a TLS connection in one process, and somebody in the middle who may look and change. */
#ifndef TLS_ENDS_H
#define TLS_ENDS_H

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "test.h"
#include "tls.h"

#define TURNS 100000 /* of a loop that must come to its end */

static const uint8_t key_a[PXD_KEY_SIZE] = { 1, 2, 3 }, key_b[PXD_KEY_SIZE] = { 1, 2, 4 };

static inline struct pxd_tls_ctx *ctx_of(const uint8_t *key, const char *job, int self)
{
	struct pxd_tls_ctx *c = NULL;
	uint8_t hash[PX_JOBHASH_SIZE];
	char why[256] = "";

	pxd_jobhash(job, hash);
	if (pxd_tls_ctx_new(&c, key, hash, self, why, sizeof why) < 0)
		printf("  %s\n", why);
	return c;
}

static inline void sockets(int fd[2], int size)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0)
		abort();
	for (int i = 0; i < 2 && size; i++) {
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	}
}

/* Two ends and what may stand between them. */
struct ends {
	struct pxd_tls_ctx *cc, *sc;
	struct pxd_tls *c, *s;
	int fd[2];  /* of c, of s */
	int mid[2]; /* the other ends, when somebody stands between; else -1 */
	size_t passed[2];
	long flip;            /* bit of the dialler's bytes to change, -1 = none */
	uint8_t taken[65536]; /* what the dialler has sent */
	size_t ntaken;
};

static inline void ends_open(
	struct ends *e, struct pxd_tls_ctx *cc, struct pxd_tls_ctx *sc, int peer, int size, bool between)
{
	int a[2], b[2];

	memset(e, 0, sizeof *e);
	e->flip = -1;
	e->cc = cc;
	e->sc = sc;
	e->mid[0] = e->mid[1] = -1;
	sockets(a, size);
	e->fd[0] = a[0];
	e->fd[1] = a[1];
	if (between) {
		sockets(b, size);
		e->mid[0] = a[1];
		e->mid[1] = b[0];
		e->fd[1] = b[1];
	}
	e->c = pxd_tls_client(cc, e->fd[0], peer);
	e->s = pxd_tls_server(sc, e->fd[1]);
}

static inline void ends_close(struct ends *e)
{
	pxd_tls_free(e->c);
	pxd_tls_free(e->s);
	for (int i = 0; i < 2; i++) {
		if (e->fd[i] >= 0)
			close(e->fd[i]);
		if (e->mid[i] >= 0)
			close(e->mid[i]);
	}
	if (e->sc != e->cc)
		pxd_tls_ctx_free(e->sc);
	pxd_tls_ctx_free(e->cc);
}

static inline void middle(struct ends *e)
{
	uint8_t buf[4096];
	ssize_t n;

	for (int i = 0; i < 2 && e->mid[0] >= 0; i++) {
		while ((n = recv(e->mid[i], buf, sizeof buf, 0)) > 0) {
			for (ssize_t k = 0; i == 0 && k < n; k++) {
				long bit = e->flip - 8 * (long)(e->passed[0] + (size_t)k);

				if (bit >= 0 && bit < 8)
					buf[k] ^= (uint8_t)(1 << bit);
				if (e->ntaken < sizeof e->taken)
					e->taken[e->ntaken++] = buf[k];
			}
			e->passed[i] += (size_t)n;
			if (send(e->mid[!i], buf, (size_t)n, MSG_NOSIGNAL) != n)
				return;
		}
		if (n == 0)
			shutdown(e->mid[!i], SHUT_WR);
	}
}

static inline bool waits(int rc)
{
	return rc == PXD_TLS_WANT_READ || rc == PXD_TLS_WANT_WRITE;
}

/* ends_shake: both as far as they come; a side that failed closes its socket. */
static inline void ends_shake(struct ends *e, int *c, int *s)
{
	*c = *s = PXD_TLS_WANT_READ;
	for (int i = 0; i < 100 && (waits(*c) || waits(*s)); i++) {
		if (waits(*c))
			*c = pxd_tls_shake(e->c);
		if (*c == PXD_TLS_ERROR)
			shutdown(e->fd[0], SHUT_WR);
		middle(e);
		if (waits(*s))
			*s = pxd_tls_shake(e->s);
		if (*s == PXD_TLS_ERROR)
			shutdown(e->fd[1], SHUT_WR);
		middle(e);
	}
}

/* shaken: a pair that works, or nothing. */
static inline bool shaken(struct ends *e, int size, bool between)
{
	int c, s;

	ends_open(e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, size, between);
	if (!e->c || !e->s)
		return false;
	ends_shake(e, &c, &s);
	CHECK_INT(c, 0);
	CHECK_INT(s, 0);
	return c == 0 && s == 0;
}

static inline ssize_t say(struct pxd_tls *t, const char *text)
{
	const struct iovec v = { (void *)(uintptr_t)text, strlen(text) };

	return pxd_tls_writev(t, &v, 1);
}

#endif
