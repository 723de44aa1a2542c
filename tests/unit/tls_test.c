/* tls_test.c: TLS with the job's key over socket pairs: who gets in and who does not, whatever is sent, cut, replayed or changed;
 * data both ways through sockets that take little at a time. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "test.h"
#include "tls.h"

#define TURNS 2000 /* of a handshake, at most */

/* One end of a connection. */
struct end {
	struct pxd_tls_ctx *ctx;
	struct pxd_tls *t;
	int fd, rc;
};

static const uint8_t key_a[PXD_KEY_SIZE] = { 1, 2, 3 }, key_b[PXD_KEY_SIZE] = { 1, 2, 4 };

static bool sockets(int fd[2])
{
	int small = 4096;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0)
		return false;
	for (int i = 0; i < 2; i++) {
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	}
	return true;
}

static struct pxd_tls_ctx *ctx_new(const uint8_t key[PXD_KEY_SIZE], const char *job, int self)
{
	struct pxd_tls_ctx *c = NULL;
	uint8_t hash[PX_JOBHASH_SIZE];
	char why[200] = "";

	pxd_jobhash(job, hash);
	if (!CHECK_INT(pxd_tls_ctx_new(&c, key, hash, self, why, sizeof why), 0))
		printf("  %s\n", why);
	return c;
}

static void client_open(struct end *e, const uint8_t *key, const char *job, int self, int peer, int fd)
{
	e->ctx = ctx_new(key, job, self);
	e->fd = fd;
	e->t = pxd_tls_client(e->ctx, fd, peer);
	e->rc = PXD_TLS_WANT_READ;
}

static void server_open(struct end *e, const uint8_t *key, const char *job, int self, int fd)
{
	e->ctx = ctx_new(key, job, self);
	e->fd = fd;
	e->t = pxd_tls_server(e->ctx, fd);
	e->rc = PXD_TLS_WANT_READ;
}

static void end_close(struct end *e)
{
	pxd_tls_free(e->t);
	pxd_tls_ctx_free(e->ctx);
	if (e->fd >= 0)
		close(e->fd);
	memset(e, 0, sizeof *e);
}

static bool wants(int rc)
{
	return rc == PXD_TLS_WANT_READ || rc == PXD_TLS_WANT_WRITE;
}

/* One step; who fails closes, as pxd_conn does. */
static void step(struct end *e)
{
	if (!wants(e->rc))
		return;
	e->rc = pxd_tls_shake(e->t);
	if (e->rc < 0 && !wants(e->rc))
		shutdown(e->fd, SHUT_WR);
}

/* Until both have an answer, or nothing moves any more. */
static void shake(struct end *a, struct end *b)
{
	for (int i = 0; i < TURNS && (wants(a->rc) || wants(b->rc)); i++) {
		step(a);
		step(b);
	}
}

/* A linked pair of sites 3 (dials) and 5. */
static bool pair_open(struct end *c, struct end *s)
{
	int fd[2];

	memset(c, 0, sizeof *c);
	memset(s, 0, sizeof *s);
	if (!CHECK(sockets(fd)))
		return false;
	client_open(c, key_a, "job", 3, 5, fd[0]);
	server_open(s, key_a, "job", 5, fd[1]);
	shake(c, s);
	return CHECK_INT(c->rc, 0) && CHECK_INT(s->rc, 0);
}

static void pair_close(struct end *c, struct end *s)
{
	end_close(c);
	end_close(s);
}

TEST(handshake_proves_both_sites)
{
	struct end c, s;
	char byte;

	if (pair_open(&c, &s)) {
		CHECK_INT(pxd_tls_peer(c.t), 5);
		CHECK_INT(pxd_tls_peer(s.t), 3);
		CHECK_INT(pxd_tls_shake(c.t), 0); /* again does no harm */
		CHECK_STR(pxd_tls_why(c.t), "no error");
		/* No tickets: the server says nothing of its own accord. */
		CHECK_INT(recv(c.fd, &byte, 1, MSG_DONTWAIT), -1);
		CHECK(!pxd_tls_pending(c.t) && !pxd_tls_pending(s.t));
		CHECK_INT(pxd_tls_read(c.t, &byte, 1), PXD_TLS_WANT_READ);
	}
	pair_close(&c, &s);
}

