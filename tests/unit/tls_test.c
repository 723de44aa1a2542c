/* tls_test.c: handshakes that must work, all those that must not, and the bytes of a stream through sockets of any size. */
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

static struct pxd_tls_ctx *ctx_of(const uint8_t *key, const char *job, int self)
{
	struct pxd_tls_ctx *c = NULL;
	uint8_t hash[PX_JOBHASH_SIZE];
	char why[256] = "";

	pxd_jobhash(job, hash);
	if (pxd_tls_ctx_new(&c, key, hash, self, why, sizeof why) < 0)
		printf("  %s\n", why);
	return c;
}

static void sockets(int fd[2], int size)
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

static void ends_open(
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

static void ends_close(struct ends *e)
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

static void middle(struct ends *e)
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

static bool waits(int rc)
{
	return rc == PXD_TLS_WANT_READ || rc == PXD_TLS_WANT_WRITE;
}

/* ends_shake: both as far as they come; a side that failed closes its socket. */
static void ends_shake(struct ends *e, int *c, int *s)
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

static void check_works(const char *job, int dialler, int listener)
{
	struct ends e;
	int c, s;

	ends_open(&e, ctx_of(key_a, job, dialler), ctx_of(key_a, job, listener), listener, 0, false);
	REQUIRE(e.c && e.s);
	CHECK_INT(pxd_tls_peer(e.c), -1);
	CHECK_INT(pxd_tls_peer(e.s), -1);
	ends_shake(&e, &c, &s);
	if (!CHECK_INT(c, 0))
		printf("  dialler: %s; listener: %s\n", pxd_tls_why(e.c), pxd_tls_why(e.s));
	CHECK_INT(s, 0);
	CHECK_INT(pxd_tls_peer(e.c), listener);
	CHECK_INT(pxd_tls_peer(e.s), dialler);
	ends_close(&e);
}

TEST(handshake_proves_both_sites)
{
	check_works("melt", 0, 1);
	check_works("melt", 1, 0);
	check_works("", 4095, 17);
}

/* Each side has its own idea of key, job and names; nobody gets through, and each says why. */
static void check_refused(const uint8_t *ck, const char *cj, int cself, int cpeer, const uint8_t *sk,
	const char *sj, int sself, const char *swhy, const char *cwhy)
{
	struct ends e;
	int c, s;

	ends_open(&e, ctx_of(ck, cj, cself), ctx_of(sk, sj, sself), cpeer, 0, false);
	REQUIRE(e.c && e.s);
	ends_shake(&e, &c, &s);
	CHECK_INT(s, PXD_TLS_ERROR);
	CHECK_INT(c, PXD_TLS_ERROR);
	CHECK_INT(pxd_tls_peer(e.s), -1);
	CHECK_INT(pxd_tls_peer(e.c), -1);
	CHECK_STR(pxd_tls_why(e.s), swhy);
	CHECK_STR(pxd_tls_why(e.c), cwhy);
	CHECK_INT(pxd_tls_shake(e.s), PXD_TLS_ERROR); /* it stays so */
	ends_close(&e);
}

TEST(wrong_key_is_refused)
{
	check_refused(key_b, "melt", 0, 1, key_a, "melt", 1,
		"the dialler, which says it is site 0, has another key", "the other side has another key");
}

#define REFUSES "the other side refuses our identity: it belongs to another job, or is another site"

TEST(wrong_job_is_refused)
{
	check_refused(key_a, "melt", 0, 1, key_a, "freeze", 1, "the dialler belongs to another job", REFUSES);
}

TEST(wrong_listener_is_refused)
{
	check_refused(
		key_a, "melt", 0, 2, key_a, "melt", 1, "the dialler wants site 2, this is site 1", REFUSES);
}

/* What a site sends out cannot be turned back to it. */
TEST(own_identity_is_refused)
{
	check_refused(key_a, "melt", 1, 1, key_a, "melt", 1,
		"the dialler says it is site 1, which is this one", REFUSES);
	check_refused(
		key_a, "melt", 0, 1, key_a, "melt", 0, "the dialler wants site 1, this is site 0", REFUSES);
}

/* The dialler does not check the listener's name by a text: its key is that of the pair. */
TEST(two_diallers_do_not_meet)
{
	struct ends e;
	int c, s;

	ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
	pxd_tls_free(e.s);
	e.s = pxd_tls_client(e.sc, e.fd[1], 0);
	ends_shake(&e, &c, &s);
	CHECK(c == PXD_TLS_ERROR && s == PXD_TLS_ERROR);
	ends_close(&e);
	ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
	pxd_tls_free(e.c);
	e.c = pxd_tls_server(e.cc, e.fd[0]);
	ends_shake(&e, &c, &s);
	CHECK(c != 0 && s != 0);
	ends_close(&e);
}

/* A stream of numbers, so that each byte is known from its place. */
static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 13);
}

