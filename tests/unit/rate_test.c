/* rate_test.c: what a path takes for the rate of its wire, with a kernel, an emulated line and a clock that say what the test says. */
#include "link_rate.h"

#include "conn.h"
#include "tcp_state.h"
#include "test.h"

#define TICK 50000000u /* ns */

static struct pxd_tcp_state kernel;
static double line_rate;

bool pxd_tcp_state(int fd, struct pxd_tcp_state *s)
{
	(void)fd;
	*s = kernel;
	return true;
}

bool pxd_conn_line_busy(const struct pxd_conn *c)
{
	(void)c;
	return false;
}

double pxd_conn_line_rate(const struct pxd_conn *c)
{
	(void)c;
	return line_rate;
}

static int no_more(struct pxd_path *l)
{
	(void)l;
	return -1;
}

struct wire {
	struct pxd_path path;
	struct pxd_stream stream;
	struct pxd_conn conn;
	struct pxd_link_opts opts;
	uint64_t now;
};

static void wire_init(struct wire *w)
{
	memset(w, 0, sizeof *w);
	w->opts.streams = 1;
	w->path.opts = &w->opts;
	w->path.nstreams = w->path.use = 1;
	w->path.stream[0] = &w->stream;
	w->stream.conn = &w->conn;
	w->stream.life.state = PXD_LINK_UP;
	w->stream.q.unsent = 1;
	w->now = TICK;
	kernel = (struct pxd_tcp_state){ .bytes_acked = 1, .busy_us = 1, .rtt_us = 100 };
	line_rate = 0;
}

static void tick(struct wire *w, uint64_t bytes, uint64_t busy_us)
{
	kernel.bytes_acked += bytes;
	kernel.busy_us = kernel.busy_us ? kernel.busy_us + busy_us : 0;
	w->now += TICK;
	pxd_rate_tick(&w->path, w->now, no_more);
}

static double rate_after(struct wire *w, uint64_t bytes, uint64_t busy_us)
{
	for (int i = 0; i < 20; i++)
		tick(w, bytes, busy_us);
	return w->path.rate;
}

TEST(time_without_anything_to_carry_does_not_count)
{
	struct wire w;

	wire_init(&w);
	REQUIRE(rate_after(&w, 2500000, 20000) == 125e6);
	wire_init(&w);
	REQUIRE(rate_after(&w, 2500000, 50000) == 50e6);
	wire_init(&w);
	kernel.busy_us = 0; /* a kernel that does not say */
	REQUIRE(rate_after(&w, 2500000, 0) == 50e6);
	wire_init(&w);
	REQUIRE(rate_after(&w, 2500000, 1) == 200e6); /* its clock is coarse: not less than a quarter */
}

TEST(a_path_that_is_not_full_says_nothing)
{
	struct wire w;

	wire_init(&w);
	w.stream.q.unsent = 0;
	REQUIRE(rate_after(&w, 2500000, 20000) == 0);
	w.stream.q.unsent = 1;
	tick(&w, 1000, 50000); /* since when is it full? */
	REQUIRE(w.path.rate == 0);
	tick(&w, 2500000, 20000);
	REQUIRE(w.path.rate == 125e6);
}

TEST(a_rate_goes_up_sooner_than_down)
{
	struct wire w;

	wire_init(&w);
	rate_after(&w, 500000, 50000);
	tick(&w, 1500000, 50000);
	REQUIRE(w.path.rate == 20e6);
	wire_init(&w);
	rate_after(&w, 1500000, 50000);
	tick(&w, 500000, 50000);
	REQUIRE(w.path.rate == 25e6);
}

TEST(an_emulated_wire_has_its_rate_whatever_the_machine_makes_of_it)
{
	struct wire w;

	wire_init(&w);
	line_rate = 125e6;
	REQUIRE(rate_after(&w, 1000, 50000) == 125e6);
}

TEST(what_a_rank_has_seen_is_believed_where_it_is_slow_until_it_is_measured)
{
	struct wire w;

	wire_init(&w);
	pxd_rate_told(&w.path, 12e6);
	REQUIRE(w.path.rate == 0);
	pxd_rate_told(&w.path, 1.25e6);
	REQUIRE(w.path.rate == 1.25e6);
	tick(&w, 1, 50000);
	REQUIRE(w.path.rate == 1.25e6);
	tick(&w, 2500000, 50000);
	REQUIRE(w.path.rate == 50e6);
	pxd_rate_told(&w.path, 1.25e6);
	REQUIRE(w.path.rate == 50e6);
}

/* Segments are kept back for it, by what is known of it (pack.c): then it is not full, whatever else it might carry. */
TEST(a_wire_that_is_spared_is_found_to_be_faster)
{
	struct wire w;

	wire_init(&w);
	REQUIRE(rate_after(&w, 62500, 50000) == 1.25e6);
	w.stream.q.unsent = 0;
	for (int i = 0; i < 40;
		i++) { /* the wire takes what it is given, which is a quarter more than it is known to */
		w.path.spared = true;
		tick(&w, (uint64_t)(w.path.rate * 1.25 * 0.05), 50000);
	}
	REQUIRE(w.path.rate > 100e6);
	REQUIRE(rate_after(&w, 10000000, 50000) == w.path.rate); /* not spared: nobody knows */
	w.path.spared = true;
	tick(&w, 62500, 50000); /* it was not given more */
	REQUIRE(w.path.rate > 100e6);
}

TEST(what_is_on_its_way_keeps_nothing_back)
{
	struct wire w;

	wire_init(&w);
	rate_after(&w, 62500, 50000);
	w.path.wire_until = w.now + 80000000000u;
	tick(&w, 62500, 50000);
	REQUIRE(w.path.wire_until > w.now + 70000000000u); /* it is full */
	w.stream.q.unsent = 0;
	tick(&w, 62500, 50000);
	REQUIRE(w.path.wire_until == w.now + 100000); /* as long as it is on its way */
}
