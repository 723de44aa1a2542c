/* fuzz/tls.c: whatever a dialler sends, a listener does not take it for a site, and reads no more than it must. The corpus has
 * ClientHellos of PACX, so that changes of them reach the parsing of identities. */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static const uint8_t key[PXD_KEY_SIZE] = { 1, 2, 3 };
	static struct pxd_tls_ctx *ctx; /* costs more than all the rest */
	uint8_t hash[PX_JOBHASH_SIZE];
	struct pxd_tls *t;
	char why[256];
	int fd[2], rc;

	pxd_jobhash("melt", hash);
	if (!ctx)
		MUST(pxd_tls_ctx_new(&ctx, key, hash, 1, why, sizeof why) == 0);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
	t = pxd_tls_server(ctx, fd[1]);
	MUST(t);
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd[0], in + at, len - at, MSG_NOSIGNAL);

		rc = pxd_tls_shake(t);
		MUST(rc != 0);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	shutdown(fd[0], SHUT_WR);
	rc = pxd_tls_shake(t);
	MUST(rc == PXD_TLS_ERROR && pxd_tls_peer(t) == -1 && pxd_tls_why(t)[0]);
	pxd_tls_free(t);
	close(fd[0]);
	close(fd[1]);
	return 0;
}