struct flow {
	uint64_t sent, got, total;
	uint8_t *mem;
	size_t most;   /* bytes per call */
	bool all_left; /* the last call took all it was given */
};

/* flow_write: the stream from where it stands, in pieces of any size at a new address each time. */
static bool flow_write(struct flow *f, struct pxd_tls *t)
{
	uint64_t left = f->total - f->sent;
	struct iovec v[40];
	size_t n = left < f->most ? (size_t)left : f->most, at = 0;
	ssize_t rc;
	int k = 0;

	if (n == 0)
		return false;
	n = 1 + test_random() % n;
	for (size_t i = 0; i < n; i++)
		f->mem[i] = byte_at(f->sent + i);
	for (; k < 40 && at < n; k++) {
		size_t max = test_random() % 3 ? 300 : f->most, len = test_random() % (max + 1);

		len = len < n - at ? len : n - at;
		v[k] = (struct iovec){ f->mem + at, len };
		at += len;
	}
	rc = pxd_tls_writev(t, v, k);
	if (rc > 0)
		f->sent += (uint64_t)rc;
	f->all_left = rc == (ssize_t)at;
	memset(f->mem, 0xee, n); /* what was not taken is not looked at again */
	if (at > 0)
		CHECK(rc > 0 ? (size_t)rc <= at : waits((int)rc));
	return rc > 0;
}

static bool flow_read(struct flow *f, struct pxd_tls *t)
{
	size_t n = 1 + test_random() % f->most;
	ssize_t rc = pxd_tls_read(t, f->mem, n);

	if (rc <= 0) {
		CHECK(waits((int)rc));
		return false;
	}
	CHECK((size_t)rc <= n);
	for (ssize_t i = 0; i < rc; i++, f->got++)
		if (f->mem[i] != byte_at(f->got)) {
			CHECK_UINT(f->mem[i], byte_at(f->got));
			return false;
		}
	return true;
}

static void check_flow(int size, size_t most, uint64_t total)
{
	struct flow there = { .total = total, .most = most }, back = { .total = total / 3, .most = most };
	struct ends e;
	int c, s, turns = 0;

	there.mem = back.mem = malloc(most);
	ends_open(&e, ctx_of(key_a, "flow", 0), ctx_of(key_a, "flow", 1), 1, size, false);
	REQUIRE(there.mem && e.c && e.s);
	ends_shake(&e, &c, &s);
	CHECK(c == 0 && s == 0);
	while ((there.got < there.total || back.got < back.total) && turns++ < TURNS && test_failures == 0) {
		flow_write(&there, e.c);
		flow_write(&back, e.s);
		if (test_random() % 2)
			flow_read(&there, e.s);
		if (test_random() % 2)
			flow_read(&back, e.c);
		/* Who acknowledges a byte that its writer does not know to be written is taken for a liar. */
		CHECK(there.got <= there.sent && back.got <= back.sent);
		/* When all is said to be written it is with the kernel: all of it can be read. */
		if (turns % 50 == 0 && test_failures == 0) {
			while (flow_read(&there, e.s))
				;
			CHECK(there.got <= there.sent && (!there.all_left || there.got == there.sent));
			CHECK(!pxd_tls_pending(e.s));
		}
	}
	CHECK_UINT(there.got, there.total);
	CHECK_UINT(back.got, back.total);
	ends_close(&e);
	free(there.mem);
}

TEST(bytes_arrive_in_order_whatever_their_pieces)
{
	check_flow(0, 40, 20000);
	check_flow(0, 5000, 3000000);
	check_flow(0, 70000, 8000000);
	check_flow(0, 600000, 16000000);
}

TEST(bytes_arrive_in_order_through_tiny_sockets)
{
	check_flow(1, 40, 20000);
	check_flow(1, 5000, 1000000);
	check_flow(1, 100000, 4000000);
	check_flow(1, 600000, 8000000);
}

/* shaken: a pair that works, or nothing. */
static bool shaken(struct ends *e, int size, bool between)
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

static ssize_t say(struct pxd_tls *t, const char *text)
{
	const struct iovec v = { (void *)(uintptr_t)text, strlen(text) };

	return pxd_tls_writev(t, &v, 1);
}

TEST(pending_tells_when_the_socket_is_silent)
{
	char buf[16];
	struct ends e;

	REQUIRE(shaken(&e, 0, false));
	CHECK(!pxd_tls_pending(e.s));
	CHECK_INT(say(e.c, "abcdef"), 6);
	CHECK_INT(say(e.c, "ghi"), 3);
	CHECK_INT(pxd_tls_read(e.s, buf, 4), 4);
	CHECK_MEM(buf, "abcd", 4);
	CHECK(pxd_tls_pending(e.s)); /* and yet a poll of the socket would wait for ever */
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), 5);
	CHECK_MEM(buf, "efghi", 5);
	CHECK(!pxd_tls_pending(e.s));
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_WANT_READ);
	ends_close(&e);
}

