/* crowd.c: see crowd.h. */
#include "crowd.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "err.h"
#include "wait.h"

#define DRAWS                                                                                                \
	16 /* of them the one whose address has the most places goes: an address with half of all is among them for certain */
#define SHARE_MIN 16

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t draw(struct pxd_crowd *c)
{
	return mix(c->random += UINT64_C(0x9e3779b97f4a7c15));
}

void pxd_crowd_init(struct pxd_crowd *c, int most)
{
	uint64_t seed[2];

	memset(c, 0, sizeof *c);
	c->most = most;
	if (getrandom(seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
		seed[0] = seed[1] = px_now_ns() ^ (uint64_t)(uintptr_t)c; /* early at boot */
	c->secret = seed[0];
	c->random = seed[1];
}

void pxd_crowd_fini(struct pxd_crowd *c)
{
	free(c->place);
	c->place = NULL;
	c->n = c->room = 0;
}

int pxd_crowd_share(int part, int most)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / (rlim_t)part >= (rlim_t)most)
		return most;
	return (int)files.rlim_cur / part > SHARE_MIN ? (int)files.rlim_cur / part : SHARE_MIN;
}

/* Who has one address of IPv6 has all 2^64 beside it. */
static uint16_t bucket_of(const struct pxd_crowd *c, const struct sockaddr *from)
{
	uint64_t x = 0;

	if (from && from->sa_family == AF_INET) {
		x = ((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr;
	} else if (from && from->sa_family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;

		memcpy(&x, a->s6_addr + (IN6_IS_ADDR_V4MAPPED(a) ? 8 : 0), sizeof x);
	}
	return (uint16_t)(mix(mix(x ^ c->secret) + c->secret) % PXD_CROWD_BUCKETS);
}

int pxd_crowd_join(struct pxd_crowd *c, struct pxd_crowd_place *p, const struct sockaddr *from)
{
	if (c->n == c->room) {
		int room = c->room ? 2 * c->room : 32;
		struct pxd_crowd_place **more = realloc(c->place, (size_t)room * sizeof *more);

		if (!more)
			return PX_ENOMEM;
		c->place = more;
		c->room = room;
	}
	p->bucket = bucket_of(c, from);
	p->at = c->n;
	p->in = true;
	c->place[c->n++] = p;
	c->count[p->bucket]++;
	return PX_OK;
}

void pxd_crowd_leave(struct pxd_crowd *c, struct pxd_crowd_place *p)
{
	if (!p->in)
		return;
	c->count[p->bucket]--;
	c->place[p->at] = c->place[--c->n];
	c->place[p->at]->at = p->at;
	p->in = false;
}

struct pxd_crowd_place *pxd_crowd_victim(struct pxd_crowd *c)
{
	struct pxd_crowd_place *worst = NULL;

	for (int i = 0; i < DRAWS && c->n > 0; i++) {
		struct pxd_crowd_place *p = c->place[draw(c) % (uint64_t)c->n];

		if (!worst || c->count[p->bucket] > c->count[worst->bucket])
			worst = p;
	}
	return worst;
}
