/* fuzz/predict.c: a predicted segment of any bytes writes nothing outside; data predicted in any way comes back as it was.
 * First byte: codec. Second: elem. Third: how. Fourth: stride. Two more: plain length. Then, half of the rest each: a body (or the
 * data), and the segments referred to, repeated as often as it takes. */
#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "seg_code.h"

#define WANT_MAX 8192

/* n bytes that repeat some[0..len). */
static void repeat(uint8_t *to, size_t n, const uint8_t *some, size_t len)
{
	for (size_t i = 0; i < n; i++)
		to[i] = len ? (uint8_t)(some[i % len] + i / len) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	static struct pxd_codec *c;
	static uint8_t scratch[WANT_MAX], packed[WANT_MAX];
	struct pxd_predictor p, q;
	const uint8_t *ref[PXD_PREDICT_REFS];
	uint8_t head[PXD_PREDICT_HEAD_MAX] = { 0 }, *room, *back;
	size_t want, half, m;
	unsigned elem, word;
	int rc, codec;

	if (len < 6)
		return 0;
	if (!c)
		c = pxd_codec_new();
	elem = in[1];
	want = (in[4] | (size_t)in[5] << 8) % WANT_MAX;
	half = (len - 6) / 2;
	room = malloc((PXD_PREDICT_REFS + 2) * want + 1); /* each part exactly as long as allowed */
	MUST(c && room);
	repeat(room, want, in + 6, half);
	back = room + (PXD_PREDICT_REFS + 1) * want;
	repeat(room + want, PXD_PREDICT_REFS * want, in + 6 + half, len - 6 - half);
	for (int i = 0; i < PXD_PREDICT_REFS; i++)
		ref[i] = room + (size_t)(i + 1) * want;
	rc = pxd_seg_decode(c, in[0], elem, NULL, ref, in + 6, half, back, want);
	MUST(rc == 0 || rc == PX_EPROTO);
	head[0] = in[2];
	head[1] = in[3];
	head[3] = in[4] & 1 ? in[5] >> 5 : 0;
	head[2] = in[2] & PXD_PREDICT_WEIGHTED ? (uint8_t)(2 + in[4] % 5) : 0;
	if ((in[2] & PXD_PREDICT_LEARNT) == PXD_PREDICT_LEARNT) {
		head[3] = in[4];
		head[PXD_PREDICT_HEAD] = in[5] & 2 ? in[5] : 0; /* the row */
	}
	codec = in[5] & 1 ? PXD_CODEC_RESIDUAL : PXD_CODEC_LZ4;
	word = pxd_predict_word(elem);
	if (word && pxd_predict_head_get(head, sizeof head, &p) > 0) {
		m = pxd_seg_encode(c, codec, 1, elem, &p, NULL, ref, room, want, scratch, packed, want);
		MUST(m < want || m == 0);
		if (m) {
			MUST(pxd_predict_head_get(packed, m, &q) > 0 && q.how == p.how && q.sum == p.sum);
			MUST(pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, elem, NULL, ref, packed, m, back,
				     want) == 0);
			MUST(memcmp(back, room, want) == 0);
			packed[m / 2] ^= 1; /* noticed, or it meant nothing */
			rc = pxd_seg_decode(
				c, codec | PXD_CODEC_PREDICT, elem, NULL, ref, packed, m, back, want);
			MUST(rc == PX_EPROTO || memcmp(back, room, want) == 0);
		}
	}
	free(room);
	return 0;
}
