/* relay_end.h: one connection of `pacxd --relay`, and pairs of them: what one side sends, the other gets.
 *
 * Private to relay.c (who meets whom), relay_end.c (moving bytes) and relay_who.c. An end has said its preamble (door.h); it is WAITING
 * for its twin (CONNECTING is the state of the end that --next makes us dial), then PAIRED. Lifetimes:
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

#include "crowd.h"
#include "door.h"
#include "err.h"
#include "list.h"
#include "preamble.h"
#include "proof.h"
#include "quiet.h"

#define PXD_RELAY_ADDRESSES 8     /* that the next relay has */
#define PXD_RELAY_EARLY     8192  /* bytes that an end may send before its twin is there */
#define PXD_RELAY_REACH_MS  10000 /* for reaching the next relay */
#define PXD_RELAY_JOBS      64    /* that --job may name */

enum pxd_end_state { WAITING, CONNECTING, PAIRED };

struct pxd_relay;

struct pxd_end {
	struct px_list l;
	uv_tcp_t tcp;
	struct pxd_relay *relay;
	enum pxd_end_state state;
	struct pxd_end *other;   /* partner; PAIRED, or the two ends while we dial the next relay */
	struct pxd_crowd *crowd; /* of which it has a place, NULL = none */
	struct pxd_crowd_place place;
	struct sockaddr_storage from;
	struct px_preamble pre;
	uint64_t deadline;     /* uv_now, while not PAIRED */
	uint64_t since, heard; /* uv_now: when it came, and of its last byte */
	uint64_t bytes;        /* that came from it */
	/* What was read and not yet taken by the partner. */
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
	char peer[PXD_PEER_TEXT];
};

struct pxd_relay {
	uv_loop_t loop;
	struct pxd_quiet quiet;
	struct pxd_door door;
	uv_timer_t sweep;
	uv_signal_t term, intr, usr1;
	struct px_list ends;
	int nends;
	struct pxd_crowd waiting, paired;
	uint8_t job[PXD_RELAY_JOBS][PX_JOBHASH_SIZE]; /* that are served; none: all */
	int njobs;
	const uint8_t *door_key; /* of the jobs that are served, or NULL: they need not prove it */
	uint8_t door_bytes[PXD_KEY_SIZE];
	struct pxd_proof_memory newest;
	struct sockaddr_storage next[PXD_RELAY_ADDRESSES];
	int nnext;
	const char *next_name;
	uint64_t wait_ms;
};

/* pxd_relay_who: tell who is here, in the log. */
void pxd_relay_who(const struct pxd_relay *r);
/* pxd_stream_text: "link of site 0 -> site 1, ...", in text. */
const char *pxd_stream_text(const struct px_preamble *p, char text[120]);

/* pxd_end_new: a new end with room for cap bytes, in r's list. fd: its socket, taken in any case; -1 = none yet. NULL: out of memory. */
struct pxd_end *pxd_end_new(struct pxd_relay *r, enum pxd_end_state state, size_t cap, int fd);
/* pxd_end_place: a place in a crowd, instead of the one that it had. Another one may be closed for it, with its partner, never e. */
bool pxd_end_place(struct pxd_end *e, struct pxd_crowd *crowd);
bool pxd_end_same_host(const struct pxd_end *a, const struct pxd_end *b);
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
