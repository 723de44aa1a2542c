/* wanem_tun.c: see wanem_tun.h. */
#include "wanem_tun.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TUN_QUEUE 10000 /* packets between a site's kernel and us: loss is our business */

void die(const char *format, ...)
{
	va_list args;

	fputs("wanem: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

int tun_open(const char *netns, struct in_addr addr, int mtu, int home)
{
	char path[256];
	struct ifreq ifr;
	struct sockaddr_in *sin = (struct sockaddr_in *)&ifr.ifr_addr;
	int ns, sock, tun;

	snprintf(path, sizeof path, "/run/netns/%s", netns);
	if ((ns = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		die("%s: %s", path, strerror(errno));
	if (setns(ns, CLONE_NEWNET) < 0)
		die("cannot enter %s: %s", netns, strerror(errno));
	close(ns);
	if ((tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
		die("/dev/net/tun: %s", strerror(errno));
	memset(&ifr, 0, sizeof ifr);
	strcpy(ifr.ifr_name, "wan0");
	ifr.ifr_flags = IFF_TUN | IFF_NO_PI;
	if (ioctl(tun, TUNSETIFF, &ifr) < 0)
		die("cannot make a TUN device in %s: %s", netns, strerror(errno));
	if ((sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
		die("socket: %s", strerror(errno));
	memset(&ifr.ifr_ifru, 0, sizeof ifr.ifr_ifru);
	sin->sin_family = AF_INET;
	sin->sin_addr = addr;
	if (ioctl(sock, SIOCSIFADDR, &ifr) < 0)
		die("cannot set the address of %s: %s", netns, strerror(errno));
	sin->sin_addr.s_addr = htonl(0xffffff00);
	if (ioctl(sock, SIOCSIFNETMASK, &ifr) < 0)
		die("cannot set the netmask of %s: %s", netns, strerror(errno));
	ifr.ifr_mtu = mtu;
	if (ioctl(sock, SIOCSIFMTU, &ifr) < 0)
		die("cannot set the MTU of %s: %s", netns, strerror(errno));
	ifr.ifr_qlen = TUN_QUEUE;
	if (ioctl(sock, SIOCSIFTXQLEN, &ifr) < 0)
		die("cannot set the transmit queue of %s: %s", netns, strerror(errno));
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(sock, SIOCSIFFLAGS, &ifr) < 0)
		die("cannot start the device of %s: %s", netns, strerror(errno));
	strcpy(ifr.ifr_name, "lo");
	if (ioctl(sock, SIOCSIFFLAGS, &ifr) < 0)
		die("cannot start the loopback of %s: %s", netns, strerror(errno));
	close(sock);
	if (setns(home, CLONE_NEWNET) < 0)
		die("cannot leave %s: %s", netns, strerror(errno));
	return tun;
}
