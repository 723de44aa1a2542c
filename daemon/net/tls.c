/* tls.c: Design: OpenSSL between two buffers of ours.
 *
 * OpenSSL makes one write(2) per record of 16 KiB and two read(2) per record; our BIO gathers what it writes in `out`
 * and hands it to the kernel in one send, and reads far ahead into `in`.
 *
 *  1. The last byte of what was encrypted is reported as written only when its record has left `out` for the kernel: the
 *     caller need not know of `out`, and a writer that has nothing more to write has nothing left to flush. Until then that
 *     byte is `held`: the next call begins with it by contract, flushes, and reports it without looking at it. The bytes before
 *     it are reported at once, as the peer may have them, and may answer, before the rest has left.
 *  2. What `in` holds when SSL_read says WANT_READ is nothing: the BIO asks the socket only when `in` is empty. So a
 *     nonempty `in` means that a read can go on.
 *  3. Before the handshake is done a peer is a stranger: it may send SHAKE_MAX bytes, and no buffer grows.
 *  4. The handshake is good only with our PSK: no certificate exists, the client takes none, and both check that the
 *     PSK was used (SSL_session_reused).
 *  5. After the first error every call returns it again (dead).
 */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "tls_inner.h"

#define RECORD 16384 /* plaintext of the largest record */
/* Plaintext encrypted before one send: a segment of 256 KiB and its header. 1.7 times as fast as a send per record. */
#define BATCH     (17 * RECORD)
#define OUT_MAX   (BATCH + 65536) /* its records, with room: one that does not fit would have to be repeated */
#define OUT_MIN   4096
#define IN_MIN    4096
#define IN_MAX    (8 * RECORD)
#define SHAKE_MAX 16384 /* bytes from a peer that has not proved anything; a handshake takes 400 */
/* RFC 8446, 5.5: AES-GCM is good for 2^24.5 records of 16 KiB per key. */
#define REKEY (UINT64_C(1) << 23)

int pxd_tls_fail(struct pxd_tls *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!t->why[0])
		vsnprintf(t->why, sizeof t->why, fmt, ap);
	va_end(ap);
	return t->dead = PXD_TLS_ERROR;
}

/* half_room: at least n bytes behind tail, not more than max in all. */
static bool half_room(struct pxd_tls_half *h, size_t n, size_t max)
{
	size_t size = h->size;
	uint8_t *mem;

	if (h->head == h->tail)
		h->head = h->tail = 0;
	if (h->size - h->tail >= n)
		return true;
	if (h->head > 0) {
		memmove(h->mem, h->mem + h->head, h->tail - h->head);
		h->tail -= h->head;
		h->head = 0;
	}
	while (size - h->tail < n)
		size = size ? 2 * size : OUT_MIN;
	if (size > max)
		size = max;
	if (size > h->size) {
		mem = realloc(h->mem, size);
		if (!mem)
			return false;
		h->mem = mem;
		h->size = size;
	}
	return h->size - h->tail >= n;
}

/* out_flush: 0 = nothing left, or want. */
static int out_flush(struct pxd_tls *t)
{
	struct pxd_tls_half *o = &t->out;

	while (o->head < o->tail) {
		ssize_t n = send(t->fd, o->mem + o->head, o->tail - o->head, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			o->head += (size_t)n;
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return PXD_TLS_WANT_WRITE;
		else if (errno != EINTR)
			return pxd_tls_fail(t, "%s", strerror(errno));
	}
	o->head = o->tail = 0;
	return 0;
}

static int bio_write(BIO *b, const char *data, int n)
{
	struct pxd_tls *t = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (n <= 0)
		return 0;
	/* A peer that makes us answer but never reads: wait for it. */
	if (!half_room(&t->out, (size_t)n, OUT_MAX)) {
		if (out_flush(t) == PXD_TLS_WANT_WRITE)
			BIO_set_retry_write(b);
		if (BIO_should_retry(b) || !half_room(&t->out, (size_t)n, OUT_MAX))
			return -1;
	}
	memcpy(t->out.mem + t->out.tail, data, (size_t)n);
	t->out.tail += (size_t)n;
	return n;
}

static int bio_read(BIO *b, char *data, int want)
{
	struct pxd_tls *t = BIO_get_data(b);
	struct pxd_tls_half *i = &t->in;
	size_t n = (size_t)want;

	BIO_clear_retry_flags(b);
	if (want <= 0)
		return 0;
	if (i->head == i->tail && t->dry) {
		BIO_set_retry_read(b);
		return -1;
	}
	if (i->head == i->tail) {
		ssize_t got;

		i->head = i->tail = 0;
		if (!t->shaken && t->seen >= SHAKE_MAX) {
			pxd_tls_fail(t, "more than %d bytes before the end of the handshake", SHAKE_MAX);
			return -1;
		}
		if (!half_room(i, IN_MIN, IN_MAX)) {
			pxd_tls_fail(t, "out of memory");
			return -1;
		}
		do
			got = recv(t->fd, i->mem, i->size, MSG_DONTWAIT);
		while (got < 0 && errno == EINTR);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			BIO_set_retry_read(b);
			return -1;
		}
		if (got <= 0) {
			pxd_tls_fail(t, "%s",
				got < 0     ? strerror(errno)
				: t->shaken ? "the connection was cut"
				: t->server ? "the dialler closed the connection during the handshake"
					    : "the other side closed the connection during the handshake");
			return (int)got;
		}
		i->tail = (size_t)got;
		if (!t->shaken)
			t->seen += (uint64_t)got;
		else if (i->tail == i->size && i->size < IN_MAX) /* much is coming */
			half_room(i, i->size, IN_MAX);
	}
	if (n > i->tail - i->head)
		n = i->tail - i->head;
	memcpy(data, i->mem + i->head, n);
	i->head += n;
	return (int)n;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	struct pxd_tls *t = BIO_get_data(b);

	(void)num;
	(void)ptr;
	if (cmd != BIO_CTRL_FLUSH)
		return cmd == BIO_CTRL_PUSH || cmd == BIO_CTRL_POP ? 1 : 0;
	BIO_clear_retry_flags(b);
	switch (out_flush(t)) {
	case 0:
		return 1;
	case PXD_TLS_WANT_WRITE:
		BIO_set_retry_write(b);
		return -1;
	default:
		return -1;
	}
}

