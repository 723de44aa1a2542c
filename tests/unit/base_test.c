/* base_test.c: err, wait, buf, crc, list, endian. map has a program of its own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"
#include "crc.h"
#include "endian.h"
#include "err.h"
#include "list.h"
#include "test.h"
#include "wait.h"

/* Runs px_log with standard error in a pipe; returns what came out. */
static const char *logged(enum px_level level, const char *text)
{
	static char out[4096];
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	if (saved < 0 || pipe(fds) < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
		return "no pipe";
	dup2(fds[1], STDERR_FILENO);
	px_log(level, "%s", text);
	dup2(saved, STDERR_FILENO);
	n = read(fds[0], out, sizeof out - 1);
	out[n > 0 ? n : 0] = 0;
	close(fds[0]);
	close(fds[1]);
	close(saved);
	return out;
}

TEST(every_error_has_a_text)
{
	CHECK_STR(px_strerror(PX_EPROTO), "malformed frame");
	CHECK_STR(px_strerror(PX_ETRUNCATE), "message longer than the receive buffer");
	CHECK_STR(px_strerror(PX_OK), "success");
	CHECK_STR(px_strerror(80), "success");
	CHECK_STR(px_strerror(-9999), "unknown error");
	CHECK_INT(PX_EINVAL, -1);
}

TEST(log_prints_one_line_with_the_speaker)
{
	unsetenv("PACX_LOG");
	px_log_init("pacxd[left] out", PX_LOG_WARN);
	CHECK_STR(logged(PX_LOG_WARN, "a 5% loss"), "pacxd[left] out: a 5% loss\n");
	CHECK_STR(logged(PX_LOG_INFO, "hidden"), "");
	setenv("PACX_LOG", "debug", 1);
	px_log_init("x", PX_LOG_ERROR);
	CHECK_STR(logged(PX_LOG_DEBUG, "shown"), "x: shown\n");
	setenv("PACX_LOG", "error", 1);
	px_log_init("x", PX_LOG_DEBUG);
	CHECK_STR(logged(PX_LOG_WARN, "hidden"), "");
	unsetenv("PACX_LOG");
}

TEST(log_cuts_long_lines_and_keeps_errno)
{
	char text[3000];
	const char *out;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	px_log_init("x", PX_LOG_WARN);
	errno = ENOTTY;
	px_log(PX_LOG_DEBUG, "nothing");
	CHECK_INT(errno, ENOTTY);
	out = logged(PX_LOG_ERROR, text);
	CHECK_UINT(strlen(out), 1024);
	CHECK_STR(out + 1020, "...\n");
}

TEST(endian_is_little_and_needs_no_alignment)
{
	static const uint8_t expect[14] = { 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE, 8, 7, 6, 5, 4, 3, 2, 0xF1 };
	uint8_t mem[15];

	px_put16(mem + 1, 0x1234);
	px_put32(mem + 3, 0xDEADBEEFu);
	px_put64(mem + 7, 0xF102030405060708u);
	CHECK_MEM(mem + 1, expect, 14);
	CHECK_UINT(px_get16(mem + 1), 0x1234);
	CHECK_UINT(px_get32(mem + 3), 0xDEADBEEFu);
	CHECK_UINT(px_get64(mem + 7), 0xF102030405060708u);
	for (int i = 0; i < 1000; i++) {
		uint64_t v = test_random();

		px_put64(mem, v);
		CHECK_UINT(px_get64(mem), v);
		CHECK_UINT(px_get32(mem), v & 0xffffffffu);
		CHECK_UINT(px_get16(mem), v & 0xffff);
	}
}

/* One bit at a time, as CRC-32C is defined. */
static uint32_t crc_slow(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = ~crc;
	while (n-- > 0) {
		crc ^= *p++;
		for (int k = 0; k < 8; k++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

TEST(crc_is_crc32c_in_any_pieces)
{
	size_t max = 40000;
	uint8_t *mem = malloc(max);

	CHECK_UINT(px_crc32c(0, "123456789", 9), 0xe3069283u);
	for (size_t i = 0; i < max; i++)
		mem[i] = (uint8_t)test_random();
	for (int i = 0; i < 200; i++) {
		size_t n = test_random() % max, cut = n ? test_random() % n : 0;

		CHECK_UINT(px_crc32c(px_crc32c(0, mem, cut), mem + cut, n - cut), crc_slow(0, mem, n));
	}
	free(mem);
}

TEST(buffer_gives_back_what_was_appended)
{
	struct px_buf b;
	uint64_t written = 0, consumed = 0;
	uint8_t piece[512];

	px_buf_init(&b);
	CHECK(px_buf_data(&b) == NULL);
	for (int i = 0; i < 20000; i++) {
		size_t n = test_random() % sizeof piece;

		if (test_random() % 2) {
			for (size_t k = 0; k < n; k++)
				piece[k] = (uint8_t)((written + k) * 31 >> 3);
			REQUIRE_INT(px_buf_append(&b, piece, n), 0);
			written += n;
		} else {
			n = n < px_buf_len(&b) ? n : px_buf_len(&b);
			for (size_t k = 0; k < n; k++)
				if (px_buf_data(&b)[k] != (uint8_t)((consumed + k) * 31 >> 3))
					REQUIRE(!"byte differs");
			px_buf_consume(&b, n);
			consumed += n;
		}
		REQUIRE(px_buf_len(&b) == written - consumed);
	}
	px_buf_fini(&b);
	CHECK(b.mem == NULL && px_buf_len(&b) == 0);
}

TEST(buffer_stays_small_when_it_is_drained)
{
	struct px_buf b;
	uint8_t piece[100] = { 0 };

	px_buf_init(&b);
	for (int i = 0; i < 10000; i++) {
		REQUIRE_INT(px_buf_append(&b, piece, sizeof piece), 0);
		if (i > 0)
			px_buf_consume(&b, sizeof piece); /* never quite empty */
	}
	CHECK(b.cap <= 512);
	px_buf_fini(&b);
}

TEST(buffer_refuses_impossible_sizes)
{
	struct px_buf b;
	uint8_t *room = NULL;

	px_buf_init(&b);
	CHECK_INT(px_buf_append(&b, "abc", 3), 0);
	CHECK_INT(px_buf_reserve(&b, SIZE_MAX, &room), PX_ENOMEM);
	CHECK(room == NULL);
	CHECK_UINT(px_buf_len(&b), 3);
	CHECK_INT(px_buf_reserve(&b, 1000, &room), 0);
	room[999] = 1;
	px_buf_commit(&b, 1000);
	CHECK_UINT(px_buf_len(&b), 1003);
	CHECK_MEM(px_buf_data(&b), "abc", 3);
	px_buf_fini(&b);
}

struct item {
	int number;
	struct px_list link;
};

TEST(list_keeps_order_and_lets_go)
{
	struct px_list head;
	struct item item[5];
	int sum = 0;

	px_list_init(&head);
	CHECK(px_list_empty(&head) && px_list_pop(&head) == NULL);
	for (int i = 0; i < 5; i++) {
		item[i].number = i;
		px_list_init(&item[i].link);
		if (i < 4)
			px_list_push(&head, &item[i].link);
	}
	px_list_push_front(&head, &item[4].link); /* 4 0 1 2 3 */
	px_list_each(it, &head)
	{
		int n = px_list_entry(it, struct item, link)->number;

		sum = sum * 10 + n;
		if (n % 2)
			px_list_del(it);
	}
	CHECK_INT(sum, 40123);
	px_list_del(&item[1].link); /* again: harmless */
	CHECK_INT(px_list_entry(px_list_pop(&head), struct item, link)->number, 4);
	CHECK_INT(px_list_entry(px_list_pop(&head), struct item, link)->number, 0);
	CHECK_INT(px_list_entry(px_list_pop(&head), struct item, link)->number, 2);
	CHECK(px_list_empty(&head));
}

/* Asks the policy what it would do, advancing the idle age by what it naps, without napping. */
static uint64_t nap_after(struct px_wait *w, uint64_t *slept, uint64_t age)
{
	uint64_t nap = 0;

	while (*slept < age) {
		nap = px_wait_next(w);
		*slept += nap;
		w->since -= nap; /* as if it had slept */
		if (nap == 0)
			*slept = px_now_ns() - w->since;
	}
	return nap;
}

TEST(crowded_waiter_yields_then_naps_longer)
{
	struct px_wait w;
	uint64_t slept = 0, nap = 0;

	unsetenv("PACX_WAIT");
	px_wait_setup(px_wait_cores() + 1, false);
	px_wait_init(&w);
	CHECK_UINT(w.policy->spin_ns, 0);
	CHECK_UINT(w.policy->yield_ns, 1000000);
	CHECK_UINT(px_wait_next(&w), 0);
	while (nap == 0)
		nap = px_wait_next(&w);
	CHECK(px_now_ns() - w.since >= 1000000);
	/* no nap is longer than an eighth of what was waited before it */
	CHECK(nap >= 125000 && nap <= (px_now_ns() - w.since) / 8);
	CHECK(px_wait_next(&w) >= nap);
	CHECK_UINT(nap_after(&w, &slept, 100000000), 200000);
	px_wait_reset(&w);
	CHECK_UINT(px_wait_next(&w), 0);
}

TEST(daemon_naps_long_only_after_long_idleness)
{
	struct px_wait w;
	uint64_t slept, nap, age;
	int tries = 0;

	unsetenv("PACX_WAIT");
	px_wait_setup(px_wait_cores() + 1, true);
	do { /* again if this process lost its core for so long that the idleness was long */
		slept = 0;
		px_wait_init(&w);
		nap = nap_after(&w, &slept, 12000000);
		age = px_now_ns() - w.since;
	} while (age >= 500000000 && ++tries < 100);
	CHECK_UINT(nap, 200000);
	CHECK_UINT(nap_after(&w, &slept, 700000000), 2000000);
	px_wait_setup(1, false);
}

/* As if the last nap had ended so much too late, every every-th by millisec more. */
static uint64_t nap_late(struct px_wait *w, int naps, uint64_t late, int every, uint64_t millisec)
{
	uint64_t nap = w->nap;

	for (int i = 0; i < naps; i++) {
		w->until -= nap + late + (i % every == 0 ? millisec * 1000000 : 0);
		nap = px_wait_next(w);
	}
	return nap;
}

TEST(naps_that_end_late_become_longer)
{
	struct px_wait w;
	uint64_t slept = 0, nap;

	unsetenv("PACX_WAIT");
	px_wait_setup(px_wait_cores() + 1, false);
	px_wait_init(&w);
	CHECK_UINT(nap_after(&w, &slept, 100000000), 200000);
	/* a machine that is slow to wake up, on which somebody computes: few naps are very late */
	CHECK_UINT(nap_late(&w, 1000, 60000, 10, 3), 200000);
	/* a crowd */
	nap = nap_late(&w, 1000, 400000, 10, 3);
	CHECK(nap >= 1600000 && nap <= 3200000);
	px_wait_reset(&w); /* whoever waits next on this node knows it */
	while ((nap = px_wait_next(&w)) == 0)
		;
	CHECK(nap >= 1600000 && nap <= 3200000);
	/* never longer than a bound, and short again when the crowd has gone */
	CHECK(nap_late(&w, 1000, 50000000, 1, 0) <= 8000000);
	CHECK(nap_late(&w, 1000, 60000, 1000, 0) <= 200000);
	px_wait_setup(1, false);
}

TEST(waiter_with_a_core_of_its_own_spins_first)
{
	struct px_wait w;
	uint64_t nap = 0;

	unsetenv("PACX_WAIT");
	px_wait_setup(1, false);
	px_wait_init(&w);
	CHECK_UINT(w.policy->spin_ns, 30000);
	CHECK_UINT(w.policy->yield_ns, 1000000);
	while (nap == 0)
		nap = px_wait_next(&w);
	CHECK(px_now_ns() - w.since >= 1000000);
	CHECK(nap >= 125000);
}

TEST(environment_overrides_the_policy)
{
	struct px_wait w;
	uint64_t slept = 0;

	setenv("PACX_WAIT", "spin", 1);
	px_wait_setup(100000, true);
	px_wait_init(&w);
	CHECK_UINT(nap_after(&w, &slept, 5000000), 0);
	setenv("PACX_WAIT", "sleep", 1);
	px_wait_setup(1, false);
	px_wait_init(&w);
	CHECK_UINT(w.policy->spin_ns, 0);
	CHECK_UINT(w.policy->yield_ns, 20000);
	setenv("PACX_WAIT", "auto", 1);
	px_wait_setup(100000, false);
	px_wait_init(&w);
	CHECK_UINT(w.policy->yield_ns, 1000000);
	unsetenv("PACX_WAIT");
}

TEST(a_stop_counts_for_nobody)
{
	uint64_t before = px_now_ns(), noted;

	/* Between a long stop and its discovery something is noted: it lies ahead of the clock, and is not long ago. */
	noted = before;
	px_now_stood(before / 2);
	CHECK(px_now_ns() < before);
	CHECK_UINT(px_past(px_now_ns(), noted), 0);
	CHECK_UINT(px_past(noted, noted), 0);
	CHECK_UINT(px_past(noted + 5, noted), 5);
}

/* Polls, not time: what a poll costs depends on who else is there. 1 % of a core here. */
TEST(idle_daemon_polls_five_hundred_times_a_second)
{
	struct px_wait w;
	uint64_t start;
	int polls = 0;

	unsetenv("PACX_WAIT");
	px_wait_setup(100000, true);
	px_wait_init(&w);
	for (start = px_now_ns(); px_now_ns() - start < 700000000u;)
		px_wait_idle(&w);
	for (start = px_now_ns(); px_now_ns() - start < 400000000u; polls++)
		px_wait_idle(&w);
	CHECK(polls > 0);
	CHECK(polls <= 201);
}

TEST(cores_are_those_of_the_affinity_mask)
{
	cpu_set_t all, one;
	int first = 0;

	REQUIRE_INT(sched_getaffinity(0, sizeof all, &all), 0);
	CHECK_INT(px_wait_cores(), CPU_COUNT(&all));
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	REQUIRE_INT(sched_setaffinity(0, sizeof one, &one), 0);
	CHECK_INT(px_wait_cores(), 1);
	px_wait_setup(2, false);
	CHECK(px_wait_crowded());
	px_wait_setup(1, false);
	CHECK(!px_wait_crowded());
	sched_setaffinity(0, sizeof all, &all);
}
