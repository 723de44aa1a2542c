/* history_test.c: both ends of a stream remember the same segments, within their share; references are what was acknowledged. */
#include <stdlib.h>

#include "err.h"
#include "history.h"
#include "test.h"

#define SHARE (64u << 10)

static struct pxd_segs pool;

static struct px_frame frame_of(unsigned flow, uint32_t msg, uint64_t seq)
{
	return (struct px_frame){ .type = PX_F_SEG,
		.flags = PX_FF_KEEP,
		.elem = 8,
		.seq = seq,
		.total = 3000 + 2000 * flow,
		.ctx = flow / 4,
		.src = flow % 2,
		.dst = 5,
		.tag = (int)flow,
		.msg = msg,
		.seg = PX_SEG_MIN };
}

TEST(messages_of_a_step_of_collectives_are_of_one_flow)
{
	struct pxd_history h;
	struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
	struct px_frame f = frame_of(1, 1, 1);
	int back;

	REQUIRE(pxd_history_init(&h, SHARE) == 0);
	f.flags |= PX_FF_COLL;
	for (int op = 1; op <= 3; op++) {
		struct pxd_seg *seg = pxd_seg_take(&pool, (uint32_t)f.total);

		f.msg = (uint32_t)op;
		f.seq = (uint64_t)op;
		f.tag = op * 2048 + 7;
		CHECK(pxd_history_keep(&h, &f, seg, &k) == 0 && k);
		pxd_seg_put(seg);
	}
	f.tag = 9 * 2048 + 7;
	CHECK_INT(pxd_history_refs(&h, &f, 3, ref, &back), 3);
	CHECK(pxd_history_find(&h, &f, 2, 3) != NULL);
	f.tag++;
	CHECK_INT(pxd_history_refs(&h, &f, 3, ref, &back), 0);
	f.tag--;
	f.flags = (uint16_t)(f.flags & ~PX_FF_COLL); /* of a message of the program's the whole tag counts */
	CHECK_INT(pxd_history_refs(&h, &f, 3, ref, &back), 0);
	pxd_history_fini(&h);
}

TEST(both_ends_remember_the_same_within_their_share)
{
	struct pxd_history writer, reader;
	uint32_t msg = 0;

	REQUIRE(pxd_history_init(&writer, SHARE) == 0 && pxd_history_init(&reader, SHARE) == 0);
	for (uint64_t seq = 1; seq < 3000; seq++) {
		struct px_frame f = frame_of((unsigned)(test_random() % 12), ++msg, seq);
		struct pxd_seg *seg = pxd_seg_take(&pool, (uint32_t)f.total);
		struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
		uint64_t acked = seq - 1 - test_random() % (seq < 9 ? seq : 9);
		int back, n = pxd_history_refs(&writer, &f, acked, ref, &back);

		for (int i = 0; i < n; i++) {
			CHECK(ref[i]->seq <= acked);
			k = pxd_history_find(&reader, &f, ref[i]->msg, acked);
			CHECK(k && k->seq == ref[i]->seq);
		}
		CHECK_INT(pxd_history_keep(&writer, &f, seg, &k), 0);
		CHECK_INT(pxd_history_keep(&reader, &f, NULL, &k), 0);
		pxd_seg_put(seg);
		CHECK(writer.bytes <= SHARE && writer.bytes == reader.bytes);
		CHECK_INT(pool.used_bytes, writer.bytes);
	}
	CHECK(writer.bytes > SHARE - (32u << 10));
	pxd_history_fini(&writer);
	pxd_history_fini(&reader);
	CHECK_INT(pool.used_bytes, 0);
	pxd_segs_fini(&pool);
}