BIO_METHOD *pxd_tls_bio(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "pacx socket");

	if (m && BIO_meth_set_write(m, bio_write) && BIO_meth_set_read(m, bio_read) &&
		BIO_meth_set_ctrl(m, bio_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ssl_fail: from OpenSSL's result to ours. */
static int ssl_fail(struct pxd_tls *t, int rc)
{
	unsigned long e;
	const char *text;

	switch (SSL_get_error(t->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return PXD_TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE:
		return PXD_TLS_WANT_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		snprintf(t->why, sizeof t->why, "the other side has ended the connection");
		return t->dead = PXD_TLS_EOF;
	default:
		break;
	}
	if (t->dead) /* the BIO has said why */
		return t->dead;
	e = ERR_peek_error();
	text = e ? ERR_reason_error_string(e) : NULL;
	switch (ERR_GET_REASON(e)) {
	case SSL_R_BINDER_DOES_NOT_VERIFY:
		return pxd_tls_fail(t, "the dialler, which says it is site %d, has another key", t->other);
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_CIPHER:
		return pxd_tls_fail(t, "the dialler offers no key of this job: no site of it");
	case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
		if (!t->server && !t->shaken)
			return pxd_tls_fail(t, "the other side has another key");
		break;
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
		if (!t->server && !t->shaken)
			return pxd_tls_fail(t,
				"the other side refuses our identity: it belongs to another job, or is "
				"another site");
		break;
	case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
	case SSL_R_BAD_RECORD_TYPE:
		if (t->shaken)
			return pxd_tls_fail(t, "what came was changed on the way (%s)", text ? text : "TLS");
		break;
	default:
		break;
	}
	return pxd_tls_fail(t, "TLS: %s", text ? text : "unknown error");
}

static struct pxd_tls *tls_new(struct pxd_tls_ctx *ctx, int fd, bool server, int peer)
{
	struct pxd_tls *t = calloc(1, sizeof *t);
	BIO *b = NULL;

	if (!t)
		return NULL;
	t->ctx = ctx;
	t->fd = fd;
	t->server = server;
	t->peer = -1;
	t->other = peer;
	t->gather = malloc(RECORD);
	ERR_clear_error();
	t->ssl = SSL_new(ctx->ssl);
	b = BIO_new(ctx->bio);
	if (!t->gather || !t->ssl || !b || !SSL_set_app_data(t->ssl, t)) {
		ERR_clear_error();
		BIO_free(b);
		pxd_tls_free(t);
		return NULL;
	}
	BIO_set_data(b, t);
	BIO_set_init(b, 1);
	SSL_set_bio(t->ssl, b, b);
	if (server) {
		SSL_set_accept_state(t->ssl);
	} else {
		pxd_tls_identity(ctx, ctx->self, peer, t->identity);
		SSL_set_connect_state(t->ssl);
		SSL_set_verify(t->ssl, SSL_VERIFY_PEER, NULL); /* no certificate is trusted */
	}
	return t;
}

struct pxd_tls *pxd_tls_client(struct pxd_tls_ctx *ctx, int fd, int peer)
{
	return tls_new(ctx, fd, false, peer);
}

struct pxd_tls *pxd_tls_server(struct pxd_tls_ctx *ctx, int fd)
{
	return tls_new(ctx, fd, true, -1);
}

void pxd_tls_free(struct pxd_tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t->gather);
	free(t->in.mem);
	free(t->out.mem);
	free(t);
}

int pxd_tls_shake(struct pxd_tls *t)
{
	int rc;

	if (t->dead)
		return t->dead;
	if (t->shaken)
		return 0;
	ERR_clear_error();
	rc = SSL_do_handshake(t->ssl);
	if (rc != 1) {
		rc = ssl_fail(t, rc);
		return rc == PXD_TLS_EOF ? pxd_tls_fail(t, "the other side ended the handshake") : rc;
	}
	if (t->why[0] || !SSL_session_reused(t->ssl) || SSL_version(t->ssl) != TLS1_3_VERSION)
		return pxd_tls_fail(t, "the other side did not use the job's key");
	t->peer = t->other;
	t->shaken = true;
	return 0;
}

ssize_t pxd_tls_read(struct pxd_tls *t, void *buf, size_t n)
{
	size_t got = 0;

	if (t->dead)
		return t->dead;
	if (!t->shaken)
		return pxd_tls_fail(t, "read before the handshake");
	ERR_clear_error();
	/* A record gives 16 KiB at most: go on while it costs no system call. */
	do {
		size_t k = 0;
		int rc = SSL_read_ex(t->ssl, (uint8_t *)buf + got, n - got, &k);

		if (rc != 1) {
			rc = ssl_fail(t, rc); /* remembered, if it is the end */
			return got ? (ssize_t)got : rc;
		}
		got += k;
	} while (got < n && pxd_tls_pending(t));
	return (ssize_t)got;
}

/* A list of buffers and the place in it. */
struct cursor {
	const struct iovec *v;
	int n;
	size_t at;
};

/* gather_next: the next piece to encrypt, at most max bytes: whole records of a long buffer as they stand, or short
 * pieces copied together. A short piece before a long buffer is a record of its own: cheaper than copying the long one. */
static size_t gather_next(struct cursor *c, uint8_t *mem, size_t max, const void **piece)
{
	size_t got = 0;

	if (max > RECORD)
		max -= max % RECORD;
	*piece = mem;
	while (c->n > 0 && got < max && got < RECORD) {
		const uint8_t *p = (const uint8_t *)c->v->iov_base + c->at;
		size_t left = c->v->iov_len - c->at, k = left;

		if (left >= RECORD && got > 0)
			break;
		if (left >= RECORD) {
			k -= k % RECORD;
			got = k < max ? k : max;
			c->at += got;
			*piece = p;
			return got;
		}
		if (k > max - got)
			k = max - got;
		if (k > RECORD - got)
			k = RECORD - got;
		if (k > 0)
			memcpy(mem + got, p, k);
		got += k;
		c->at += k;
		if (c->at == c->v->iov_len) {
			c->v++;
			c->n--;
			c->at = 0;
		}
	}
	return got;
}

/* hold_last: the result of a call that encrypted `taken` bytes and then had to stop with rc. */
static ssize_t hold_last(struct pxd_tls *t, size_t taken, int rc)
{
	t->held = taken > 0;
	return taken > 1 && !t->dead ? (ssize_t)taken - 1 : rc;
}

ssize_t pxd_tls_writev(struct pxd_tls *t, const struct iovec *v, int n)
{
	struct cursor c = { v, n, 0 };
	size_t taken = 0, all = 0, done;
	int rc;

	if (t->dead)
		return t->dead;
	if (!t->shaken)
		return pxd_tls_fail(t, "write before the handshake");
	for (int i = 0; i < n; i++)
		all += v[i].iov_len;
	rc = out_flush(t);
	if (rc < 0)
		return rc;
	if (t->held && all > 0) {
		t->held = false;
		return 1;
	}
	ERR_clear_error();
	if (t->records >= REKEY && SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		t->records = 0;
	while (taken < BATCH) {
		const void *piece;
		size_t len = gather_next(&c, t->gather, BATCH - taken, &piece);

		for (size_t at = 0; at < len; at += done) {
			rc = SSL_write_ex(t->ssl, (const uint8_t *)piece + at, len - at, &done);
			if (rc != 1) {
				return hold_last(t, taken, ssl_fail(t, rc));
			}
			taken += done;
			t->records++;
		}
		if (len == 0)
			break;
	}
	rc = out_flush(t);
	return rc == 0 ? (ssize_t)taken : hold_last(t, taken, rc);
}

bool pxd_tls_pending(const struct pxd_tls *t)
{
	return !t->dead && t->shaken && (t->in.head < t->in.tail || SSL_pending(t->ssl) > 0);
}

void pxd_tls_dry(struct pxd_tls *t, bool dry)
{
	t->dry = dry;
}

void pxd_tls_shutdown(struct pxd_tls *t)
{
	if (t->dead == PXD_TLS_ERROR || !t->shaken)
		return;
	ERR_clear_error();
	SSL_shutdown(t->ssl);
	out_flush(t);
	ERR_clear_error();
}

int pxd_tls_peer(const struct pxd_tls *t)
{
	return t->peer;
}

const char *pxd_tls_why(const struct pxd_tls *t)
{
	return t->why[0] ? t->why : "no error";
}
