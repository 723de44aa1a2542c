/* tcp_state.h: what the kernel knows of a TCP connection (TCP_INFO; apart, because its header and libc's contradict). */
#ifndef PXD_TCP_STATE_H
#define PXD_TCP_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct pxd_tcp_state {
	uint64_t bytes_acked; /* by the peer's kernel */
	uint32_t unsent;      /* bytes that our kernel has not sent yet */
	uint32_t rtt_us;      /* smoothed */
};
/* pxd_tcp_state: false: fd is no TCP connection. */
bool pxd_tcp_state(int fd, struct pxd_tcp_state *s);

#endif