TEST(who_came_longest_ago_is_forgotten_first)
{
	struct pxd_history h;
	struct pxd_kept *k;
	struct px_frame f;

	REQUIRE(pxd_history_init(&h, 4 * 4096) == 0);
	for (uint32_t msg = 1; msg <= 6; msg++) {
		f = frame_of(0, msg, msg);
		CHECK_INT(pxd_history_keep(&h, &f, NULL, &k), 0);
	}
	CHECK(!pxd_history_find(&h, &f, 2, 6) && pxd_history_find(&h, &f, 3, 6));
	CHECK(!pxd_history_find(&h, &f, 5, 4)); /* not acknowledged */
	f.tag++;
	CHECK(!pxd_history_find(&h, &f, 5, 6)); /* of another flow */
	f = frame_of(7, 7, 7);                  /* 17000 bytes: longer than the share */
	CHECK_INT(pxd_history_keep(&h, &f, NULL, &k), 0);
	CHECK(!k && h.bytes == 4 * 4096);
	pxd_history_fini(&h);
}

TEST(references_are_the_newest_that_are_acknowledged)
{
	struct pxd_history h;
	struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
	struct px_frame f;
	int back;

	REQUIRE(pxd_history_init(&h, SHARE) == 0);
	for (uint32_t msg = 1; msg <= 9; msg++) {
		f = frame_of(0, msg, msg);
		CHECK_INT(pxd_history_keep(&h, &f, NULL, &k), 0);
	}
	f = frame_of(0, 10, 10);
	CHECK_INT(pxd_history_refs(&h, &f, 9, ref, &back), 6);
	CHECK(ref[0]->msg == 9 && ref[5]->msg == 4 && back == 1);
	CHECK_INT(pxd_history_refs(&h, &f, 7, ref, &back), 6);
	CHECK(ref[0]->msg == 7 && ref[5]->msg == 2 && back == 3);
	CHECK_INT(pxd_history_refs(&h, &f, 2, ref, &back), 2);
	CHECK(ref[0]->msg == 2 && ref[1]->msg == 1 && back == 8);
	CHECK_INT(pxd_history_refs(&h, &f, 0, ref, &back), 0);
	pxd_history_fini(&h);
}

TEST(a_held_segment_outlives_its_place)
{
	struct pxd_history h;
	struct pxd_seg *seg = pxd_seg_take(&pool, 4000);
	struct px_frame f = frame_of(0, 1, 1);
	struct pxd_kept *k;

	REQUIRE(seg && pxd_history_init(&h, SHARE) == 0);
	CHECK_INT(pxd_history_keep(&h, &f, seg, &k), 0);
	pxd_kept_hold(k);
	pxd_seg_put(seg);
	pxd_history_fini(&h);
	CHECK(!k->flow && k->seg->len == 4000);
	pxd_kept_put(k);
	CHECK_INT(pool.used_bytes, 0);
	pxd_segs_fini(&pool);
}

TEST(shares_are_the_same_at_both_ends)
{
	static const char text[] =
		"{sites: [{name: a, host: h, port: 1, ranks: 1, buffer: 32MiB}, {name: b, host: h, port: 2, "
		"ranks: 1, "
		"gateways: [{host: x, port: 3}, {host: y, port: 3}]}, {name: c, host: h, port: 4, ranks: 1}],"
		" links: [{between: [a, b], streams: 2}, {between: [b, c], compress: none},"
		" {between: [a, c], predict: none}]}";
	char why[PXD_WHY];
	struct pxd_hosts *h = NULL;

	REQUIRE(pxd_hosts_parse(text, strlen(text), "F", &h, why, sizeof why) == 0);
	CHECK_INT(pxd_history_share(h, 0, 1, 0), (32 << 20) / 4 / 2 / 2);
	CHECK_INT(pxd_history_share(h, 1, 0, 1), (32 << 20) / 4 / 3 / 2);
	CHECK_INT(pxd_history_share(h, 0, 1, 2), 0); /* there are two streams */
	CHECK_INT(pxd_history_share(h, 1, 2, 0), 0);
	CHECK_INT(pxd_history_share(h, 0, 2, 0), 0);
	CHECK_INT(pxd_history_memory(h, 0), 8 << 20);
	CHECK_INT(pxd_history_memory(h, 2), 0);
	pxd_hosts_free(h);
}