TEST(nothing_is_read_or_written_before_the_handshake)
{
	struct end c = { 0 };
	struct iovec v = { (void *)(uintptr_t) "secret", 6 };
	char byte;
	int fd[2];

	REQUIRE(sockets(fd));
	client_open(&c, key_a, "job", 3, 5, fd[0]);
	CHECK_INT(pxd_tls_peer(c.t), -1);
	CHECK_INT(pxd_tls_writev(c.t, &v, 1), PXD_TLS_ERROR);
	CHECK_INT(pxd_tls_read(c.t, &byte, 1), PXD_TLS_ERROR);
	CHECK_INT(recv(fd[1], &byte, 1, MSG_DONTWAIT), -1);
	end_close(&c);
	close(fd[1]);
}

/* A stream of bytes that both ends can compute. */
static uint8_t stream_byte(int which, size_t at)
{
	return (uint8_t)((at * 2654435761u >> 7) + at / 251 + (size_t)which * 77);
}

/* What one end has sent and received. */
struct traffic {
	struct end *e;
	int out, in;
	size_t sent, got, offered;
	uint8_t *mem;
};

#define OFFER_MAX 150000

/* Offer bytes in pieces of odd sizes, from another place each time; after a want at least the same ones again. */
static int traffic_send(struct traffic *t, size_t all)
{
	struct iovec v[5];
	size_t n = 1 + test_random() % (test_random() % 4 ? 3000 : OFFER_MAX), at = 0;
	size_t shift = test_random() % 64;
	ssize_t k;
	int m = 0;

	n = n < t->offered ? t->offered : n;
	n = n < all - t->sent ? n : all - t->sent;
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		t->mem[shift + i] = stream_byte(t->out, t->sent + i);
	while (at < n) {
		size_t piece = m == 4 ? n - at : test_random() % (n - at + 1);

		v[m++] = (struct iovec){ t->mem + shift + at, piece };
		at += piece;
	}
	k = pxd_tls_writev(t->e->t, v, m);
	if (k > 0) {
		if (!CHECK((size_t)k <= n))
			return -1;
		t->sent += (size_t)k;
		t->offered = 0;
		return 1;
	}
	t->offered = n;
	return wants((int)k) ? 0 : -1;
}

static int traffic_receive(struct traffic *t)
{
	static uint8_t in[70000];
	size_t room = 1 + test_random() % (test_random() % 3 ? 100 : sizeof in);
	ssize_t k = pxd_tls_read(t->e->t, in, room);

	if (k < 0)
		return wants((int)k) ? 0 : -1;
	if (!CHECK(k > 0 && (size_t)k <= room))
		return -1;
	for (ssize_t i = 0; i < k; i++)
		if (!CHECK_INT(in[i], stream_byte(t->in, t->got + (size_t)i)))
			return -1;
	t->got += (size_t)k;
	return 1;
}

TEST(data_of_all_sizes_crosses_both_ways_through_small_sockets)
{
	enum { ALL = 3000017 };
	struct traffic a = { .out = 1, .in = 2 }, b = { .out = 2, .in = 1 };
	struct end c, s;
	int still = 0;

	a.mem = malloc(OFFER_MAX + 64);
	b.mem = malloc(OFFER_MAX + 64);
	if (pair_open(&c, &s) && a.mem && b.mem) {
		a.e = &c;
		b.e = &s;
		while ((a.got < ALL || b.got < ALL) && still < 1000) {
			int rc[4] = { traffic_send(&a, ALL), traffic_send(&b, ALL), traffic_receive(&a),
				traffic_receive(&b) };

			if (!CHECK(rc[0] >= 0 && rc[1] >= 0 && rc[2] >= 0 && rc[3] >= 0))
				break;
			still = rc[0] + rc[1] + rc[2] + rc[3] > 0 ? 0 : still + 1;
		}
		CHECK_UINT(a.got, ALL);
		CHECK_UINT(b.got, ALL);
		CHECK_UINT(a.sent, ALL);
	}
	free(a.mem);
	free(b.mem);
	pair_close(&c, &s);
}

