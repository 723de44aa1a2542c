/* relay_end.h: one connection of `pacxd --relay`, and pairs of them: what one side sends, the other gets.
 *
 * Private to relay.c (who meets whom) and relay_end.c (moving bytes). An end begins GREETING, is WAITING for its twin (CONNECTING
 * is the state of the end that --next makes us dial), and PAIRED. Lifetimes:
 *  1. pxd_end_close ends it, once, from anywhere, and its partner with it; memory goes in libuv's close callback.
 *  2. After that both have no `other`; every callback looks at that first.
 */
#ifndef PXD_RELAY_END_H
#define PXD_RELAY_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "err.h"
#include "list.h"
#include "preamble.h"

#define PXD_RELAY_ADDRESSES   8    /* that we listen on, or that the next relay has */
#define PXD_RELAY_EARLY       8192 /* bytes that an end may send before its twin is there */
#define PXD_RELAY_LOG_BURST   10.0
#define PXD_RELAY_GREETING_MS 10000 /* for the preamble, and for reaching the next relay */

enum pxd_end_state { GREETING, WAITING, CONNECTING, PAIRED };

struct pxd_relay;

struct pxd_end {
	struct px_list l;
	uv_tcp_t tcp;
	struct pxd_relay *relay;
	enum pxd_end_state state;
	struct pxd_end *other; /* partner; PAIRED, or the two ends while we dial the next relay */
	struct px_preamble pre;
	uint64_t deadline; /* uv_now, while not PAIRED */
	/* What was read and not yet taken by the partner; while GREETING the preamble. */
	uint8_t *buf;
	size_t cap, start, len;
	bool reading, eof;
	/* The other way: what its partner has sent. */
	uv_write_t write;
	bool writing;
	uv_shutdown_t shutdown;
	bool shutting, shut;
	uv_connect_t connect;
	int address; /* of next that is being dialled */
	char peer[80];
};

struct pxd_relay {
	uv_loop_t loop;
	uv_tcp_t sock[PXD_RELAY_ADDRESSES];
	int nsocks;
	uv_timer_t sweep;
	uv_signal_t term, intr;
	struct px_list ends;
	int nends, ngreeting;
	struct sockaddr_storage next[PXD_RELAY_ADDRESSES];
	int nnext;
	const char *next_name;
	uint64_t wait_ms;
	double allowance; /* log lines that may be written now */
	uint64_t refilled;
	uint64_t unsaid;
	bool failed;
	void (*greeted)(
		struct pxd_end *e); /* more of the preamble has come; the buffer is no longer than it */
};

void pxd_relay_note(struct pxd_relay *r, enum px_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* px_log, but not at the rate of strangers */

/* pxd_end_new: a new end with room for cap bytes, in r's list. NULL: out of memory. */
struct pxd_end *pxd_end_new(struct pxd_relay *r, enum pxd_end_state state, size_t cap);
void pxd_end_state(struct pxd_end *e, enum pxd_end_state state);
/* pxd_end_close: e and its partner; reset: the sites shall see a cut, not an end. */
void pxd_end_close(struct pxd_end *e, bool reset);
/* pxd_end_drop: e alone, whose partner has been given another one. */
void pxd_end_drop(struct pxd_end *e, bool reset);
void pxd_end_options(struct pxd_end *e); /* of its socket, once it is connected */
bool pxd_end_grow(struct pxd_end *e, size_t cap);
bool pxd_end_read(struct pxd_end *e); /* start reading; false: it cannot */
/* pxd_end_pair: from here on what one sends the other gets, first what was read already. May close both. */
void pxd_end_pair(struct pxd_end *a, struct pxd_end *b);

#endif
