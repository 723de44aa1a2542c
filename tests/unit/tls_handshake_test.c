/* tls_handshake_test.c: handshakes that must work, and all those that must not. */
#include "tls_ends.h"

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