TEST(what_is_written_is_not_seen_on_the_wire)
{
	static const char secret[] = "a secret that nobody on the way may read";
	struct iovec v = { (void *)(uintptr_t)secret, sizeof secret };
	char wire[400], plain[sizeof secret];
	struct end c, s;
	ssize_t n;

	if (pair_open(&c, &s)) {
		CHECK_INT(pxd_tls_writev(c.t, &v, 1), sizeof secret);
		n = recv(s.fd, wire, sizeof wire, MSG_PEEK);
		CHECK(n > (ssize_t)sizeof secret && !memmem(wire, (size_t)n, "secret", 6));
		CHECK_INT(pxd_tls_read(s.t, plain, sizeof plain), sizeof secret);
		CHECK_MEM(plain, secret, sizeof secret);
	}
	pair_close(&c, &s);
}

TEST(ordered_end_is_told_from_a_cut)
{
	struct iovec v = { (void *)(uintptr_t) "x", 1 };
	struct end c, s;
	char in[10];

	if (pair_open(&c, &s)) {
		CHECK_INT(pxd_tls_writev(c.t, &v, 1), 1);
		pxd_tls_shutdown(c.t);
		CHECK_INT(pxd_tls_read(s.t, in, sizeof in), 1);
		CHECK_INT(pxd_tls_read(s.t, in, sizeof in), PXD_TLS_EOF);
		CHECK_INT(pxd_tls_read(s.t, in, sizeof in), PXD_TLS_EOF);
	}
	pair_close(&c, &s);
	if (pair_open(&c, &s)) {
		CHECK_INT(pxd_tls_writev(c.t, &v, 1), 1);
		shutdown(c.fd, SHUT_WR); /* without close_notify: anybody on the way can do that */
		CHECK_INT(pxd_tls_read(s.t, in, sizeof in), 1);
		CHECK_INT(pxd_tls_read(s.t, in, sizeof in), PXD_TLS_ERROR);
		CHECK(strstr(pxd_tls_why(s.t), "cut"));
	}
	pair_close(&c, &s);
}

TEST(data_that_was_changed_is_refused)
{
	struct iovec v = { (void *)(uintptr_t) "some data", 9 };
	uint8_t wire[200], in[20];
	struct end c, s;

	for (size_t at = 0;; at++) {
		ssize_t n, k;

		if (!pair_open(&c, &s) || !CHECK_INT(pxd_tls_writev(c.t, &v, 1), 9))
			break;
		n = recv(s.fd, wire, sizeof wire, 0);
		if (at >= (size_t)n)
			break;
		wire[at] ^= (uint8_t)(1u << at % 8);
		CHECK_INT(send(c.fd, wire, (size_t)n, 0), n);
		k = pxd_tls_read(s.t, in, sizeof in);
		/* A longer length makes it wait for what never comes. */
		CHECK(k == PXD_TLS_ERROR || (k == PXD_TLS_WANT_READ && (at == 3 || at == 4)));
		CHECK(pxd_tls_read(s.t, in, sizeof in) == k);
		pair_close(&c, &s);
	}
	pair_close(&c, &s);
}

TEST(record_that_comes_twice_is_refused)
{
	struct iovec v = { (void *)(uintptr_t) "pay 10", 6 };
	uint8_t wire[200], in[20];
	struct end c, s;
	ssize_t n;

	if (pair_open(&c, &s) && CHECK_INT(pxd_tls_writev(c.t, &v, 1), 6)) {
		n = recv(s.fd, wire, sizeof wire, MSG_PEEK);
		CHECK_INT(send(c.fd, wire, (size_t)n, 0), n);
		CHECK_INT(pxd_tls_read(s.t, in, 6), 6);
		CHECK_INT(pxd_tls_read(s.t, in, 6), PXD_TLS_ERROR);
	}
	pair_close(&c, &s);
}

