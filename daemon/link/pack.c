/* pack.c: see pack.h. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "wait.h"

struct job {
	uv_work_t work;
	struct pxd_path *l;
	struct px_frame f;
	struct pxd_seg *in, *out;
	struct pxd_choice ch;
	size_t n; /* encoded length, 0 = did not shrink */
	uint64_t ns;
};

/* One codec context per thread. The worker threads live as long as the process. */
static struct pxd_codec *mine(void)
{
	static _Thread_local struct pxd_codec *c;

	if (!c)
		c = pxd_codec_new();
	return c;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_work(uv_work_t *w)
{
	struct job *j = w->data;
	uint64_t t = thread_ns();
	struct pxd_codec *c = mine();

	if (c)
		j->n = pxd_codec_pack(c, j->ch.codec, j->ch.level, j->f.elem, j->in->data, j->in->len,
			j->out->data, j->in->len - 1);
	j->ns = thread_ns() - t;
}

static void on_packed(uv_work_t *w, int status)
{
	struct job *j = w->data;
	struct pxd_path *l = j->l;
	struct pxd_seg *seg = j->in;
	int rc = PX_OK;

	l->d->events++;
	l->packing--;
	l->packing_bytes -= j->in->cap;
	if (status == 0)
		pxd_auto_learn(l->choose, j->ch, j->f.elem, j->in->len, j->n, j->ns);
	if (status == 0 && j->n > 0) {
		unsigned slot = pxd_codec_slot(j->ch.codec);

		l->count.codec[slot].segments++;
		l->count.codec[slot].in += j->in->len;
		l->count.codec[slot].out += j->n;
		l->count.codec[slot].ns += j->ns;
		j->f.codec = (uint8_t)j->ch.codec;
		j->f.body = j->n;
		j->out->len = (uint32_t)j->n;
		seg = j->out;
		pxd_seg_put(j->in);
	} else {
		pxd_seg_put(j->out);
		l->count.codec[0].segments++;
		l->count.codec[0].in += j->in->len;
		l->count.codec[0].out += j->in->len;
		l->count.codec[0].ns += j->ns;
	}
	if (l->closed)
		pxd_seg_put(seg);
	else
		rc = pxd_path_put_seg(l, &j->f, seg, false);
	if (rc < 0)
		pxd_fail(l->d, PXD_EXIT_INTERNAL, "out of memory for a segment");
	else
		pxd_path_flush(l);
	free(j);
}

static size_t queued(const struct pxd_path *l)
{
	size_t n = l->packing_bytes;

	for (int i = 0; i < l->nstreams; i++)
		n += l->stream[i]->q.unsent;
	return n;
}

int pxd_pack(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead)
{
	struct pxd_choice ch = { 0, 0 };
	struct job *j;

	if (l->choose && mine())
		ch = pxd_auto_choose(l->choose, mine(), seg->data, seg->len, f->elem, l->rate, queued(l),
			l->packing < (unsigned)px_wait_cores());
	if (ch.codec == PXD_CODEC_NONE) {
		l->count.codec[0].segments++;
		l->count.codec[0].in += seg->len;
		l->count.codec[0].out += seg->len;
		return pxd_path_put_seg(l, f, seg, ahead);
	}
	j = calloc(1, sizeof *j);
	if (j)
		j->out = pxd_seg_take(seg->pool, seg->len);
	if (!j || !j->out) {
		free(j);
		return pxd_path_put_seg(l, f, seg, ahead);
	}
	j->work.data = j;
	j->l = l;
	j->f = *f;
	j->in = seg;
	j->ch = ch;
	if (uv_queue_work(&l->d->loop, &j->work, on_work, on_packed) < 0) {
		pxd_seg_put(j->out);
		free(j);
		return pxd_path_put_seg(l, f, seg, ahead);
	}
	l->packing++;
	l->packing_bytes += seg->cap;
	return PX_OK;
}

static void on_unwork(uv_work_t *w)
{
	struct pxd_unpack *u = w->data;
	uint64_t t = thread_ns();

	u->rc = mine() ? pxd_codec_unpack(mine(), u->f.codec, u->f.elem, u->in->data, u->in->len,
				 u->out->data, u->out->len)
		       : PX_ENOMEM;
	u->ns = thread_ns() - t;
}

static void on_unpacked(uv_work_t *w, int status)
{
	struct pxd_unpack *u = w->data;

	u->d->events++;
	if (status < 0)
		u->rc = PX_ECLOSED;
	pxd_seg_put(u->in);
	u->in = NULL;
	u->done(u);
	free(u);
}

int pxd_unpack(struct pxd_unpack *u)
{
	u->work.data = u;
	return uv_queue_work(&u->d->loop, &u->work, on_unwork, on_unpacked) < 0 ? PX_ENOMEM : PX_OK;
}
