/* via.h: ways to a peer other than plain TCP: SOCKS5 and HTTP CONNECT proxies, and a command as transport.
 *
 * The proxy handshakes are pure state machines (bytes in, bytes out), so they can be fuzzed; the owner (conn_dial.c) moves
 * the bytes. Nothing blocks, nothing logs; the password of a proxy is never put into why.
 */
#ifndef PXD_VIA_H
#define PXD_VIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PXD_VIA_OUT 1024

struct pxd_proxy {
	enum { PXD_PROXY_NONE, PXD_PROXY_SOCKS5, PXD_PROXY_HTTP } kind;
	char host[256];
	int port;
	char user[128], password[128];
};
/* pxd_proxy_parse: socks5://[user:password@]host:port, http://[user:password@]host:port; IPv6 in brackets. 0 or PX_EINVAL. */
int pxd_proxy_parse(const char *url, struct pxd_proxy *p);

struct pxd_via {
	const struct pxd_proxy *proxy;
	char host[256]; /* target */
	int port;
	int step;
	uint8_t in[2048]; /* answer so far */
	size_t nin;
};
/* pxd_via_start: fill out[*n] (*n <= PXD_VIA_OUT) with what to send first. p must outlive v. 0, or PX_EINVAL: host or port
 * cannot be asked for. */
int pxd_via_start(
	struct pxd_via *v, const struct pxd_proxy *p, const char *host, int port, uint8_t *out, size_t *n);
/* pxd_via_want: how many bytes to read at most next: never more than belong to the proxy's answer. 0: it has ended. */
size_t pxd_via_want(const struct pxd_via *v);
/* pxd_via_feed: bytes of the answer. 1: the tunnel stands; 0: go on, out[0..*n) has to be sent (n may be 0); PX_EPROTO,
 * PX_ECLOSED (refused by the proxy) with a sentence in why. */
int pxd_via_feed(
	struct pxd_via *v, const uint8_t *in, size_t len, uint8_t *out, size_t *n, char *why, size_t cap);

/* pxd_via_command: run `command` (/bin/sh -c) with %h, %p, %% replaced, standard input and output on a socket pair, standard
 * error as ours, in a process group of its own, without our other files and without PACX_KEY. host: letters, digits and . : - _ [ ]
 * only, not beginning with -. *fd (nonblocking, close-on-exec, AF_UNIX) and *pid are the caller's, who closes fd
 * and then calls pxd_via_reap until it is gone. 0, PX_EINVAL, PX_ENOMEM, PX_EIO (errno says why). */
int pxd_via_command(const char *command, const char *host, int port, int *fd, pid_t *pid);
/* pxd_via_reap: reap the command of a closed connection; never blocks, call it now and then until it is true: gone. The
 * command has PXD_VIA_END_MS from the first call to pass on what it holds and to end by itself; then it is ended, group
 * and all. One thread only. */
#define PXD_VIA_END_MS 5000
bool pxd_via_reap(pid_t pid);
/* pxd_via_kill: end and reap it now; may block for the moment that a killed process takes. */
void pxd_via_kill(pid_t pid);

#endif