/* A handshake that must not succeed at either side. */
static void refused(struct end *a, struct end *b, const char *why_a, const char *why_b)
{
	shake(a, b);
	CHECK_INT(a->rc, PXD_TLS_ERROR);
	CHECK_INT(b->rc, PXD_TLS_ERROR);
	CHECK_INT(pxd_tls_peer(a->t), -1);
	CHECK_INT(pxd_tls_peer(b->t), -1);
	if (!CHECK(strstr(pxd_tls_why(a->t), why_a)) || !CHECK(strstr(pxd_tls_why(b->t), why_b)))
		printf("  dialler: %s\n  listener: %s\n", pxd_tls_why(a->t), pxd_tls_why(b->t));
	pair_close(a, b);
}

TEST(another_key_is_refused)
{
	struct end c = { 0 }, s = { 0 };
	int fd[2];

	REQUIRE(sockets(fd));
	client_open(&c, key_b, "job", 3, 5, fd[0]);
	server_open(&s, key_a, "job", 5, fd[1]);
	refused(&c, &s, "another key", "another key");
}

TEST(another_job_is_refused)
{
	struct end c = { 0 }, s = { 0 };
	int fd[2];

	REQUIRE(sockets(fd));
	client_open(&c, key_a, "yesterday's", 3, 5, fd[0]);
	server_open(&s, key_a, "job", 5, fd[1]);
	refused(&c, &s, "another job", "another job");
}

TEST(another_pair_of_sites_is_refused)
{
	struct end c = { 0 }, s = { 0 };
	int fd[2];

	/* Whom the dialler wants is somewhere else. */
	REQUIRE(sockets(fd));
	client_open(&c, key_a, "job", 3, 4, fd[0]);
	server_open(&s, key_a, "job", 5, fd[1]);
	refused(&c, &s, "another site", "wants site 4, this is site 5");
	/* It says that it is the listener itself. */
	REQUIRE(sockets(fd));
	client_open(&c, key_a, "job", 5, 5, fd[0]);
	server_open(&s, key_a, "job", 5, fd[1]);
	refused(&c, &s, "another site", "which is this one");
}

TEST(roles_that_are_swapped_are_refused)
{
	struct end a = { 0 }, b = { 0 };
	int fd[2];

	/* Two diallers. */
	REQUIRE(sockets(fd));
	client_open(&a, key_a, "job", 3, 5, fd[0]);
	client_open(&b, key_a, "job", 5, 3, fd[1]);
	shake(&a, &b);
	CHECK(a.rc != 0 && b.rc != 0 && (a.rc == PXD_TLS_ERROR || b.rc == PXD_TLS_ERROR));
	pair_close(&a, &b);
	/* Two listeners wait for each other; the owner's deadline ends that. */
	REQUIRE(sockets(fd));
	server_open(&a, key_a, "job", 3, fd[0]);
	server_open(&b, key_a, "job", 5, fd[1]);
	shake(&a, &b);
	CHECK(a.rc == PXD_TLS_WANT_READ && b.rc == PXD_TLS_WANT_READ);
	pair_close(&a, &b);
	/* A mirror: what a dialler says comes back to a listener of its own site. */
	REQUIRE(sockets(fd));
	client_open(&a, key_a, "job", 3, 5, fd[0]);
	server_open(&b, key_a, "job", 3, fd[1]);
	refused(&a, &b, "another site", "wants site 5, this is site 3");
}

/* An end and the bytes that go to it and come from it through our hands. */
struct tap {
	struct end e;
	int fd; /* ours */
};

static bool tap_open(struct tap *t, bool server)
{
	int fd[2];

	memset(t, 0, sizeof *t);
	if (!CHECK(sockets(fd)))
		return false;
	if (server)
		server_open(&t->e, key_a, "job", 5, fd[0]);
	else
		client_open(&t->e, key_a, "job", 3, 5, fd[0]);
	t->fd = fd[1];
	return true;
}

static void tap_close(struct tap *t)
{
	end_close(&t->e);
	close(t->fd);
}

