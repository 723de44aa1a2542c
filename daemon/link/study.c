/* study.c: see study.h.
 *
 * Design. A study holds its references while it is to be made, and the newest one, by which it is found again, as long as it lives. What
 * was made ahead lives until it has been used, or until there is more than MEMORY of it, when the oldest goes. How much is made ahead
 * follows what has come of it: each lesson costs trust, each one that is used gives some back, and a little comes by itself.
 */
#include "study.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "wait.h"

#define MEMORY     (8u << 20) /* bytes, of a path */
#define TRUST      16
#define TRUST_MOST 256
#define USED       2
#define FAR        16 /* segments between references; the farthest come every fourth message (forecast.h) */
#define AGAIN      16 /* a lesson ahead in so many, if there is no trust */

enum state { QUEUED, BUSY, DONE };

struct pxd_study {
	uv_work_t work;
	struct pxd_studies *of;
	struct px_list l;        /* in of->wanted, of->ahead or of->ready, or in none */
	struct px_list students; /* who waits */
	enum state state;
	int users; /* students, also of those that have it */
	bool ahead;
	struct pxd_predictor p;
	unsigned word;
	struct pxd_kept *ref[PXD_PREDICT_LESSON]; /* held; but for the first one until it is made */
	struct pxd_lesson *lesson;
	int rc;
	uint64_t ns; /* of processor time */
};

void pxd_studies_init(struct pxd_studies *a, uv_loop_t *loop, uint64_t *events, uint64_t *ns)
{
	a->loop = loop;
	a->events = events;
	a->ns = ns;
	a->trust = TRUST;
	px_list_init(&a->wanted);
	px_list_init(&a->ahead);
	px_list_init(&a->ready);
}

static size_t memory_of(const struct pxd_study *t)
{
	size_t n = t->ref[0]->seg->len;

	return pxd_lesson_size(t->word, n) + n;
}

static void refs_put(struct pxd_study *t)
{
	for (int i = 1; i < PXD_PREDICT_LESSON; i++) {
		pxd_kept_put(t->ref[i]);
		t->ref[i] = NULL;
	}
}

/* Nobody needs t. */
static void study_free(struct pxd_study *t)
{
	if (t->ahead)
		t->of->bytes -= memory_of(t);
	px_list_del(&t->l);
	if (t->ref[0]->study == t)
		t->ref[0]->study = NULL;
	refs_put(t);
	pxd_kept_put(t->ref[0]);
	pxd_lesson_free(t->lesson);
	free(t);
}

static struct pxd_study *study_make(struct pxd_studies *a, const struct pxd_predictor *p, unsigned word,
	struct pxd_kept *const *ref, bool ahead)
{
	struct pxd_study *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	px_list_init(&t->l);
	px_list_init(&t->students);
	t->of = a;
	t->p = *p;
	t->word = word;
	for (int i = 0; i < p->nrefs; i++)
		t->ref[i] = pxd_kept_hold(ref[i]);
	if (!ref[0]->study)
		ref[0]->study = t;
	t->ahead = ahead;
	if (ahead)
		a->bytes += memory_of(t);
	return t;
}

/* Is t the lesson of p? */
static bool fits(const struct pxd_study *t, const struct pxd_predictor *p, unsigned word)
{
	return t->word == word && t->p.how == p->how && t->p.stride == p->stride && t->p.keep == p->keep &&
	       t->p.row == p->row && t->p.nrefs == p->nrefs && memcmp(t->p.ref, p->ref, sizeof p->ref) == 0;
}

static void on_work(uv_work_t *w)
{
	struct pxd_study *t = w->data;
	const uint8_t *ref[PXD_PREDICT_LESSON] = { NULL };
	uint64_t began = px_cpu_ns();

	for (int i = 0; i < t->p.nrefs; i++)
		ref[i] = t->ref[i]->seg->data;
	t->rc = pxd_lesson_make(&t->p, t->word, ref, t->ref[0]->seg->len, &t->lesson);
	t->ns = px_cpu_ns() - began;
}

/* What is ready and too much goes, the oldest first. */
static void forget(struct pxd_studies *a)
{
	while (a->bytes > MEMORY && !px_list_empty(&a->ready))
		study_free(px_list_entry(a->ready.next, struct pxd_study, l));
}

static void next(struct pxd_studies *a);

