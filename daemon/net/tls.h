/* tls.h: TLS 1.3 with a pre-shared key on a nonblocking socket (OpenSSL 3).
 *
 * One context per process, made from the job's key; one pxd_tls per connection. The key of a pair of sites is
 * derived (HKDF-SHA256) from the job's key, the job hash, and who dials and who listens, so a handshake that
 * succeeds proves job, key and both sites; (EC)DHE on top. No tickets, no early data, no renegotiation. Knows no
 * libuv, no frames. Nothing here blocks or logs; keys are wiped.
 */
#ifndef PXD_TLS_H
#define PXD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "key.h"
#include "preamble.h"

struct pxd_tls_ctx;
struct pxd_tls;

/* Results below 0 of shake, read and writev. */
enum pxd_tls_want { PXD_TLS_WANT_READ = -1, PXD_TLS_WANT_WRITE = -2, PXD_TLS_EOF = -3, PXD_TLS_ERROR = -4 };

/* pxd_tls_ctx_new: self is our site's index. 0, PX_ENOMEM, PX_EIO with the reason in why. The key is copied. */
int pxd_tls_ctx_new(struct pxd_tls_ctx **out, const uint8_t key[PXD_KEY_SIZE],
	const uint8_t jobhash[PX_JOBHASH_SIZE], int self, char *why, size_t cap);
void pxd_tls_ctx_free(struct pxd_tls_ctx *ctx);
/* pxd_tls_door: the door key of the job's key (proof.h), which lives with ctx; NULL if ctx is. */
const uint8_t *pxd_tls_door(const struct pxd_tls_ctx *ctx);

/* The socket stays the caller's. NULL: out of memory. */
struct pxd_tls *pxd_tls_client(struct pxd_tls_ctx *ctx, int fd, int peer);
struct pxd_tls *pxd_tls_server(struct pxd_tls_ctx *ctx, int fd);
void pxd_tls_free(struct pxd_tls *t); /* sends no close_notify; call pxd_tls_shutdown for that */

int pxd_tls_shake(struct pxd_tls *t);                         /* 0 = done, or want */
ssize_t pxd_tls_read(struct pxd_tls *t, void *buf, size_t n); /* > 0, or want */
ssize_t pxd_tls_writev(
	struct pxd_tls *t, const struct iovec *v, int n); /* bytes taken > 0, or want. After a want the
	next call must begin with the same byte (its address may differ). The peer never has a byte that no call has
	reported; the last byte of a run of calls is reported when all have left for the kernel */
bool pxd_tls_pending(
	const struct pxd_tls *t); /* decrypted bytes are waiting: read without polling the socket */
void pxd_tls_dry(struct pxd_tls *t,
	bool dry); /* true: reads take nothing more from the socket, until all has been read */
void pxd_tls_shutdown(struct pxd_tls *t);         /* try to send close_notify, do not wait */
int pxd_tls_peer(const struct pxd_tls *t);        /* the site that the handshake has proved, -1 before */
const char *pxd_tls_why(const struct pxd_tls *t); /* after PXD_TLS_ERROR: a sentence for the log */

#endif