/* What the end says next. */
static size_t tap_take(struct tap *t, uint8_t *mem, size_t max)
{
	ssize_t n;

	step(&t->e);
	n = recv(t->fd, mem, max, MSG_DONTWAIT);
	return n > 0 ? (size_t)n : 0;
}

static void tap_give(struct tap *t, const uint8_t *mem, size_t n)
{
	while (n > 0) {
		ssize_t k = send(t->fd, mem, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k > 0)
			mem += k, n -= (size_t)k;
		step(&t->e);
		if (k <= 0 && (!wants(t->e.rc) || (errno != EAGAIN && errno != EWOULDBLOCK)))
			return;
	}
	step(&t->e);
}

/* The three flights of a good handshake. */
static bool flights(uint8_t mem[3][4096], size_t n[3])
{
	struct tap c, s;
	bool good = false;

	if (tap_open(&c, false) && tap_open(&s, true)) {
		n[0] = tap_take(&c, mem[0], 4096);
		tap_give(&s, mem[0], n[0]);
		n[1] = tap_take(&s, mem[1], 4096);
		tap_give(&c, mem[1], n[1]);
		n[2] = tap_take(&c, mem[2], 4096);
		tap_give(&s, mem[2], n[2]);
		good = CHECK_INT(c.e.rc, 0) && CHECK_INT(s.e.rc, 0) && CHECK(n[0] && n[1] && n[2]);
	}
	tap_close(&c);
	tap_close(&s);
	return good;
}

TEST(replayed_handshake_is_refused)
{
	static uint8_t f[3][4096];
	uint8_t answer[4096];
	size_t n[3];
	struct tap t;

	REQUIRE(flights(f, n));
	/* The listener answers a hello that it has heard before, but differently. */
	REQUIRE(tap_open(&t, true));
	tap_give(&t, f[0], n[0]);
	CHECK(wants(t.e.rc));
	CHECK(tap_take(&t, answer, sizeof answer) > 0);
	CHECK(memcmp(answer, f[1], n[1]) != 0);
	tap_give(&t, f[2], n[2]);
	CHECK_INT(t.e.rc, PXD_TLS_ERROR);
	CHECK_INT(pxd_tls_peer(t.e.t), -1);
	tap_close(&t);
	/* All at once. */
	REQUIRE(tap_open(&t, true));
	tap_give(&t, f[0], n[0]);
	tap_give(&t, f[2], n[2]);
	CHECK_INT(t.e.rc, PXD_TLS_ERROR);
	tap_close(&t);
	/* A false listener. */
	REQUIRE(tap_open(&t, false));
	CHECK(tap_take(&t, answer, sizeof answer) > 0);
	tap_give(&t, f[1], n[1]);
	CHECK_INT(t.e.rc, PXD_TLS_ERROR);
	tap_close(&t);
}

TEST(handshake_that_is_cut_anywhere_fails)
{
	static uint8_t f[3][4096];
	size_t n[3];
	struct tap t;

	REQUIRE(flights(f, n));
	for (size_t k = 0; k < n[0]; k++) {
		REQUIRE(tap_open(&t, true));
		tap_give(&t, f[0], k);
		if (!CHECK(t.e.rc != 0))
			printf("  %zu of %zu bytes\n", k, n[0]);
		shutdown(t.fd, SHUT_WR);
		step(&t.e);
		CHECK_INT(t.e.rc, PXD_TLS_ERROR);
		CHECK(strlen(pxd_tls_why(t.e.t)) > 8);
		tap_close(&t);
	}
}

