/* study_test.c: lessons made beside a real loop: those ahead are the ones that are needed, whoever waits gets his, and what nobody needs goes. */
#include <math.h>
#include <stdlib.h>

#include "err.h"
#include "study.h"
#include "test.h"

enum { COUNT = 700, LEN = COUNT * 8, SHARE = 64 << 20 };

static struct pxd_segs pool;
static uv_loop_t loop;
static uint64_t events, ns;

struct student {
	struct pxd_student s;
	int called;
};

static void on_lesson(struct pxd_student *s)
{
	px_list_entry(s, struct student, s)->called++;
}

static struct px_frame frame_of(unsigned flow, uint32_t msg)
{
	return (struct px_frame){ .type = PX_F_SEG,
		.flags = PX_FF_KEEP,
		.elem = 8,
		.seq = msg,
		.total = LEN,
		.tag = (int)flow,
		.msg = msg,
		.seg = 1 << 16 };
}

/* Message msg of a flow, remembered. */
static struct pxd_kept *keep(struct pxd_history *h, unsigned flow, uint32_t msg)
{
	struct px_frame f = frame_of(flow, msg);
	struct pxd_seg *seg = pxd_seg_take(&pool, LEN);
	struct pxd_kept *k = NULL;

	for (int i = 0; i < COUNT; i++)
		((double *)(void *)seg->data)[i] =
			300 + 40 * sin(0.01 * i + 0.1 * msg) + exp(-(double)msg / 20) * cos(0.3 * i + flow);
	CHECK_INT(pxd_history_keep(h, &f, seg, &k), 0);
	pxd_seg_put(seg);
	return k;
}

/* Messages 1 to n of a flow, remembered; the last one. */
static struct pxd_kept *keep_some(struct pxd_history *h, unsigned flow, uint32_t n)
{
	struct pxd_kept *k = NULL;

	for (uint32_t msg = 1; msg <= n; msg++)
		k = keep(h, flow, msg);
	return k;
}

/* What learns from k and those before it, `each` messages apart. */
static struct pxd_predictor predictor(
	const struct pxd_kept *k, int nrefs, int each, struct pxd_kept *ref[PXD_PREDICT_REFS])
{
	struct pxd_predictor p = { .how = PXD_PREDICT_LEARNT | PXD_PREDICT_FLOAT | 1,
		.stride = 1,
		.keep = 60,
		.row = 20,
		.nrefs = nrefs };

	for (int i = 0; i < nrefs; i++) {
		ref[i] = pxd_kept_before(k, i * each);
		p.ref[i] = ref[i] ? ref[i]->msg : 0;
	}
	return p;
}

/* Is t what p learns from ref? By what it leaves of another message. */
static bool right(const struct pxd_predictor *p, struct pxd_kept *const *ref, const struct pxd_lesson *t)
{
	static uint8_t with[LEN], without[LEN];
	const uint8_t *bytes[PXD_PREDICT_REFS] = { NULL };

	for (int i = 0; i < p->nrefs; i++)
		bytes[i] = ref[i]->seg->data;
	return t && pxd_learn_residual(p, 8, t, bytes[1], bytes, LEN, with) == 0 &&
	       pxd_learn_residual(p, 8, NULL, bytes[1], bytes, LEN, without) == 0 &&
	       memcmp(with, without, LEN) == 0;
}

static void begin(struct pxd_history *h, struct pxd_studies *a)
{
	memset(a, 0, sizeof *a);
	uv_loop_init(&loop);
	pxd_studies_init(a, &loop, &events, &ns);
	CHECK_INT(pxd_history_init(h, SHARE), 0);
}

static void end(struct pxd_history *h, struct pxd_studies *a)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	pxd_studies_close(a);
	pxd_studies_fini(a);
	pxd_history_fini(h);
	CHECK_UINT(a->bytes, 0);
	CHECK_INT(uv_loop_close(&loop), 0);
	CHECK_UINT(pool.used_bytes, 0);
}

TEST(a_lesson_ahead_is_that_of_the_next_segment)
{
	for (int each = 1; each <= 2; each++)
		for (int nrefs = 2; nrefs <= PXD_PREDICT_LESSON; nrefs++) {
			struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
			struct student s = { .s.go = on_lesson };
			struct pxd_studies a;
			struct pxd_history h;
			struct pxd_predictor p;

			begin(&h, &a);
			k = keep_some(&h, 1, 9);
			p = predictor(pxd_kept_before(k, each), nrefs, each, ref);
			pxd_study_ahead(&a, &p, 8, k, ref);
			pxd_study_ahead(&a, &p, 8, k, ref); /* said twice */
			uv_run(&loop, UV_RUN_DEFAULT);
			CHECK(a.bytes > 0 && events > 0 && ns > 0);
			p = predictor(k, PXD_PREDICT_LESSON, each, ref);
			CHECK_INT(pxd_study(&a, &p, 8, ref, &s.s), 0);
			CHECK_INT(s.called, 1); /* at once */
			CHECK(right(&p, ref, s.s.lesson));
			pxd_study_left(&s.s);
			CHECK_UINT(a.bytes, 0); /* used, so it goes */
			end(&h, &a);
		}
}

