/* vain_test.c: small messages whose packing has been in vain are left alone, ever longer, and all others are packed. */
#include "test.h"
#include "vain.h"

/* How many of n messages, of so many flows in turn, are packed. */
static int packed(struct pxd_vain *v, int n, unsigned flows, bool paid)
{
	int some = 0;

	for (int i = 0; i < n; i++) {
		uint64_t flow = ((unsigned)i % flows + 1) * 0x9e3779b97f4a7c15u;

		if (pxd_vain_rests(v, flow, 8))
			continue;
		some++;
		pxd_vain_learn(v, flow, 8, paid);
	}
	return some;
}

TEST(what_pays_is_packed_always)
{
	static struct pxd_vain v;

	CHECK_INT(packed(&v, 1000, 1, true), 1000);
	CHECK_INT(packed(&v, 10000, 2000, true), 10000);
}

TEST(what_does_not_pay_is_tried_ever_more_rarely)
{
	static struct pxd_vain v;
	int first = packed(&v, 100, 1, false), later = packed(&v, 6500, 1, false);

	CHECK(first >= 4 && first < 10);
	CHECK(later >= 24 && later <= 32); /* one in 257 in the end */
}

TEST(flows_that_are_too_many_go_by_their_kind)
{
	static struct pxd_vain v;
	int some = packed(&v, 20000, 2000, false);

	CHECK(some > 20 && some < 1000);
}

TEST(what_pays_again_is_packed_again)
{
	static struct pxd_vain v;

	packed(&v, 1000, 1, false);
	while (pxd_vain_rests(&v, 0x9e3779b97f4a7c15u, 8)) {
	}
	pxd_vain_learn(&v, 0x9e3779b97f4a7c15u, 8, true);
	CHECK_INT(packed(&v, 100, 1, true), 100);
}

TEST(a_flow_does_not_go_by_what_others_lost)
{
	static struct pxd_vain v;

	pxd_vain_learn(&v, 7, 8, true);
	packed(&v, 1000, 1, false);
	CHECK(!pxd_vain_rests(&v, 7, 8));
}