TEST(handshake_with_any_bit_changed_fails)
{
	static uint8_t f[3][4096];
	uint8_t mem[3][4096];
	size_t n[3];

	REQUIRE(flights(f, n));
	for (size_t k = 0; k < n[0] + n[1] + n[2]; k++) {
		struct tap c, s;
		size_t m[3], at = k;

		if (!tap_open(&c, false) || !tap_open(&s, true))
			return;
		m[0] = tap_take(&c, mem[0], 4096);
		if (at < m[0])
			mem[0][at] ^= (uint8_t)(1u << test_random() % 8);
		at -= m[0];
		tap_give(&s, mem[0], m[0]);
		m[1] = tap_take(&s, mem[1], 4096);
		if (at < m[1])
			mem[1][at] ^= (uint8_t)(1u << test_random() % 8);
		at -= m[1];
		tap_give(&c, mem[1], m[1]);
		m[2] = tap_take(&c, mem[2], 4096);
		if (at < m[2])
			mem[2][at] ^= (uint8_t)(1u << test_random() % 8);
		tap_give(&s, mem[2], m[2]);
		/* Nobody looks at the version in the header of the two hellos' records; what was proved is not touched by it. */
		if (s.e.rc == 0 && !CHECK(k == 1 || k == 2 || k == m[0] + 1 || k == m[0] + 2))
			printf("  byte %zu of flights of %zu, %zu, %zu\n", k, m[0], m[1], m[2]);
		tap_close(&c);
		tap_close(&s);
	}
}

TEST(garbage_is_refused)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35 },
		{ "SSH-2.0-OpenSSH_9.2p1 Debian\r\n", 30 },
		{ "\x16\x03\x01\x00\x00", 5 },                          /* an empty record */
		{ "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10 },     /* a hello of one byte */
		{ "\x16\x03\x01\xff\xff\x01\x00\xff\xfb\x03\x03", 11 }, /* a record that is too long */
		{ "\x15\x03\x03\x00\x02\x02\x28", 7 },                  /* an alert */
		{ "\x17\x03\x03\x00\x05hello", 10 },                    /* data */
		{ "\x14\x03\x03\x00\x01\x01", 6 },                      /* change cipher spec */
		{ "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00", 13 }, /* SSL 2 */
	};
	uint8_t random[3000];
	struct tap t;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		REQUIRE(tap_open(&t, i % 2 == 0));
		tap_give(&t, (const uint8_t *)bad[i].bytes, bad[i].n);
		shutdown(t.fd, SHUT_WR);
		step(&t.e);
		if (!CHECK_INT(t.e.rc, PXD_TLS_ERROR))
			printf("  input %zu\n", i);
		tap_close(&t);
	}
	for (int i = 0; i < 300; i++) {
		for (size_t k = 0; k < sizeof random; k++)
			random[k] = (uint8_t)test_random();
		if (i % 2)
			memcpy(random, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
		REQUIRE(tap_open(&t, i % 4 < 2));
		tap_give(&t, random, sizeof random);
		shutdown(t.fd,
			SHUT_WR); /* what looks like the beginning of something long is waited for until then */
		step(&t.e);
		CHECK_INT(t.e.rc, PXD_TLS_ERROR);
		tap_close(&t);
	}
}

TEST(stranger_may_not_send_for_ever)
{
	/* Records of a hello that is never complete. */
	uint8_t record[5 + 256] = { 0x16, 3, 1, 1, 0, 1, 1, 0, 0 };
	struct tap t;
	int n = 0;

	REQUIRE(tap_open(&t, true));
	while (wants(t.e.rc) && n < 1000) {
		tap_give(&t, record, sizeof record);
		memset(record + 5, 0, 4);
		n++;
	}
	CHECK_INT(t.e.rc, PXD_TLS_ERROR);
	CHECK(n < 100);
	tap_close(&t);
	/* Alerts that mean nothing. */
	REQUIRE(tap_open(&t, true));
	for (n = 0; wants(t.e.rc) && n < 10000; n++)
		tap_give(&t, (const uint8_t *)"\x15\x03\x03\x00\x02\x01\x5a", 7);
	CHECK_INT(t.e.rc, PXD_TLS_ERROR);
	tap_close(&t);
}

