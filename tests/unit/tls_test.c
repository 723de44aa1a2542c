/* tls_test.c: the bytes of a stream through sockets of any size, whole, cut and changed. */
#include "tls_ends.h"

/* A stream of numbers, so that each byte is known from its place. */
static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 13);
}

struct flow {
	uint64_t sent, got, total;
	uint8_t *mem;
	size_t most;   /* bytes per call */
	bool all_left; /* the last call took all it was given */
};

/* flow_write: the stream from where it stands, in pieces of any size at a new address each time. */
static bool flow_write(struct flow *f, struct pxd_tls *t)
{
	uint64_t left = f->total - f->sent;
	struct iovec v[40];
	size_t n = left < f->most ? (size_t)left : f->most, at = 0;
	ssize_t rc;
	int k = 0;

	if (n == 0)
		return false;
	n = 1 + test_random() % n;
	for (size_t i = 0; i < n; i++)
		f->mem[i] = byte_at(f->sent + i);
	for (; k < 40 && at < n; k++) {
		size_t max = test_random() % 3 ? 300 : f->most, len = test_random() % (max + 1);

		len = len < n - at ? len : n - at;
		v[k] = (struct iovec){ f->mem + at, len };
		at += len;
	}
	rc = pxd_tls_writev(t, v, k);
	if (rc > 0)
		f->sent += (uint64_t)rc;
	f->all_left = rc == (ssize_t)at;
	memset(f->mem, 0xee, n); /* what was not taken is not looked at again */
	if (at > 0)
		CHECK(rc > 0 ? (size_t)rc <= at : waits((int)rc));
	return rc > 0;
}

static bool flow_read(struct flow *f, struct pxd_tls *t)
{
	size_t n = 1 + test_random() % f->most;
	ssize_t rc = pxd_tls_read(t, f->mem, n);

	if (rc <= 0) {
		CHECK(waits((int)rc));
		return false;
	}
	CHECK((size_t)rc <= n);
	for (ssize_t i = 0; i < rc; i++, f->got++)
		if (f->mem[i] != byte_at(f->got)) {
			CHECK_UINT(f->mem[i], byte_at(f->got));
			return false;
		}
	return true;
}

static void check_flow(int size, size_t most, uint64_t total)
{
	struct flow there = { .total = total, .most = most }, back = { .total = total / 3, .most = most };
	struct ends e;
	int c, s, turns = 0;

	there.mem = back.mem = malloc(most);
	ends_open(&e, ctx_of(key_a, "flow", 0), ctx_of(key_a, "flow", 1), 1, size, false);
	REQUIRE(there.mem && e.c && e.s);
	ends_shake(&e, &c, &s);
	CHECK(c == 0 && s == 0);
	while ((there.got < there.total || back.got < back.total) && turns++ < TURNS && test_failures == 0) {
		flow_write(&there, e.c);
		flow_write(&back, e.s);
		if (test_random() % 2)
			flow_read(&there, e.s);
		if (test_random() % 2)
			flow_read(&back, e.c);
		/* Who acknowledges a byte that its writer does not know to be written is taken for a liar. */
		CHECK(there.got <= there.sent && back.got <= back.sent);
		/* When all is said to be written it is with the kernel: all of it can be read. */
		if (turns % 50 == 0 && test_failures == 0) {
			while (flow_read(&there, e.s))
				;
			CHECK(there.got <= there.sent && (!there.all_left || there.got == there.sent));
			CHECK(!pxd_tls_pending(e.s));
		}
	}
	CHECK_UINT(there.got, there.total);
	CHECK_UINT(back.got, back.total);
	ends_close(&e);
	free(there.mem);
}

TEST(bytes_arrive_in_order_whatever_their_pieces)
{
	check_flow(0, 40, 20000);
	check_flow(0, 5000, 3000000);
	check_flow(0, 70000, 8000000);
	check_flow(0, 600000, 16000000);
}

TEST(bytes_arrive_in_order_through_tiny_sockets)
{
	check_flow(1, 40, 20000);
	check_flow(1, 5000, 1000000);
	check_flow(1, 100000, 4000000);
	check_flow(1, 600000, 8000000);
}

TEST(pending_tells_when_the_socket_is_silent)
{
	char buf[16];
	struct ends e;

	REQUIRE(shaken(&e, 0, false));
	CHECK(!pxd_tls_pending(e.s));
	CHECK_INT(say(e.c, "abcdef"), 6);
	CHECK_INT(say(e.c, "ghi"), 3);
	CHECK_INT(pxd_tls_read(e.s, buf, 4), 4);
	CHECK_MEM(buf, "abcd", 4);
	CHECK(pxd_tls_pending(e.s)); /* and yet a poll of the socket would wait for ever */
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), 5);
	CHECK_MEM(buf, "efghi", 5);
	CHECK(!pxd_tls_pending(e.s));
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_WANT_READ);
	ends_close(&e);
}

TEST(end_and_cut_are_told_apart)
{
	char buf[16];
	struct ends e;

	REQUIRE(shaken(&e, 0, false));
	CHECK_INT(say(e.c, "last"), 4);
	pxd_tls_shutdown(e.c);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), 4);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_EOF);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_EOF);
	CHECK(!pxd_tls_pending(e.s));
	ends_close(&e);

	REQUIRE(shaken(&e, 0, false));
	CHECK_INT(say(e.c, "last"), 4);
	close(e.fd[0]);
	e.fd[0] = -1;
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), 4);
	CHECK_INT(pxd_tls_read(e.s, buf, sizeof buf), PXD_TLS_ERROR);
	CHECK_STR(pxd_tls_why(e.s), "the connection was cut");
	ends_close(&e);
}

TEST(writing_to_a_closed_socket_is_an_error_not_a_signal)
{
	struct ends e;
	ssize_t rc = 0;

	signal(SIGPIPE, SIG_DFL);
	REQUIRE(shaken(&e, 0, false));
	close(e.fd[1]);
	e.fd[1] = -1;
	for (int i = 0; i < 10 && rc >= 0; i++)
		rc = say(e.c, "is anybody there?");
	CHECK_INT(rc, PXD_TLS_ERROR);
	CHECK_INT(say(e.c, "?"), PXD_TLS_ERROR);
	pxd_tls_shutdown(e.c);
	ends_close(&e);
}

TEST(changed_bit_in_data_is_an_error)
{
	char buf[64];

	for (int i = 0; i < 20; i++) {
		struct ends e;
		ssize_t rc;

		REQUIRE(shaken(&e, 0, true));
		e.flip = (long)(8 * e.passed[0] + test_random() % (8 * (16 + 5 + 17)));
		CHECK_INT(say(e.c, "sixteen letters."), 16);
		middle(&e);
		rc = pxd_tls_read(e.s, buf, sizeof buf);
		if (rc == PXD_TLS_WANT_READ) { /* the length was changed: wait for the end */
			shutdown(e.mid[1], SHUT_WR);
			rc = pxd_tls_read(e.s, buf, sizeof buf);
		}
		CHECK_INT(rc, PXD_TLS_ERROR);
		ends_close(&e);
	}
}

TEST(connection_freed_at_any_time)
{
	struct ends e;

	for (int i = 0; i < 6; i++) {
		ends_open(&e, ctx_of(key_a, "melt", 0), ctx_of(key_a, "melt", 1), 1, 0, false);
		for (int k = 0; k < i; k++)
			pxd_tls_shake(k % 2 ? e.s : e.c);
		ends_close(&e);
	}
	pxd_tls_free(NULL);
	pxd_tls_ctx_free(NULL);
}
