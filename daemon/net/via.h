/* via.h: ways to a peer through SOCKS5 and HTTP CONNECT proxies. (Through a command: via_command.h.)
 *
 * The handshakes are pure state machines (bytes in, bytes out), so they can be fuzzed; the owner (conn_dial.c) moves
 * the bytes. Nothing blocks, nothing logs; the password of a proxy is never put into why.
 */
#ifndef PXD_VIA_H
#define PXD_VIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PXD_VIA_OUT 1024

struct pxd_proxy {
	enum { PXD_PROXY_NONE, PXD_PROXY_SOCKS5, PXD_PROXY_HTTP } kind;
	char host[256];
	int port;
	char user[128], password[128];
};
/* pxd_proxy_parse: socks5://[user:password@]host:port, http://[user:password@]host:port; IPv6 in brackets. 0 or PX_EINVAL. */
int pxd_proxy_parse(const char *url, struct pxd_proxy *p);

/* pxd_via_host_good: a name or an address that can be asked for: letters, digits and . : - _ [ ] only, not beginning with -. */
bool pxd_via_host_good(const char *h);

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

#endif