TEST(other_references_have_a_lesson_of_their_own)
{
	struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
	struct student s[4] = { { .s.go = on_lesson }, { .s.go = on_lesson }, { .s.go = on_lesson },
		{ .s.go = on_lesson } };
	struct pxd_studies a;
	struct pxd_history h;
	struct pxd_predictor p, q;

	begin(&h, &a);
	k = keep_some(&h, 1, 9);
	p = predictor(pxd_kept_before(k, 1), 4, 1, ref);
	pxd_study_ahead(&a, &p, 8, k, ref);
	for (int i = 0; i < 4; i++) { /* before it is made, and each twice */
		q = predictor(k, i % 2 ? 4 : 3, 1 + i % 2, ref);
		CHECK_INT(pxd_study(&a, &q, 8, ref, &s[i].s), 0);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(s[i].called, 1);
		q = predictor(k, i % 2 ? 4 : 3, 1 + i % 2, ref);
		CHECK(right(&q, ref, s[i].s.lesson));
		pxd_study_left(&s[i].s);
	}
	end(&h, &a);
}

TEST(whoever_waits_gets_it_though_its_references_are_forgotten)
{
	struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
	struct student s[2] = { { .s.go = on_lesson }, { .s.go = on_lesson } };
	struct pxd_studies a;
	struct pxd_history h;
	struct pxd_predictor p;

	begin(&h, &a);
	k = keep_some(&h, 1, 9);
	p = predictor(pxd_kept_before(k, 1), 4, 1, ref);
	pxd_study_ahead(&a, &p, 8, k, ref);
	p = predictor(k, 4, 1, ref);
	for (int i = 0; i < 2; i++)
		CHECK_INT(pxd_study(&a, &p, 8, ref, &s[i].s), 0);
	pxd_study_ahead(&a, &p, 8, keep(&h, 1, 10), ref); /* nobody will need it */
	pxd_history_fini(&h);
	pxd_studies_close(&a);
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(s[i].called, 1);
		CHECK(s[i].s.lesson && s[i].s.lesson == s[0].s.lesson);
		pxd_study_left(&s[i].s);
	}
	CHECK_INT(pxd_history_init(&h, SHARE), 0);
	end(&h, &a);
}

/* Of many flows at once, before a worker gets to any. */
TEST(lessons_ahead_take_no_more_than_their_share)
{
	struct pxd_studies a;
	struct pxd_history h;

	begin(&h, &a);
	a.trust = 100000;
	for (unsigned flow = 0; flow < 3000; flow++) {
		struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
		struct pxd_predictor p;

		k = keep_some(&h, flow, 4);
		p = predictor(pxd_kept_before(k, 1), 3, 1, ref);
		pxd_study_ahead(&a, &p, 8, k, ref);
		CHECK(a.bytes <= (8 << 20) + 3 * LEN);
	}
	CHECK(a.bytes > 7 << 20);
	end(&h, &a);
}

/* Of flows whose next message never comes. */
TEST(lessons_that_nobody_needs_are_given_up)
{
	struct pxd_studies a;
	struct pxd_history h;
	int made = 0;

	begin(&h, &a);
	for (unsigned flow = 0; flow < 3000; flow++) {
		struct pxd_kept *k, *ref[PXD_PREDICT_REFS];
		struct pxd_predictor p;
		struct student s = { .s.go = on_lesson };
		uint64_t before = events;

		k = keep_some(&h, flow, 4);
		p = predictor(pxd_kept_before(k, 1), 3, 1, ref);
		CHECK_INT(pxd_study(&a, &p, 8, ref, &s.s), 0);
		uv_run(&loop, UV_RUN_DEFAULT);
		CHECK_INT(s.called, 1);
		pxd_study_left(&s.s);
		pxd_study_ahead(&a, &p, 8, k, ref);
		uv_run(&loop, UV_RUN_DEFAULT);
		made += events - before > 1;
		CHECK(a.bytes <= 8 << 20);
	}
	CHECK(made >= 100 && made < 300); /* now and then one, in case that things have changed */
	end(&h, &a);
}
