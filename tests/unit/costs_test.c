/* costs_test.c: which algorithm the table of costs picks, where arithmetic knows the best one, and what it costs: of the wide area of
 * 10 ms, and of sites that share an uplink or are in groups.
 */
#include "costs.h"
#include "test.h"

static const struct px_cost_links four = {
	.latency = 10e-3, .rate = 965e3, .sites = 4, .ranks = 4, .gateways = 1
};

static int picked(enum px_cost_op op, const struct px_cost_links *on, double bytes)
{
	return (int)px_cost_pick(op, on, 1, bytes);
}

static double ms(enum px_cost_op op, const struct px_cost_links *on, double bytes)
{
	return 1e3 * px_cost(op, px_cost_pick(op, on, 1, bytes), on, 1, bytes);
}

TEST(short_operations_cost_one_latency)
{
	for (int op = 0; op <= PX_COST_ALLREDUCE; op++) {
		CHECK_INT(picked((enum px_cost_op)op, &four, 1), PX_ALG_LEADER);
		CHECK(ms((enum px_cost_op)op, &four, 1) < 10.1);
	}
}

TEST(pieces_where_bandwidth_rules)
{
	struct px_cost_links two = four, eight = four;

	two.sites = 2;
	eight.sites = 8;
	/* One latency and all bytes, or two and 2/(n - 1), 2/n of them. */
	for (int op = 0; op <= PX_COST_ALLREDUCE; op++) {
		CHECK_INT(picked((enum px_cost_op)op, &two, 65536), PX_ALG_LEADER);
		CHECK_INT(picked((enum px_cost_op)op, &four, 65536), PX_ALG_PIECES);
		CHECK_INT(picked((enum px_cost_op)op, &eight, 65536), PX_ALG_PIECES);
	}
	CHECK(ms(PX_COST_BCAST, &four, 65536) < 1.15 * (20 + 45.3));
	CHECK(ms(PX_COST_BCAST, &eight, 65536) < 1.15 * (20 + 19.4));
	CHECK(ms(PX_COST_ALLREDUCE, &four, 65536) < 1.15 * (20 + 34));
	CHECK(ms(PX_COST_REDUCE, &eight, 65536) < 1.15 * (20 + 17));
}

TEST(a_shared_uplink_divides_the_rate)
{
	struct px_cost_links on = { .latency = 10e-3, .rate = 125e6, .sites = 4, .ranks = 4, .gateways = 1 };

	CHECK_INT(picked(PX_COST_BCAST, &on, 1 << 18),
		PX_ALG_LEADER); /* 12 ms: a second latency does not pay */
	on.uplink = 12.5e6;
	CHECK_INT(picked(PX_COST_BCAST, &on, 1 << 18),
		PX_ALG_PIECES); /* 3 copies of it leave the root's site, or 1 and 2/3 */
	CHECK_INT(picked(PX_COST_ALLREDUCE, &on, 1 << 18), PX_ALG_PIECES);
	CHECK(px_cost(PX_COST_BCAST, PX_ALG_LEADER, &on, 1, 12.5e6) > 3);
	CHECK(px_cost(PX_COST_BCAST, PX_ALG_PIECES, &on, 1, 12.5e6) < 2.1);
	on.uplink = 1e9; /* more than its links have */
	CHECK_INT(picked(PX_COST_BCAST, &on, 1 << 18), PX_ALG_LEADER);
}

TEST(blocks_of_an_allgather_go_in_pieces_where_one_site_has_most)
{
	struct px_cost_links on = four;

	on.others = 3; /* all alike */
	CHECK_INT(picked(PX_COST_ALLGATHER, &on, 1 << 20), PX_ALG_LEADER);
	on.others = 1; /* all at one site: as a broadcast, but a link carries a third only */
	CHECK_INT(picked(PX_COST_ALLGATHER, &on, 1), PX_ALG_LEADER);
	CHECK_INT(picked(PX_COST_ALLGATHER, &on, 65536), PX_ALG_PIECES);
	CHECK(ms(PX_COST_ALLGATHER, &on, 65536) < 20 + 22.7 + 1);
	on.others = 2.5;
	CHECK_INT(picked(PX_COST_ALLGATHER, &on, 65536), PX_ALG_PIECES); /* 2 * 10 + 56.6 ms, or 10 + 67.9 */
	on.grouped = true;
	CHECK_INT(picked(PX_COST_ALLGATHER, &on, 65536), PX_ALG_LEADER);
}

TEST(a_rate_is_news_when_it_has_changed_by_a_quarter)
{
	CHECK(!px_cost_news(0, 0));
	CHECK(!px_cost_news(1e6, 0)); /* nothing has been seen */
	CHECK(px_cost_news(0, 1e6));
	CHECK(!px_cost_news(1e6, 1e6));
	CHECK(!px_cost_news(1e6, 1.2e6));
	CHECK(!px_cost_news(1e6, 0.9e6));
	CHECK(px_cost_news(1e6, 1.3e6));
	CHECK(px_cost_news(1e6, 0.7e6));
}

TEST(groups_have_no_pieces)
{
	struct px_cost_links on = four;

	on.grouped = true;
	for (int op = 0; op <= PX_COST_ALLREDUCE; op++)
		CHECK(picked((enum px_cost_op)op, &on, 65536) != PX_ALG_PIECES);
}
