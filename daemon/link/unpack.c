/* unpack.c: see unpack.h. */
#include "unpack.h"

#include <stdlib.h>

#include "err.h"
#include "pack.h"
#include "seg_code.h"
#include "wait.h"

static void on_unwork(uv_work_t *w)
{
	struct pxd_unpack *u = w->data;
	const uint8_t *ref[PXD_PREDICT_REFS];
	uint64_t t = px_cpu_ns();
	struct pxd_codec *c = pxd_pack_codec();

	pxd_kept_bytes(u->ref, ref);
	u->rc = c ? pxd_seg_decode(c, u->f.codec, u->f.elem, u->student.lesson, ref, u->in->data, u->in->len,
			    u->out->data, u->out->len)
		  : PX_ENOMEM;
	u->ns = px_cpu_ns() - t;
}

static bool unlearns(const struct pxd_unpack *u)
{
	return u->f.codec & PXD_CODEC_PREDICT && pxd_predict_learnt(&u->pred) &&
	       pxd_predict_word(u->f.elem) != 0;
}

/* Nothing more is done for u: who waits for what it has brought may go on. */
static void finish(struct pxd_unpack *u)
{
	struct pxd_kept *k = u->kept;
	struct px_list *l;

	pxd_seg_put(u->in);
	u->in = NULL;
	if (k && u->rc == PX_OK)
		k->seg = pxd_seg_hold(u->out);
	else if (k)
		k->bad = true;
	if (k && u->rc == PX_OK && unlearns(u))
		pxd_study_ahead(u->studies, &u->pred, pxd_predict_word(u->f.elem), k, u->ref);
	pxd_study_left(&u->student);
	for (int i = 0; i < PXD_PREDICT_REFS; i++)
		pxd_kept_put(u->ref[i]);
	u->done(u);
	free(u);
	while (k && (l = px_list_pop(&k->waiting)))
		pxd_unpack(px_list_entry(l, struct pxd_unpack, l));
	pxd_kept_put(k);
}

static void on_unpacked(uv_work_t *w, int status)
{
	struct pxd_unpack *u = w->data;

	u->d->events++;
	if (status < 0)
		u->rc = PX_ECLOSED;
	finish(u);
}

static void decode(struct pxd_unpack *u)
{
	u->work.data = u;
	if (uv_queue_work(&u->d->loop, &u->work, on_unwork, on_unpacked) == 0)
		return; /* it is the worker's, with u->rc */
	u->rc = PX_ENOMEM;
	finish(u);
}

static void on_unlesson(struct pxd_student *s)
{
	decode(px_list_entry(s, struct pxd_unpack, student));
}

void pxd_unpack(struct pxd_unpack *u)
{
	for (int i = 0; i < PXD_PREDICT_REFS; i++) {
		struct pxd_kept *k = u->ref[i];

		if (k && !k->seg && !k->bad) {
			px_list_push(&k->waiting, &u->l);
			return;
		}
		if (k && k->bad)
			u->rc = PX_EPROTO;
	}
	u->student.go = on_unlesson;
	if (u->rc < 0)
		finish(u);
	else if (!unlearns(u) ||
		 pxd_study(u->studies, &u->pred, pxd_predict_word(u->f.elem), u->ref, &u->student) < 0)
		decode(u);
}