TEST(end_and_cut_are_told_apart)
{
	char buf[16];
	struct ends e;

	REQUIRE(shaken(&e, 0, false));
	CHECK_INT(say(e.c, "last"), 4);
	pxd_tls_shutdown(e.c);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), 4);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_EOF);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_EOF);
	CHECK(!pxd_tls_pending(e.s));
	ends_close(&e);

	REQUIRE(shaken(&e, 0, false));
	CHECK_INT(say(e.c, "last"), 4);
	close(e.fd[0]);
	e.fd[0] = -1;
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), 4);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_ERROR);
	CHECK_STR(pxd_tls_why(e.s), "the connection was cut");
	ends_close(&e);
}

TEST(writing_to_a_closed_socket_is_an_error_not_a_signal)
{
	struct ends e;
	ssize_t rc = 0;

	signal(SIGPIPE, SIG_DFL);
	REQUIRE(shaken(&e, 0, false));
	close(e.fd[1]);
	e.fd[1] = -1;
	for (int i = 0; i < 10 && rc >= 0; i++)
		rc = say(e.c, "is anybody there?");
	CHECK_INT(rc, PXD_TLS_ERROR);
	CHECK_INT(say(e.c, "?"), PXD_TLS_ERROR);
	pxd_tls_shutdown(e.c);
	ends_close(&e);
}

TEST(changed_bit_in_data_is_an_error)
{
	char buf[64];

	for (int i = 0; i < 20; i++) {
		struct ends e;
		ssize_t rc;

		REQUIRE(shaken(&e, 0, true));
		e.flip = (long)(8 * e.passed[0] + test_random() % (8 * (16 + 5 + 17)));
		CHECK_INT(say(e.c, "sixteen letters."), 16);
		middle(&e);
		rc = pxd_tls_read(e.s, buf, sizeof buf);
		if (rc == PXD_TLS_WANT_READ) { /* the length was changed: wait for the end */
			shutdown(e.mid[1], SHUT_WR);
			rc = pxd_tls_read(e.s, buf, sizeof buf);
		}
		CHECK_INT(rc, PXD_TLS_ERROR);
		ends_close(&e);
	}
}

/* A bit changed anywhere in what the dialler sends for the handshake: the listener never takes it for a site. (But for the
 * record's legacy version, which TLS 1.3 does not look at and does not authenticate in the first record.) */
TEST(changed_bit_in_handshake_is_refused)
{
	struct ends e;
	long bits;

	REQUIRE(shaken(&e, 0, true));
	bits = 8 * (long)e.passed[0];
	ends_close(&e);
	CHECK(bits > 8 * 200 && bits < 8 * 1000);
	for (long bit = 0; bit < bits; bit += 1 + (long)(test_random() % 12)) {
		int c, s;

		if (bit / 8 == 1 || bit / 8 == 2)
			continue;
		ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, true);
		e.flip = bit;
		ends_shake(&e, &c, &s);
		if (s == 0)
			printf("  bit %ld of %ld\n", bit, bits);
		CHECK(s != 0);
		ends_close(&e);
	}
}

/* What a site has sent once is worth nothing in another connection. */
TEST(replayed_handshake_is_refused)
{
	static struct ends old;
	struct ends e;
	int rc = PXD_TLS_WANT_READ;

	REQUIRE(shaken(&old, 0, true));
	CHECK_INT(say(old.c, "secret order"), 12);
	middle(&old);
	for (size_t step = 1; step < old.ntaken; step = step * 3 + 1) { /* in one piece, or byte by byte */
		ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
		rc = pxd_tls_shake(e.s);
		for (size_t at = 0; at < old.ntaken && waits(rc); at += step) {
			size_t n = old.ntaken - at < step ? old.ntaken - at : step;

			CHECK(send(e.fd[0], old.taken + at, n, MSG_NOSIGNAL) == (ssize_t)n);
			rc = pxd_tls_shake(e.s);
		}
		shutdown(e.fd[0], SHUT_WR);
		rc = pxd_tls_shake(e.s);
		CHECK_INT(rc, PXD_TLS_ERROR);
		CHECK_INT(pxd_tls_peer(e.s), -1);
		ends_close(&e);
	}
	ends_close(&old);
}

