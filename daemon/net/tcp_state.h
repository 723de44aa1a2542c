/* tcp_state.h: what the kernel knows of a TCP connection (TCP_INFO; apart, because its header and libc's contradict). */
#ifndef PXD_TCP_STATE_H
#define PXD_TCP_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct pxd_tcp_state {
	uint64_t bytes_acked; /* by the peer's kernel */
	uint32_t unsent;      /* bytes that our kernel has not sent yet */
	uint32_t rtt_us;      /* smoothed */
	uint64_t
		busy_us; /* so long, in all, something was under way or waited to be; 0 = this kernel does not say */
};
/* pxd_tcp_state: false: fd is no TCP connection. */
bool pxd_tcp_state(int fd, struct pxd_tcp_state *s);

#endif
