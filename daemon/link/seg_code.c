/* seg_code.c: see seg_code.h. */
#include "seg_code.h"

#include "crc.h"
#include "err.h"
#include "lossy.h"

size_t pxd_seg_encode(struct pxd_codec *c, int codec, int level, unsigned elem, struct pxd_predictor *p,
	const uint8_t *const *ref, const uint8_t *in, size_t n, uint8_t *scratch, uint8_t *out, size_t cap)
{
	unsigned word = pxd_predict_word(elem);
	size_t m;

	if (!p)
		return pxd_codec_pack(c, codec, level, elem, in, n, out, cap);
	if (word == 0 || n <= PXD_PREDICT_HEAD + 1)
		return 0;
	if (cap > n - 1)
		cap = n - 1;
	if (cap <= PXD_PREDICT_HEAD)
		return 0;
	pxd_predict_apply(p, word, in, ref, n, scratch);
	m = pxd_codec_pack(c, codec, level, elem, scratch, n, out + PXD_PREDICT_HEAD, cap - PXD_PREDICT_HEAD);
	if (m == 0)
		return 0;
	p->sum = px_crc32c(0, in, n);
	pxd_predict_head_put(p, out);
	return m + PXD_PREDICT_HEAD;
}

int pxd_seg_decode(struct pxd_codec *c, int codec, unsigned elem, const uint8_t *const *ref,
	const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	unsigned word = pxd_predict_word(elem);
	struct pxd_predictor p;
	int rc;

	if (codec == PXD_CODEC_LOSSY)
		return pxd_lossy_unpack(elem, in, n, out, want);
	if (!(codec & PXD_CODEC_PREDICT))
		return pxd_codec_unpack(c, codec, elem, in, n, out, want);
	rc = word ? pxd_predict_head_get(in, n, &p) : PX_EPROTO;
	if (rc == 0)
		rc = pxd_codec_unpack(c, codec & ~PXD_CODEC_PREDICT, elem, in + PXD_PREDICT_HEAD,
			n - PXD_PREDICT_HEAD, out, want);
	if (rc < 0)
		return rc;
	pxd_predict_undo(&p, word, out, ref, want);
	return px_crc32c(0, out, want) == p.sum ? PX_OK : PX_EPROTO;
}