/* t is made, or (t->rc < 0) cannot be. */
static void done(struct pxd_study *t)
{
	struct pxd_studies *a = t->of;
	struct px_list *l;

	t->state = DONE;
	refs_put(t);
	if (px_list_empty(&t->students)) {
		px_list_push(&a->ready, &t->l);
		if (t->rc < 0)
			study_free(t);
		forget(a);
		return;
	}
	t->users++; /* so that it outlives them here */
	while ((l = px_list_pop(&t->students))) {
		struct pxd_student *s = px_list_entry(l, struct pxd_student, l);

		s->lesson = t->lesson;
		s->go(s);
	}
	if (--t->users == 0)
		study_free(t);
}

static void on_worked(uv_work_t *w, int status)
{
	struct pxd_study *t = w->data;
	struct pxd_studies *a = t->of;

	++*a->events;
	*a->ns += t->ns;
	a->busy = NULL;
	if (status < 0)
		t->rc = PX_ECLOSED;
	next(a);
	done(t);
}

/* Whoever's turn it is. */
static void next(struct pxd_studies *a)
{
	struct px_list *l;

	while (!a->busy && (l = px_list_pop(!px_list_empty(&a->wanted) ? &a->wanted : &a->ahead))) {
		struct pxd_study *t = px_list_entry(l, struct pxd_study, l);

		t->work.data = t;
		t->state = BUSY;
		if (uv_queue_work(a->loop, &t->work, on_work, on_worked) == 0) {
			a->busy = t; /* all but the worker leave it alone */
		} else {
			t->rc = PX_ENOMEM;
			done(t);
		}
	}
}

int pxd_study(struct pxd_studies *a, const struct pxd_predictor *p, unsigned word,
	struct pxd_kept *const *ref, struct pxd_student *s)
{
	struct pxd_study *t = ref[0]->study;

	if (!t || !fits(t, p, word)) {
		t = study_make(a, p, word, ref, false);
		if (!t)
			return PX_ENOMEM;
	} else if (t->ahead && t->users == 0) {
		a->trust = a->trust + USED < TRUST_MOST ? a->trust + USED : TRUST_MOST;
	}
	a->lessons++;
	t->users++;
	s->study = t;
	s->lesson = NULL;
	px_list_init(&s->l);
	if (t->state == DONE) {
		px_list_del(&t->l);
		s->lesson = t->lesson;
		s->go(s);
		return PX_OK;
	}
	px_list_push(&t->students, &s->l);
	if (t->state == QUEUED) {
		px_list_del(&t->l);
		px_list_push(&a->wanted, &t->l);
		next(a);
	}
	return PX_OK;
}

void pxd_study_left(struct pxd_student *s)
{
	struct pxd_study *t = s->study;

	s->study = NULL;
	if (t && --t->users == 0)
		study_free(t);
}

/* How many segments of the flow lie between what p refers to first and next, and one. 0: too many, or they have been forgotten. */
static int distance(struct pxd_kept *const *ref)
{
	for (int n = 1; n <= FAR; n++)
		if (pxd_kept_before(ref[0], n) == ref[1])
			return n;
	return 0;
}

void pxd_study_ahead(struct pxd_studies *a, const struct pxd_predictor *p, unsigned word, struct pxd_kept *k,
	struct pxd_kept *const *ref)
{
	struct pxd_kept *refs[PXD_PREDICT_LESSON];
	struct pxd_predictor q = *p;
	struct pxd_study *t;
	int each;

	if (a->closed || k->study || a->bytes > MEMORY || (a->trust == 0 && a->lessons % AGAIN != 0))
		return;
	each = distance(ref);
	memset(q.ref, 0, sizeof q.ref);
	for (q.nrefs = 0; each > 0 && q.nrefs < PXD_PREDICT_LESSON; q.nrefs++) {
		refs[q.nrefs] = pxd_kept_before(k, q.nrefs * each);
		if (!refs[q.nrefs] || !refs[q.nrefs]->seg)
			break;
		q.ref[q.nrefs] = refs[q.nrefs]->msg;
	}
	t = q.nrefs >= 2 ? study_make(a, &q, word, refs, true) : NULL;
	if (!t)
		return;
	a->trust -= a->trust > 0;
	px_list_push(&a->ahead, &t->l);
	next(a);
}

void pxd_studies_close(struct pxd_studies *a)
{
	struct px_list *l;

	a->closed = true;
	while (a->ahead.next && (l = px_list_pop(&a->ahead)))
		study_free(px_list_entry(l, struct pxd_study, l));
}

void pxd_studies_fini(struct pxd_studies *a)
{
	struct px_list *l;

	pxd_studies_close(a);
	while (a->ready.next && (l = px_list_pop(&a->ready)))
		study_free(px_list_entry(l, struct pxd_study, l));
}
