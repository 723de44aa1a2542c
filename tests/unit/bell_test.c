/* bell_test.c: no ring is lost, by futex and by signal; what cannot be joined. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bell.h"
#include "err.h"
#include "test.h"
#include "wait.h"

#define LONG_NS 20000000000u
#define ROUNDS  20000

static const int who[2] = { 5, 2 }; /* the first bell is that of process 5 */

struct mail {
	_Atomic int to[2], late[2]; /* [i]: for who[i] */
};

static void nothing(int sig)
{
	(void)sig;
}

/* A nap as a daemon takes it. */
static void nap_listening(uint32_t heard, const sigset_t *awake)
{
	const struct timespec t = { LONG_NS / 1000000000u, 0 };

	if (px_bell_listen(heard))
		ppoll(NULL, 0, &t, awake);
}

/* A rank's. true: rung. */
static bool slept(uint32_t heard, uint64_t ns)
{
	px_bell_sleep(heard, ns);
	return px_bell_heard() != heard;
}

/* One of two who send each other a number, sleep until the other's has come, and answer; i = 0 begins. Naps that end by themselves are counted; one
 * may end early for nothing, as a ring may come when its message has been found already. */
static void play(struct mail *m, int i, bool by_signal)
{
	struct sigaction sa = { .sa_handler = nothing };
	sigset_t bells, awake;

	sigaction(SIGURG, &sa, NULL);
	sigemptyset(&bells);
	sigaddset(&bells, SIGURG);
	sigprocmask(SIG_BLOCK, &bells, &awake);
	sigdelset(&awake, SIGURG);
	for (int n = 1; n <= ROUNDS; n++) {
		if (i == 0) {
			m->to[1] = n;
			px_bell_ring(who[1]);
		}
		for (;;) {
			uint32_t heard = px_bell_heard();
			uint64_t start = px_now_ns();

			if (m->to[i] == n)
				break;
			if (by_signal)
				nap_listening(heard, &awake);
			else
				px_bell_sleep(heard, LONG_NS);
			m->late[i] += px_bell_heard() == heard && px_now_ns() - start >= LONG_NS;
		}
		if (i == 1) {
			m->to[0] = n;
			px_bell_ring(who[0]);
		}
	}
	sigprocmask(SIG_UNBLOCK, &bells, NULL);
}

static void table(bool first_by_signal, bool second_by_signal)
{
	struct mail *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char name[PX_BELL_NAME];
	pid_t child;
	int status = -1;

	REQUIRE(m != MAP_FAILED);
	REQUIRE_INT(px_bell_make(name, 2), 0);
	child = fork();
	if (child == 0) {
		if (px_bell_join(name, 2, who, 6, 2, second_by_signal) < 0)
			_exit(1);
		play(m, 1, second_by_signal);
		_exit(0);
	}
	REQUIRE_INT(px_bell_join(name, 2, who, 6, 5, first_by_signal), 0);
	play(m, 0, first_by_signal);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	CHECK_INT(m->to[0], ROUNDS);
	CHECK_INT(m->late[0], 0);
	CHECK_INT(m->late[1], 0);
	px_bell_unlink(name);
	px_bell_drop();
	munmap(m, sizeof *m);
}

TEST(no_ring_is_lost_between_two_who_sleep_on_a_futex)
{
	table(false, false);
}

TEST(no_ring_is_lost_between_a_daemon_and_a_rank)
{
	table(false, true);
	table(true, false);
}

TEST(no_ring_is_lost_between_two_daemons)
{
	table(true, true);
}

/* Alone with two bells, ours being the second. */
static bool alone(void)
{
	char name[PX_BELL_NAME];
	bool joined;

	if (px_bell_make(name, 2) < 0)
		return false;
	joined = px_bell_join(name, 2, who, 6, 2, false) == 0;
	px_bell_unlink(name);
	return joined && access(name, F_OK) != 0;
}

TEST(what_was_rung_before_the_poll_is_no_reason_to_stay_awake)
{
	uint32_t heard;
	uint64_t start;

	REQUIRE(alone());
	px_bell_ring(2);
	heard = px_bell_heard();
	start = px_now_ns();
	CHECK(!slept(heard, 2000000));
	CHECK(px_now_ns() - start >= 2000000);
	px_bell_ring(2);
	CHECK(slept(heard, LONG_NS));
	CHECK(!px_bell_listen(heard));
	px_bell_drop();
}

TEST(who_is_owed_a_ring_hears_it_when_it_is_paid_or_the_debtor_waits)
{
	struct px_wait w;
	uint32_t one;
	char name[PX_BELL_NAME];

	REQUIRE_INT(px_bell_make(name, 2), 0);
	REQUIRE_INT(px_bell_join(name, 2, who, 6, 2, false), 0);
	px_bell_owe(2); /* ourselves: never */
	px_bell_owe(5);
	px_bell_owe(0); /* elsewhere */
	px_bell_owe(77);
	px_bell_owe(-1);
	px_bell_pay();
	px_bell_pay();
	px_bell_owe(5);
	px_wait_init(&w);
	px_wait_idle(&w);
	CHECK_UINT(px_bell_heard(), 0);
	px_bell_ring(2);
	one = px_bell_heard();
	CHECK(one > 0);
	px_bell_drop();
	REQUIRE_INT(px_bell_join(name, 2, who, 6, 5, false), 0);
	CHECK_UINT(px_bell_heard(), 2 * one);
	px_bell_unlink(name);
	px_bell_drop();
}

TEST(without_bells_a_nap_is_a_nap)
{
	uint64_t start = px_now_ns();

	px_bell_ring(0);
	px_bell_owe(0);
	px_bell_pay();
	CHECK_UINT(px_bell_heard(), 0);
	CHECK(px_bell_listen(0));
	CHECK(!slept(0, 2000000));
	CHECK(px_now_ns() - start >= 2000000);
}

TEST(a_waiter_that_is_rung_polls_at_once_and_yields_again)
{
	struct px_wait w;
	uint64_t ns;

	REQUIRE(alone());
	unsetenv("PACX_WAIT");
	px_wait_setup(100000, false);
	px_wait_init(&w);
	while ((ns = px_wait_next(&w)) == 0)
		;
	px_bell_ring(2);
	CHECK(px_wait_woken(&w));
	CHECK_UINT(w.heard, px_bell_heard());
	CHECK_UINT(px_wait_next(&w), 0);
	px_bell_drop();
}

TEST(a_page_that_is_not_as_it_should_be_is_not_joined)
{
	char name[PX_BELL_NAME];
	struct stat st;

	CHECK_INT(px_bell_join("/dev/shm/pacx-nobody-made-this", 2, who, 6, 2, false), PX_EIO);
	REQUIRE_INT(px_bell_make(name, 2), 0);
	REQUIRE_INT(stat(name, &st), 0);
	CHECK_INT((int)(st.st_mode & 0777), 0600);
	CHECK_INT(px_bell_join(name, 3, who, 6, 2, false), PX_EIO); /* another size */
	px_bell_unlink(name);
	CHECK_INT(px_bell_join(name, 2, who, 6, 2, false), PX_EIO);
	CHECK_UINT(px_bell_heard(), 0);
}
