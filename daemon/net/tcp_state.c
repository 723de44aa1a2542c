/* tcp_state.c: see tcp_state.h. */
#include "tcp_state.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

bool pxd_tcp_state(int fd, struct pxd_tcp_state *s)
{
	struct tcp_info ti;
	socklen_t len = sizeof ti;

	memset(&ti, 0, sizeof ti);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &ti, &len) < 0)
		return false;
	s->bytes_acked = ti.tcpi_bytes_acked;
	s->unsent = ti.tcpi_notsent_bytes;
	s->rtt_us = ti.tcpi_rtt;
	s->busy_us = ti.tcpi_busy_time;
	return true;
}
