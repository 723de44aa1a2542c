/* seg_code.c: see seg_code.h. */
#include "seg_code.h"

#include "crc.h"
#include "err.h"
#include "learn.h"
#include "lossy.h"
#include "weigh.h"

size_t pxd_seg_encode(struct pxd_codec *c, int codec, int level, unsigned elem, struct pxd_predictor *p,
	const struct pxd_lesson *t, const uint8_t *const *ref, const uint8_t *in, size_t n, uint8_t *scratch,
	uint8_t *out, size_t cap)
{
	unsigned word = pxd_predict_word(elem);
	struct pxd_lesson *own;
	struct pxd_guide g;
	size_t m, head;

	if (!p)
		return pxd_codec_pack(c, codec, level, elem, in, n, out, cap);
	head = pxd_predict_head_size(p);
	if (word == 0 || n <= head + 1)
		return 0;
	if (cap > n - 1)
		cap = n - 1;
	if (cap <= head)
		return 0;
	if (pxd_predict_weighted(p))
		pxd_weigh(p, word, in, ref, n);
	if (pxd_lesson_have(p, word, &t, &own, ref, n) < 0)
		return 0;
	g = pxd_guide_of(p, t);
	m = 0;
	if (pxd_foresee(p, word, t, in, ref, n, scratch) == 0)
		m = codec == PXD_CODEC_RESIDUAL
			    ? pxd_residual_pack(word, &g, scratch, n, out + head, cap - head)
			    : pxd_codec_pack(c, codec, level, elem, scratch, n, out + head, cap - head);
	pxd_lesson_free(own);
	if (m == 0)
		return 0;
	p->sum = px_crc32c(0, in, n);
	pxd_predict_head_put(p, out);
	return m + head;
}

int pxd_seg_decode(struct pxd_codec *c, int codec, unsigned elem, const struct pxd_lesson *t,
	const uint8_t *const *ref, const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	unsigned word = pxd_predict_word(elem);
	struct pxd_predictor p;
	struct pxd_lesson *own;
	struct pxd_guide g;
	int rc;

	if (codec == PXD_CODEC_LOSSY)
		return pxd_lossy_unpack(elem, in, n, out, want);
	if (!(codec & PXD_CODEC_PREDICT))
		return pxd_codec_unpack(c, codec, elem, in, n, out, want);
	rc = word ? pxd_predict_head_get(in, n, &p) : PX_EPROTO;
	if (rc < 0)
		return rc;
	in += rc;
	n -= (size_t)rc;
	rc = pxd_lesson_have(&p, word, &t, &own, ref, want);
	if (rc < 0)
		return rc;
	g = pxd_guide_of(&p, t);
	rc = codec == (PXD_CODEC_RESIDUAL | PXD_CODEC_PREDICT)
		     ? pxd_residual_unpack(word, &g, in, n, out, want)
		     : pxd_codec_unpack(c, codec & ~PXD_CODEC_PREDICT, elem, in, n, out, want);
	if (rc == 0)
		rc = pxd_foreseen(&p, word, t, out, ref, want);
	pxd_lesson_free(own);
	if (rc < 0)
		return rc;
	return px_crc32c(0, out, want) == p.sum ? PX_OK : PX_EPROTO;
}
