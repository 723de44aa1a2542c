/* crowd.h: places for those who have proved nothing: when all are taken, whose place does a newcomer get?
 *
 * Not the oldest's: whoever comes at a high rate would have all places, and an honest caller who is far away none. The victim is drawn
 * at random, from the addresses that hold the most places; so a caller among n places lasts n newcomers on average whatever
 * comes, and for ever if its address is not the flood's. Owned by a door (door.c), its handshakes (listen.c), a relay (relay.c).
 * Knows no sockets and frees nothing but its own table.
 */
#ifndef PXD_CROWD_H
#define PXD_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#define PXD_CROWD_BUCKETS 1024 /* addresses are counted by a keyed hash */

struct sockaddr;

/* A place; embedded in what has it. */
struct pxd_crowd_place {
	int at;
	uint16_t bucket;
	bool in; /* some crowd */
};

struct pxd_crowd {
	struct pxd_crowd_place **place;
	int n, most, room;
	uint32_t count[PXD_CROWD_BUCKETS];
	uint64_t secret, random;
};

/* pxd_crowd_init: most places, no memory until somebody comes. */
void pxd_crowd_init(struct pxd_crowd *c, int most);
void pxd_crowd_fini(struct pxd_crowd *c); /* those in it are not touched */
/* pxd_crowd_share: how many of the process's descriptors a crowd may hold: a `part`-th, at least 16, at most `most`. */
int pxd_crowd_share(int part, int most);
/* pxd_crowd_join: also beyond `most`; the caller makes room. from may be NULL. 0 or PX_ENOMEM. */
int pxd_crowd_join(struct pxd_crowd *c, struct pxd_crowd_place *p, const struct sockaddr *from);
void pxd_crowd_leave(struct pxd_crowd *c, struct pxd_crowd_place *p); /* harmless when it is not in it */
/* pxd_crowd_victim: who has to go, still in the crowd. NULL: it is empty. */
struct pxd_crowd_place *pxd_crowd_victim(struct pxd_crowd *c);

#endif
