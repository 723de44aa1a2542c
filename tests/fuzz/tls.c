/* fuzz/tls.c: what a stranger may send to a listener (first byte even) or answer to a dialler (odd) before the handshake is done:
 * nobody gets in who has not the key, and every answer is one of tls.h's. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const uint8_t key[PXD_KEY_SIZE] = { 1, 2, 3 };
	static struct pxd_tls_ctx *ctx;
	uint8_t hash[PX_JOBHASH_SIZE], waste[4096];
	char why[200];
	struct pxd_tls *t;
	int fd[2], rc;

	if (len < 1)
		return 0;
	if (!ctx) { /* no state between inputs but this */
		pxd_jobhash("job", hash);
		MUST(pxd_tls_ctx_new(&ctx, key, hash, 5, why, sizeof why) == 0);
	}
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
	t = in[0] & 1 ? pxd_tls_client(ctx, fd[0], 3) : pxd_tls_server(ctx, fd[0]);
	MUST(t);
	rc = pxd_tls_shake(t);
	MUST(rc == PXD_TLS_WANT_READ);
	in++;
	len--;
	while (len > 0 && (rc == PXD_TLS_WANT_READ || rc == PXD_TLS_WANT_WRITE)) {
		ssize_t n = send(fd[1], in, len, MSG_NOSIGNAL);

		if (n > 0) {
			in += n;
			len -= (size_t)n;
		}
		rc = pxd_tls_shake(t);
		while (recv(fd[1], waste, sizeof waste, 0) > 0)
			;
	}
	shutdown(fd[1], SHUT_WR);
	rc = pxd_tls_shake(t);
	MUST(rc == PXD_TLS_ERROR && pxd_tls_peer(t) == -1 && strlen(pxd_tls_why(t)) > 0);
	MUST(pxd_tls_read(t, waste, sizeof waste) == PXD_TLS_ERROR);
	pxd_tls_free(t);
	close(fd[0]);
	close(fd[1]);
	return 0;
}
