/* tls_inner.h: what tls.c (bytes) and tls_psk.c (who is there) share; for nobody else. */
#ifndef PXD_TLS_INNER_H
#define PXD_TLS_INNER_H

#include <openssl/ssl.h>

#include "tls.h"

#define PXD_TLS_IDENTITY 64

struct pxd_tls_ctx {
	SSL_CTX *ssl;
	BIO_METHOD *bio;
	uint8_t key[PXD_KEY_SIZE];
	uint8_t door[PXD_KEY_SIZE];
	uint8_t jobhash[PX_JOBHASH_SIZE];
	char jobhex[2 * PX_JOBHASH_SIZE + 1];
	int self;
};

struct pxd_tls_half {
	uint8_t *mem;
	size_t size, head, tail;
};

struct pxd_tls {
	struct pxd_tls_ctx *ctx;
	SSL *ssl;
	int fd;
	int peer;  /* proved */
	int other; /* whom we dial, or what the identity of a dialler says */
	bool server, shaken, dry;
	int dead; /* PXD_TLS_EOF or PXD_TLS_ERROR once it has happened */
	struct pxd_tls_half in, out;
	bool held;        /* rule 1 */
	uint64_t seen;    /* bytes of the handshake */
	uint64_t records; /* with the present key for writing, at least */
	uint8_t *gather;  /* a record, for short pieces */
	char identity[PXD_TLS_IDENTITY];
	char why[240];
};

/* pxd_tls_fail: the first reason counts. Returns PXD_TLS_ERROR, as every call does from now on. */
int pxd_tls_fail(struct pxd_tls *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* pxd_tls_bio: how OpenSSL reads and writes. NULL: out of memory. */
BIO_METHOD *pxd_tls_bio(void);
/* pxd_tls_identity: what the dialler calls itself. */
void pxd_tls_identity(const struct pxd_tls_ctx *c, int dialler, int listener, char text[PXD_TLS_IDENTITY]);

#endif
