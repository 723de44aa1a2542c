/* address.h: names and addresses as the hostfile has them, and as they are said.
 *
 * Used by all three programs; knows no loop and keeps no socket.
 */
#ifndef PXD_ADDRESS_H
#define PXD_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

struct pxd_hosts;

#define PXD_HOSTPORT 300 /* room for pxd_hostport */

/* pxd_hostport: "host:port", or "[address]:port" for an IPv6 address. Returns buf, of at least PXD_HOSTPORT. */
const char *pxd_hostport(const char *host, int port, char *buf);

/* pxd_is_loopback: is the text an address of this machine only, or localhost? */
bool pxd_is_loopback(const char *host);

/* pxd_host_is_here: is this an address of this machine? Asked by binding it for a moment. */
bool pxd_host_is_here(const char *host);

/* pxd_misled: site `self` of the job is reached by a name that stands for nothing but loopback here (127.0.1.1 in Debian's /etc/hosts),
 * though other sites with other hosts must dial it: list is what `name` resolves to. The address goes to addr[NI_MAXHOST]. */
bool pxd_misled(
	const struct pxd_hosts *h, int self, const char *name, const struct addrinfo *list, char *addr);

#endif
