/* crowd_test.c: who has to go: by address, and at random, never by age. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "test.h"

#define PLACES 500

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *four = (void *)&a;
	struct sockaddr_in6 *six = (void *)&a;

	a.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	CHECK_INT(inet_pton(a.ss_family, text,
			  a.ss_family == AF_INET ? (void *)&four->sin_addr : (void *)&six->sin6_addr),
		1);
	return a;
}

/* `n` newcomers from `flood`, each for the place of a victim. Is `guest` still in? */
static bool lasts(const char *guest, const char *flood, int n)
{
	struct sockaddr_storage a = address(guest), b = address(flood);
	struct pxd_crowd_place *place = calloc(PLACES, sizeof *place), mine = { 0 }, *p;
	struct pxd_crowd c;
	bool in;

	pxd_crowd_init(&c, PLACES);
	CHECK(!pxd_crowd_victim(&c));
	for (int i = 0; i < PLACES / 2; i++)
		CHECK_INT(pxd_crowd_join(&c, &place[i], (struct sockaddr *)&b), 0);
	CHECK_INT(pxd_crowd_join(&c, &mine, (struct sockaddr *)&a), 0);
	for (int i = PLACES / 2; i < PLACES - 1; i++)
		CHECK_INT(pxd_crowd_join(&c, &place[i], (struct sockaddr *)&b), 0);
	for (int i = 0; i < n && mine.in; i++) {
		p = pxd_crowd_victim(&c);
		pxd_crowd_leave(&c, p);
		pxd_crowd_leave(&c, p); /* harmless */
		if (p != &mine)
			CHECK_INT(pxd_crowd_join(&c, p, (struct sockaddr *)&b), 0);
	}
	in = mine.in;
	pxd_crowd_fini(&c);
	free(place);
	return in;
}

/* Two addresses fall into one of PXD_CROWD_BUCKETS once in so many keys: in two runs, each with a key of its own, hardly ever. */
static bool lasts_elsewhere(const char *own, const char *flood)
{
	return lasts(own, flood, 200000) || lasts(own, flood, 200000);
}

TEST(flood_from_elsewhere_drives_nobody_out)
{
	CHECK(lasts_elsewhere("192.0.2.1", "192.0.2.2"));
	CHECK(lasts_elsewhere("2001:db8:0:1::5", "2001:db8:0:2::5"));
	CHECK(lasts_elsewhere("192.0.2.1", "::1"));
}

/* Of those who share the flood's address a part (1 - 1/e) is driven out by as many newcomers as there are places. */
TEST(flood_from_the_same_address_draws_at_random)
{
	int in = 0;

	for (int i = 0; i < 200; i++)
		in += lasts("192.0.2.1", "192.0.2.1", PLACES);
	CHECK(in > 30 && in < 130); /* 74 on average, 7 is its deviation */
}

TEST(neighbours_of_ipv6_are_one_address)
{
	int in = 0;

	for (int i = 0; i < 20; i++)
		in += lasts("2001:db8::1", "2001:db8::ffff:2", 20 * PLACES);
	CHECK_INT(in, 0);
}

TEST(share_of_descriptors_has_bounds)
{
	CHECK_INT(pxd_crowd_share(1, 4), 4);
	CHECK_INT(pxd_crowd_share(1 << 30, 1000), 16);
}
