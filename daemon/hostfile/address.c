/* address.c: see address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostfile.h"

const char *pxd_hostport(const char *host, int port, char *buf)
{
	snprintf(buf, PXD_HOSTPORT, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
	return buf;
}

bool pxd_is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static bool loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* Does another site have a host of its own, on another machine as far as its name says? */
static bool others_elsewhere(const struct pxd_hosts *h, int self)
{
	for (int i = 0; i < h->nsites; i++) {
		const char *host = h->sites[i].ngateways ? h->sites[i].gateways[0].host : NULL;

		if (i != self && host && !pxd_is_loopback(host) &&
			strcmp(host, h->sites[self].gateways[0].host) != 0)
			return true;
	}
	return false;
}

bool pxd_misled(
	const struct pxd_hosts *h, int self, const char *name, const struct addrinfo *list, char *addr)
{
	if (!list || pxd_is_loopback(name) || !others_elsewhere(h, self))
		return false;
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		if (!loopback(a->ai_addr))
			return false;
	return getnameinfo(list->ai_addr, list->ai_addrlen, addr, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0;
}

bool pxd_host_is_here(const char *host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	bool here = false;

	if (getaddrinfo(host, "0", &hints, &list) != 0)
		return false;
	for (struct addrinfo *a = list; a && !here; a = a->ai_next) {
		int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		here = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(list);
	return here;
}