TEST(truncated_handshake_is_refused)
{
	static struct ends old;
	struct ends e;

	REQUIRE(shaken(&old, 0, true));
	for (size_t n = 0; n < old.ntaken; n += 1 + test_random() % 5) {
		ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
		CHECK(send(e.fd[0], old.taken, n, MSG_NOSIGNAL) == (ssize_t)n);
		CHECK(pxd_tls_shake(e.s) != 0);
		shutdown(e.fd[0], SHUT_WR);
		CHECK_INT(pxd_tls_shake(e.s), PXD_TLS_ERROR);
		ends_close(&e);
	}
	ends_close(&old);
}

static void check_garbage(const void *mem, size_t n)
{
	struct ends e;
	int rc;

	ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
	CHECK(send(e.fd[0], mem, n, MSG_NOSIGNAL) == (ssize_t)n);
	rc = pxd_tls_shake(e.s);
	if (waits(rc)) {
		shutdown(e.fd[0], SHUT_WR);
		rc = pxd_tls_shake(e.s);
	}
	CHECK_INT(rc, PXD_TLS_ERROR);
	CHECK(strlen(pxd_tls_why(e.s)) > 0);
	ends_close(&e);
}

TEST(garbage_is_refused)
{
	uint8_t mem[2000];

	for (int i = 0; i < 300; i++) {
		size_t n = test_random() % sizeof mem;

		for (size_t k = 0; k < n; k++)
			mem[k] = (uint8_t)test_random();
		if (i % 2 && n > 9) /* looks like a record with a ClientHello */
			memcpy(mem, "\x16\x03\x01\x01\x80\x01\x00\x01\x7c", 9);
		check_garbage(mem, n);
	}
	check_garbage("GET / HTTP/1.0\r\n\r\n", 18);
	check_garbage("SSH-2.0-OpenSSH_9.2\r\n", 21);
	check_garbage("", 0);
}

/* A stranger may not make us read for ever, nor keep much. */
TEST(long_handshake_is_refused)
{
	static uint8_t mem[60000];

	for (size_t at = 0; at + 16389 < sizeof mem; at += 16389)
		memcpy(mem + at, "\x16\x03\x01\x40\x00", 5);
	memcpy(mem + 5, "\x01\x01\xff\x00\x03\x03", 6); /* a ClientHello of 130,000 bytes */
	check_garbage(mem, sizeof mem);
}

/* A TLS client or server of somebody else, on the other end of our server or client. */
static void stranger_run(struct ends *e, SSL *ssl, bool ours_is_server, int *ours, int *theirs)
{
	*ours = PXD_TLS_WANT_READ;
	*theirs = -1;
	for (int i = 0; i < 50 && (waits(*ours) || *theirs != 1); i++) {
		if (*theirs != 1)
			*theirs = SSL_do_handshake(ssl);
		if (waits(*ours))
			*ours = pxd_tls_shake(ours_is_server ? e->s : e->c);
	}
}

static void check_stranger_client(int version)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct ends e;
	SSL *ssl;
	int ours, theirs;

	ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
	SSL_CTX_set_min_proto_version(ctx, version == TLS1_3_VERSION ? version : TLS1_VERSION);
	SSL_CTX_set_max_proto_version(ctx, version);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, e.fd[0]);
	SSL_set_connect_state(ssl);
	stranger_run(&e, ssl, true, &ours, &theirs);
	CHECK_INT(ours, PXD_TLS_ERROR);
	CHECK(theirs != 1);
	if (version == TLS1_3_VERSION)
		CHECK_STR(pxd_tls_why(e.s), "the dialler offers no key of this job: no site of it");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ends_close(&e);
}

TEST(client_without_a_key_is_refused)
{
	check_stranger_client(TLS1_3_VERSION);
}

TEST(older_tls_is_refused)
{
	check_stranger_client(TLS1_2_VERSION);
}

/* A server that has a certificate instead of our key: a client that takes none must not take it. */
TEST(server_with_a_certificate_is_refused)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	X509 *cert = X509_new();
	struct ends e;
	SSL *ssl;
	int ours, theirs;

	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(
		X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)"site", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
	CHECK(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
	ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, e.fd[1]);
	SSL_set_accept_state(ssl);
	stranger_run(&e, ssl, false, &ours, &theirs);
	CHECK_INT(ours, PXD_TLS_ERROR);
	CHECK_INT(pxd_tls_peer(e.c), -1);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	X509_free(cert);
	EVP_PKEY_free(key);
	ends_close(&e);
}

TEST(connection_freed_at_any_time)
{
	struct ends e;

	for (int i = 0; i < 6; i++) {
		ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
		for (int k = 0; k < i; k++)
			pxd_tls_shake(k % 2 ? e.s : e.c);
		ends_close(&e);
	}
	pxd_tls_free(NULL);
	pxd_tls_ctx_free(NULL);
}