/* OpenSSL as it comes, at the other side of ours. */
static void foreign(bool is_server, SSL_CTX *x, const char *what)
{
	struct end e = { 0 };
	SSL *ssl = SSL_new(x);
	int fd[2], rc = 0;

	if (!CHECK(ssl) || !CHECK(sockets(fd)))
		return;
	if (is_server)
		client_open(&e, key_a, "job", 3, 5, fd[0]);
	else
		server_open(&e, key_a, "job", 5, fd[0]);
	SSL_set_fd(ssl, fd[1]);
	if (is_server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	for (int i = 0; i < TURNS && wants(e.rc); i++) {
		rc = SSL_do_handshake(ssl);
		ERR_clear_error();
		step(&e);
	}
	if (!CHECK_INT(e.rc, PXD_TLS_ERROR))
		printf("  %s\n", what);
	CHECK_INT(pxd_tls_peer(e.t), -1);
	(void)rc;
	SSL_free(ssl);
	close(fd[1]);
	end_close(&e);
}

static unsigned int old_psk(
	SSL *ssl, const char *hint, char *identity, unsigned int cap, unsigned char *psk, unsigned int max)
{
	(void)ssl;
	(void)hint;
	snprintf(identity, cap, "pacx1 0123456789abcdef0123456789abcdef 3 5");
	memset(psk, 0, max < 32 ? max : 32);
	return max < 32 ? max : 32;
}

TEST(clients_without_our_key_are_refused)
{
	SSL_CTX *x = SSL_CTX_new(TLS_client_method());

	REQUIRE(x);
	foreign(false, x, "TLS 1.3 without a PSK");
	SSL_CTX_set_psk_client_callback(x, old_psk);
	foreign(false, x, "TLS 1.3 with another PSK");
	SSL_CTX_set_max_proto_version(x, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(x, "PSK-AES128-GCM-SHA256");
	foreign(false, x, "TLS 1.2 with a PSK");
	SSL_CTX_set_psk_client_callback(x, NULL);
	SSL_CTX_set_cipher_list(x, "DEFAULT");
	foreign(false, x, "TLS 1.2");
	SSL_CTX_set_min_proto_version(x, 0);
	SSL_CTX_set_max_proto_version(x, TLS1_1_VERSION);
	SSL_CTX_set_security_level(x, 0);
	foreign(false, x, "TLS 1.1");
	SSL_CTX_set_max_proto_version(x, 0);
	SSL_CTX_set_cipher_list(x, "ADH:aNULL:eNULL:@SECLEVEL=0");
	foreign(false, x, "anonymous ciphers");
	SSL_CTX_free(x);
}

/* A certificate that says "site 5", signed by itself. */
static bool certificate_add(SSL_CTX *x)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *c = X509_new();
	bool good = key && c;

	if (good) {
		X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_ASC,
			(const unsigned char *)"site 5", -1, -1, 0);
		X509_set_issuer_name(c, X509_get_subject_name(c));
		X509_gmtime_adj(X509_getm_notBefore(c), 0);
		X509_gmtime_adj(X509_getm_notAfter(c), 3600);
		good = X509_set_pubkey(c, key) && X509_sign(c, key, EVP_sha256()) &&
		       SSL_CTX_use_certificate(x, c) && SSL_CTX_use_PrivateKey(x, key);
	}
	X509_free(c);
	EVP_PKEY_free(key);
	return good;
}

TEST(listeners_without_our_key_are_refused)
{
	SSL_CTX *x = SSL_CTX_new(TLS_server_method());

	REQUIRE(x);
	foreign(true, x, "a server without anything");
	REQUIRE(certificate_add(x));
	foreign(true, x, "a server with a certificate");
	SSL_CTX_set_max_proto_version(x, TLS1_2_VERSION);
	foreign(true, x, "a server of TLS 1.2");
	SSL_CTX_free(x);
}

TEST(many_handshakes_leave_nothing_in_openssl)
{
	struct end c, s;

	for (int i = 0; i < 50; i++) {
		struct end w = { 0 }, v = { 0 };
		int fd[2];

		if (pair_open(&c, &s))
			CHECK_UINT(ERR_peek_error(), 0);
		pair_close(&c, &s);
		REQUIRE(sockets(fd));
		client_open(&w, key_b, "job", 3, 5, fd[0]);
		server_open(&v, key_a, "job", 5, fd[1]);
		shake(&w, &v);
		pair_close(&w, &v);
	}
}
