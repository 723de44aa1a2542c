/* tls_psk.c: who is at the other end of a TLS connection: the job's key as TLS 1.3 knows it.
 *
 * Each ordered pair of sites has a key of its own, derived from the job's (key.h), and an identity that names job and pair. What OpenSSL
 * has to allow and to refuse for it is set here, once for each context.
 */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "proof.h"
#include "tls_inner.h"

#define SITES_LAST 65535
#define SUITE      0x13, 0x01 /* TLS_AES_128_GCM_SHA256: gives the PSK its hash */

/* psk_make: the key of the ordered pair as a session that OpenSSL takes for a PSK. NULL: out of memory. */
static SSL_SESSION *psk_make(SSL *ssl, const struct pxd_tls_ctx *c, int dialler, int listener)
{
	static const unsigned char suite[] = { SUITE };
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite);
	uint8_t psk[PXD_KEY_SIZE];
	char info[64];
	SSL_SESSION *s = SSL_SESSION_new();
	bool good;

	snprintf(info, sizeof info, "pacx1 link dialler=%d listener=%d", dialler, listener);
	good = cipher && s && pxd_key_derive(c->key, c->jobhash, sizeof c->jobhash, info, psk) == 0 &&
	       SSL_SESSION_set1_master_key(s, psk, sizeof psk) && SSL_SESSION_set_cipher(s, cipher) &&
	       SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION);
	pxd_key_wipe(psk, sizeof psk);
	if (good)
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

void pxd_tls_identity(const struct pxd_tls_ctx *c, int dialler, int listener, char text[PXD_TLS_IDENTITY])
{
	snprintf(text, PXD_TLS_IDENTITY, "pacx1 %s %d %d", c->jobhex, dialler, listener);
}

static int psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	struct pxd_tls *t = SSL_get_app_data(ssl);

	(void)md; /* both suites have SHA-256 */
	*out = psk_make(ssl, t->ctx, t->ctx->self, t->other);
	*id = (const unsigned char *)t->identity;
	*len = strlen(t->identity);
	if (!*out)
		pxd_tls_fail(t, "out of memory");
	return *out != NULL;
}

/* psk_find: the identity is a stranger's text. Without a session the handshake fails for want of a certificate. */
static int psk_find(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **out)
{
	struct pxd_tls *t = SSL_get_app_data(ssl);
	char text[PXD_TLS_IDENTITY], job[2 * PX_JOBHASH_SIZE + 1], again[PXD_TLS_IDENTITY];
	long dialler, listener;
	int used = 0;

	*out = NULL;
	if (len >= sizeof text || memchr(id, 0, len)) {
		pxd_tls_fail(t, "the dialler's identity is not one of PACX");
		return 1;
	}
	memcpy(text, id, len);
	text[len] = '\0';
	if (sscanf(text, "pacx1 %32[0-9a-f] %9ld %9ld%n", job, &dialler, &listener, &used) != 3 ||
		(size_t)used != len || dialler < 0 || dialler > SITES_LAST || listener < 0 ||
		listener > SITES_LAST) {
		pxd_tls_fail(t, "the dialler's identity is not one of PACX");
	} else if (strcmp(job, t->ctx->jobhex) != 0) {
		pxd_tls_fail(t, "the dialler belongs to another job");
	} else if (listener != t->ctx->self) {
		pxd_tls_fail(t, "the dialler wants site %ld, this is site %d", listener, t->ctx->self);
	} else if (dialler == t->ctx->self) {
		pxd_tls_fail(t, "the dialler says it is site %ld, which is this one", dialler);
	} else {
		pxd_tls_identity(t->ctx, (int)dialler, (int)listener, again);
		if (strcmp(again, text) != 0) {
			pxd_tls_fail(t, "the dialler's identity is not one of PACX");
			return 1;
		}
		t->other = (int)dialler;
		*out = psk_make(ssl, t->ctx, (int)dialler, (int)listener);
		return *out != NULL;
	}
	return 1;
}

int pxd_tls_ctx_new(struct pxd_tls_ctx **out, const uint8_t key[PXD_KEY_SIZE],
	const uint8_t jobhash[PX_JOBHASH_SIZE], int self, char *why, size_t cap)
{
	struct pxd_tls_ctx *c = calloc(1, sizeof *c);
	unsigned long e;
	const char *text;

	if (!c) {
		snprintf(why, cap, "out of memory");
		return PX_ENOMEM;
	}
	memcpy(c->key, key, sizeof c->key);
	memcpy(c->jobhash, jobhash, sizeof c->jobhash);
	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		snprintf(c->jobhex + 2 * i, 3, "%02x", jobhash[i]);
	c->self = self;
	ERR_clear_error();
	if (pxd_proof_key(key, c->door) < 0)
		goto fail;
	c->bio = pxd_tls_bio();
	c->ssl = SSL_CTX_new(TLS_method());
	if (!c->bio || !c->ssl || !SSL_CTX_set_min_proto_version(c->ssl, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(c->ssl, TLS1_3_VERSION) ||
		!SSL_CTX_set_ciphersuites(c->ssl, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ||
		!SSL_CTX_set1_groups_list(c->ssl, "X25519:P-256") || !SSL_CTX_set_num_tickets(c->ssl, 0))
		goto fail;
	/* PSK with (EC)DHE is OpenSSL's default; SSL_OP_ALLOW_NO_DHE_KEX would add the other. */
	SSL_CTX_clear_options(c->ssl, SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
	SSL_CTX_set_options(c->ssl, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
					    SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(c->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_clear_mode(c->ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(c->ssl, 0);
	SSL_CTX_set_psk_use_session_callback(c->ssl, psk_use);
	SSL_CTX_set_psk_find_session_callback(c->ssl, psk_find);
	*out = c;
	return 0;
fail:
	e = ERR_peek_error();
	text = e ? ERR_reason_error_string(e) : NULL;
	snprintf(why, cap, "cannot set up TLS 1.3 (OpenSSL): %s", text ? text : "unknown error");
	ERR_clear_error();
	pxd_tls_ctx_free(c);
	return PX_EIO;
}

const uint8_t *pxd_tls_door(const struct pxd_tls_ctx *ctx)
{
	return ctx ? ctx->door : NULL;
}

void pxd_tls_ctx_free(struct pxd_tls_ctx *ctx)
{
	if (!ctx)
		return;
	SSL_CTX_free(ctx->ssl);
	BIO_meth_free(ctx->bio);
	pxd_key_wipe(ctx, sizeof *ctx);
	free(ctx);
}
