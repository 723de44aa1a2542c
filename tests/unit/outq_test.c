/* outq_test.c: the queue of a stream against a plain copy of all its frames: whatever is written, acknowledged and rewound, the next
 * connection carries exactly the frames from the wanted one on. */
#include <stdlib.h>
#include <string.h>

#include "endian.h"
#include "err.h"
#include "frame.h"
#include "outq.h"
#include "test.h"

#define FRAMES 400

static uint8_t *wire[FRAMES + 1]; /* header and body of frame i */
static size_t length[FRAMES + 1];

static void frame_put_one(struct pxd_outq *q, struct pxd_segs *pool, uint64_t seq)
{
	bool seg = test_random() % 3 == 0;
	size_t n = seg ? 1 + test_random() % 300000 : test_random() % (PX_INLINE_MAX + 1);
	struct px_frame f = {
		.version = 1, .type = seg ? PX_F_SEG : PX_F_MSG, .seq = seq, .body = n, .total = n
	};
	uint8_t *w = malloc(PX_FRAME_SIZE + n);

	px_frame_put(&f, w);
	for (size_t i = 0; i < n; i++)
		w[PX_FRAME_SIZE + i] = (uint8_t)(test_random() >> 8);
	wire[seq] = w;
	length[seq] = PX_FRAME_SIZE + n;
	if (seg) {
		struct pxd_seg *s = pxd_seg_take(pool, (uint32_t)n);

		memcpy(s->data, w + PX_FRAME_SIZE, n);
		REQUIRE_INT(pxd_outq_put_seg(q, seq, w, s), 0);
	} else {
		REQUIRE_INT(pxd_outq_put(q, seq, w, w + PX_FRAME_SIZE, n), 0);
	}
}

/* Where the connection is: byte `at` of frame `seq`. */
struct place {
	uint64_t seq;
	size_t at;
};

static void bytes_check(struct place *p, const uint8_t *data, size_t n)
{
	while (n > 0) {
		size_t k = length[p->seq] - p->at < n ? length[p->seq] - p->at : n;

		REQUIRE(memcmp(wire[p->seq] + p->at, data, k) == 0);
		p->at += k;
		data += k;
		n -= k;
		if (p->at == length[p->seq]) {
			p->seq++;
			p->at = 0;
		}
	}
}

static void write_some(struct pxd_outq *q, struct place *p)
{
	struct iovec v[8];
	int n = pxd_outq_gather(q, v, 1 + (int)(test_random() % 8));
	size_t sum = 0, take;

	for (int i = 0; i < n; i++)
		sum += v[i].iov_len;
	take = sum ? 1 + test_random() % sum : 0;
	for (size_t left = take, i = 0; left > 0; i++) {
		size_t k = v[i].iov_len < left ? v[i].iov_len : left;

		bytes_check(p, v[i].iov_base, k);
		left -= k;
	}
	pxd_outq_wrote(q, take);
}

TEST(any_connection_goes_on_where_it_shall)
{
	for (int round = 0; round < 12; round++) {
		struct pxd_segs pool = { .limit = 1 << 20 };
		struct pxd_outq q;
		struct place p = { 1, 0 };
		uint64_t put = 0, acked = 0;

		pxd_outq_init(&q);
		while (acked < FRAMES) {
			switch (test_random() % 6) {
			case 0:
			case 1:
				if (put < FRAMES)
					frame_put_one(&q, &pool, ++put);
				break;
			case 2:
			case 3:
				write_some(&q, &p);
				break;
			case 4: /* only what has been written completely can be acknowledged */
				if (p.seq - 1 > acked)
					acked += 1 + test_random() % (p.seq - 1 - acked);
				pxd_outq_acked(&q, acked);
				break;
			default:
				if (test_random() % 4 == 0) {
					uint64_t next = acked + 1 +
							(p.seq > acked ? test_random() % (p.seq - acked) : 0);

					if (next > put + 1)
						next = put + 1;
					acked = next - 1;
					pxd_outq_acked(&q, acked);
					REQUIRE_INT(pxd_outq_rewind(&q, next, put), 0);
					p = (struct place){ next, 0 };
				}
			}
			REQUIRE_INT(pxd_outq_sent(&q, put), p.seq - 1);
		}
		CHECK_UINT(q.unsent, 0);
		CHECK_INT(pxd_outq_rewind(&q, put + 2, put), PX_EPROTO);
		pxd_outq_fini(&q);
		CHECK_UINT(pool.used_bytes, 0);
		pxd_segs_fini(&pool);
		for (uint64_t i = 1; i <= put; i++)
			free(wire[i]);
	}
}

TEST(acknowledged_frames_cannot_be_had_again)
{
	struct pxd_segs pool = { .limit = 1 << 20 };
	struct pxd_outq q;
	struct place p = { 1, 0 };

	pxd_outq_init(&q);
	for (uint64_t i = 1; i <= 40; i++)
		frame_put_one(&q, &pool, i);
	while (q.unsent > 0)
		write_some(&q, &p);
	pxd_outq_acked(&q, 40);
	CHECK_INT(pxd_outq_rewind(&q, 3, 40), PX_EPROTO);
	CHECK_INT(pxd_outq_rewind(&q, 41, 40), 0);
	CHECK_UINT(q.unsent, 0);
	pxd_outq_fini(&q);
	CHECK_UINT(pool.used_bytes, 0);
	pxd_segs_fini(&pool);
	for (uint64_t i = 1; i <= 40; i++)
		free(wire[i]);
}
