/* daemons.h: what the relay daemons of this user on this machine say of themselves on their status sockets.
 *
 * A list is a snapshot, owned by the caller (pxd_daemons_free). A member that a daemon does not send is 0 or "". Sockets
 * that nobody listens on any more are removed; daemons that do not answer in time are counted, not waited for.
 */
#ifndef PXD_PACXCTL_DAEMONS_H
#define PXD_PACXCTL_DAEMONS_H

#include "wire/hello.h" /* PX_NAME_MAX, PX_JOB_MAX */

struct pxd_daemon_link {
	char from[PX_NAME_MAX + 1], to[PX_NAME_MAX + 1], state[16];
	double since_s, last_byte_s, streams, rtt_us, messages, payload, wire, queued, retained, reconnects,
		rate;
	/* Bytes of the program's, and what they took on the wire: in all codecs; within a bound that was asked for. */
	double plain, coded, lossy_plain, lossy_coded;
};

struct pxd_daemon {
	char job[PX_JOB_MAX + 1], site[PX_NAME_MAX + 1], role[8], version[40];
	double gateway, pid, uptime_s, memory /* anonymous */, buffer, used;
	int nlinks;
	struct pxd_daemon_link *links;
	char *text; /* the JSON object */
};

struct pxd_daemons {
	int n, silent;
	struct pxd_daemon *list; /* by job, site, role, gateway */
};

/* pxd_daemons_read: job NULL = all. PX_ENOMEM; otherwise 0, with complaints about directories on standard error. */
int pxd_daemons_read(struct pxd_daemons *d, const char *job);
void pxd_daemons_free(struct pxd_daemons *d);

/* pxd_size_text: "1.5 MB", in buf of at least 16; pxd_memory_text: "1.4 MiB"; pxd_time_text: "3m12s". They return buf. */
const char *pxd_size_text(double bytes, char *buf);
const char *pxd_memory_text(double bytes, char *buf);
const char *pxd_time_text(double seconds, char *buf);

#endif
