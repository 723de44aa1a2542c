/* residual.c: see residual.h.
 *
 * Design. A folded number is a sign and a magnitude; its length k is the number of significant bits of that. k is foretold from a
 * moving average, and from how far the lengths around it are from that, with weights that follow what they have been worth (normalised
 * least mean squares, in whole numbers). What is coded is whether it is zero, whether it is the foretold one, and if not, how far
 * from that, in steps; then the sign, and the two bits below the leading one, which are not quite evenly distributed. All of these are
 * binary decisions of a range coder (as in LZMA, with carries), each with a probability that learns fast at first, then slowly. All
 * lower bits are noise: they follow in a second part, untouched, which makes for most of the speed.
 */
#include "residual.h"

#include <stdbool.h>
#include <string.h>

#include "endian.h"
#include "err.h"
#include "number.h"

#define HEAD    4  /* length of the part of the range coder */
#define STEPS   16 /* further ones share the last probability */
#define LEARNED 16 /* decisions after which a probability learns slowly */
#define P_MIN   64 /* of 65536 */
#define NOISE   3  /* significant bits that are modelled: the leading one and two more */
#define AROUND  5  /* numbers around whose lengths are known */
#define TAPS    16 /* and then, of the message before, lengths that are known around a number */
#define NONE    (-1)
#define ONE     4096 /* as a weight */
#define HEAVY   (8 * ONE - 1)
#define FAR     128 /* sixteenths of a bit: a greater surprise counts no more */
#define PACE    328 /* of ONE: how fast weights follow */
#define DOUBTS  6

struct prob {
	uint32_t p; /* that the next bit is 0, of 65536 */
	unsigned n; /* seen so far, up to LEARNED */
};

struct model {
	struct prob zero[64];         /* by which numbers around are zero */
	struct prob other[DOUBTS][4]; /* by how far what is foretold is from a whole number */
	struct prob above[DOUBTS][4];
	struct prob on[2][DOUBTS][STEPS]; /* one more step down, up */
	struct prob sign[3];              /* by that of the number before */
	struct prob top[5][3];            /* by how far the length was from the foretold one */
	unsigned most;                    /* longest length: bits of a number */
	unsigned last;
	int average; /* of lengths that are not 0, in sixteenths */
	int doubt;   /* average surprise, in 256ths */
	const struct pxd_guide *g;
	const uint8_t *self;  /* the numbers, as far as they are known */
	int64_t count;        /* of them */
	int64_t place[TAPS];  /* of what is looked at, from a number */
	int16_t length[TAPS]; /* of that: NONE, or in bits */
	int16_t tap[TAPS], weight[TAPS];
};

static void model_init(
	struct model *m, unsigned word, const struct pxd_guide *g, const uint8_t *self, size_t end)
{
	/* Of each tap: strides and rows from the number, and its weight at first; numbers around, then those of the message before. */
	static const int8_t strides[TAPS] = { -1, -2, 0, -1, 1, 0, -1, 1, -2, 2, 0, 0, -1, 1, -1, 1 };
	static const int8_t rows[TAPS] = { 0, 0, -1, -1, -1, 0, 0, 0, 0, 0, -1, 1, -1, -1, 1, 1 };
	static const int16_t weight[TAPS] = { 1229, 410, 614, 82, 205, 614, 205, 205, 0, 0, 205, 205 };
	struct prob *p = (struct prob *)m;

	memset(m, 0, sizeof *m);
	for (size_t i = 0; i < offsetof(struct model, most) / sizeof *p; i++)
		p[i].p = 1u << 15;
	m->most = 8 * word;
	m->average = 40 * (int)word;
	m->doubt = 384;
	m->g = g;
	m->self = self;
	m->count = (int64_t)(end / word);
	for (int k = 0; k < TAPS; k++) {
		bool is = (g->row > 0 || rows[k] == 0) && (g->length || k < AROUND);
		int64_t at = strides[k] * (int64_t)g->stride + rows[k] * (int64_t)g->row;

		m->place[k] = is ? at : m->count;
	}
	memcpy(m->weight, weight, sizeof weight);
}

static inline void learn(struct prob *b, unsigned bit)
{
	static const uint8_t rate[LEARNED + 1] = { 1, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6 };
	unsigned s = rate[b->n];

	b->n += b->n < LEARNED;
	b->p = bit ? b->p - (b->p >> s) : b->p + ((65536 - b->p) >> s);
	b->p = b->p < P_MIN ? P_MIN : b->p > 65536 - P_MIN ? 65536 - P_MIN : b->p;
}

/* The range coder, either way: code() takes the bit and gives it back, or finds it. */
struct coder {
	bool decodes;
	uint32_t range;
	uint64_t low;   /* encoding */
	uint32_t value; /* decoding */
	uint8_t held;   /* byte that a carry may still change, and `ones` bytes of 0xff behind it */
	size_t ones;
	uint8_t *out;
	const uint8_t *in;
	size_t at, end; /* at > end: it did not fit, or was not there */
};

static void byte_out(struct coder *c)
{
	if (c->low < 0xff000000u || c->low >> 32) {
		uint8_t carry = (uint8_t)(c->low >> 32);

		/* The first byte is always 0, and left away: at counts from SIZE_MAX. */
		for (size_t i = 0; i <= c->ones; i++, c->at++)
			if (c->at < c->end)
				c->out[c->at] = (uint8_t)((i == 0 ? c->held : 0xff) + carry);
		c->ones = 0;
		c->held = (uint8_t)(c->low >> 24);
	} else {
		c->ones++;
	}
	c->low = (c->low & 0x00ffffff) << 8;
}

static void byte_in(struct coder *c)
{
	c->value = c->value << 8 | (c->at < c->end ? c->in[c->at] : 0);
	c->at++;
}

static inline __attribute__((always_inline)) unsigned code(struct coder *c, struct prob *b, unsigned bit)
{
	uint32_t bound = (c->range >> 16) * b->p;

	if (c->decodes)
		bit = c->value >= bound;
	if (bit) {
		c->range -= bound;
		if (c->decodes)
			c->value -= bound;
		else
			c->low += bound;
	} else {
		c->range = bound;
	}
	learn(b, bit);
	while (c->range < 1u << 24) {
		c->range <<= 8;
		if (c->decodes)
			byte_in(c);
		else
			byte_out(c);
	}
	return bit;
}

static inline uint64_t get(const uint8_t *at, unsigned word)
{
	return word == 4 ? px_get32(at) : px_get64(at);
}

static inline void put(uint8_t *at, uint64_t v, unsigned word)
{
	if (word == 4)
		px_put32(at, (uint32_t)v);
	else
		px_put64(at, v);
}

static inline uint64_t magnitude_of(uint64_t folded)
{
	return (folded >> 1) + (folded & 1);
}

static inline uint64_t fold(uint64_t magnitude, unsigned negative)
{
	return 2 * magnitude - negative;
}

/* The lengths around number i. */
static inline __attribute__((always_inline)) void look(struct model *m, int64_t i, unsigned word)
{
	for (int k = 0; k < TAPS; k++) {
		int64_t at = i + m->place[k];

		if (at < 0 || at >= m->count)
			m->length[k] = NONE;
		else
			m->length[k] = k < AROUND ? (int16_t)pxd_length(get(m->self + at * word, word))
						  : m->g->length[at];
	}
}

/* Which of the nearest ones are zero. */
static inline unsigned zeros(const struct model *m)
{
	static const uint8_t near[] = { 0, 1, 2, 4, 5, 7 };
	unsigned all = 0;

	for (unsigned k = 0; k < sizeof near; k++)
		all |= (unsigned)(m->length[near[k]] == 0) << k;
	return all;
}

/* The length of a number that is not zero, in sixteenths. */
static inline int foretell(struct model *m)
{
	int sum = 0, is;

	for (int k = 0; k < TAPS; k++) {
		m->tap[k] = (int16_t)(m->length[k] > 0 ? 16 * m->length[k] - m->average : 0);
		sum += m->weight[k] * m->tap[k];
	}
	is = m->average + (sum >> 12);
	return is < 16 ? 16 : is > 16 * (int)m->most ? 16 * (int)m->most : is;
}

static inline int within(int v, int most)
{
	return v < -most ? -most : v > most ? most : v;
}

/* It was k bits long, and `foretold` sixteenths expected. */
static inline void adapt(struct model *m, int foretold, unsigned k)
{
	int surprise = within(16 * (int)k - foretold, FAR), sum = 4 * 16 * 16, pace;

	for (int j = 0; j < TAPS; j++)
		sum += m->tap[j] * m->tap[j];
	pace = surprise * PACE * ONE / sum;
	for (int j = 0; j < TAPS; j++)
		m->weight[j] = (int16_t)within(m->weight[j] + (pace * m->tap[j] >> 12), HEAVY);
	m->doubt += (16 * (surprise < 0 ? -surprise : surprise) - m->doubt) >> 3;
	m->average = (3 * m->average + 16 * (int)k) >> 2;
}

/* Which models: the average surprise is below 0.7 bits, 1, 1.5, 2.2, 3.2, or more. */
static inline unsigned doubts(const struct model *m)
{
	static const int16_t from[DOUBTS - 1] = { 179, 256, 384, 563, 819 };
	unsigned n = 0;

	while (n < DOUBTS - 1 && m->doubt >= from[n])
		n++;
	return n;
}

/* The length of the next number, which is not zero and k long if we encode; *from: how far from the foretold one, -2 .. 2. */
static inline __attribute__((always_inline)) unsigned code_length(
	struct coder *c, struct model *m, unsigned k, int *from)
{
	int foretold = foretell(m);
	unsigned at = (unsigned)(foretold + 8) >> 4, part = (unsigned)(foretold + 8) >> 2 & 3,
		 doubt = doubts(m);
	unsigned up, steps = 0;

	*from = 0;
	if (code(c, &m->other[doubt][part], k != at)) {
		up = at == 1 ? 1 : at == m->most ? 0 : code(c, &m->above[doubt][part], k > at);
		for (;;) {
			unsigned now = up ? at + steps + 1 : at - steps - 1;

			steps++;
			if (now == (up ? m->most : 1) ||
				!code(c, &m->on[up][doubt][steps < STEPS ? steps : STEPS - 1], now != k)) {
				k = now;
				break;
			}
		}
		*from = (up ? 1 : -1) * (steps > 1 ? 2 : 1);
	} else {
		k = at;
	}
	adapt(m, foretold, k);
	return k;
}

/* Number i but for its noise; v: folded, if we encode. */
static inline __attribute__((always_inline)) uint64_t code_number(
	struct coder *c, struct model *m, int64_t i, unsigned word, uint64_t v)
{
	uint64_t a = magnitude_of(v);
	unsigned k = pxd_length(v), zero, negative, high, low;
	struct prob *top;
	int from;

	look(m, i, word);
	zero = code(c, &m->zero[zeros(m)], k == 0);
	if (zero) {
		m->last = 0;
		return 0;
	}
	k = code_length(c, m, k, &from);
	if (k == m->most) { /* there is only one number so long */
		m->last = 1;
		return fold(1ull << (k - 1), 1);
	}
	negative = code(c, &m->sign[m->last], v & 1);
	m->last = 1 + negative;
	a = (c->decodes ? 0 : a) | 1ull << (k - 1);
	top = m->top[from + 2];
	if (k > 1) {
		high = code(c, &top[0], a >> (k - 2) & 1);
		a |= (uint64_t)high << (k - 2);
		if (k > 2) {
			low = code(c, &top[1 + high], a >> (k - 3) & 1);
			a |= (uint64_t)low << (k - 3);
		}
	}
	return fold(a, negative);
}

static inline unsigned noise_of(unsigned k, unsigned most)
{
	return k > NOISE && k < most ? k - NOISE : 0;
}

static inline __attribute__((always_inline)) size_t range_pack(
	unsigned word, const struct pxd_guide *g, const uint8_t *in, size_t end, uint8_t *out, size_t cap)
{
	struct coder c = { .range = UINT32_MAX, .out = out, .at = SIZE_MAX, .end = cap };
	struct model m;

	model_init(&m, word, g, in, end);
	for (int64_t i = 0; i < m.count; i++)
		code_number(&c, &m, i, word, get(in + i * word, word));
	for (int i = 0; i < 5; i++)
		byte_out(&c);
	return c.at <= cap ? c.at : 0;
}

static inline __attribute__((always_inline)) int range_unpack(
	unsigned word, const struct pxd_guide *g, const uint8_t *in, size_t n, uint8_t *out, size_t end)
{
	struct coder c = { .decodes = true, .range = UINT32_MAX, .in = in, .end = n };
	struct model m;

	model_init(&m, word, g, out, end);
	for (int i = 0; i < 4; i++)
		byte_in(&c);
	for (int64_t i = 0; i < m.count; i++)
		put(out + i * word, code_number(&c, &m, i, word, 0), word);
	return c.at == n ? PX_OK : PX_EPROTO;
}

/* The noise of all numbers, the lowest bit first; length in bytes, 0: it does not fit into cap. */
static size_t noise_pack(unsigned word, const uint8_t *in, size_t end, uint8_t *out, size_t cap)
{
	uint64_t bits = 0;
	unsigned have = 0;
	size_t at = 0;

	for (size_t i = 0; i < end; i += word) {
		uint64_t v = get(in + i, word), a = magnitude_of(v);
		unsigned n = noise_of(pxd_length(v), 8 * word);

		while (n > 0) {
			unsigned some = n < 32 ? n : 32;

			bits |= (a & ((1ull << some) - 1)) << have;
			a >>= some;
			n -= some;
			have += some;
			for (; have >= 8; have -= 8, bits >>= 8) {
				if (at >= cap)
					return SIZE_MAX;
				out[at++] = (uint8_t)bits;
			}
		}
	}
	if (have == 0)
		return at;
	if (at >= cap)
		return SIZE_MAX;
	out[at++] = (uint8_t)bits;
	return at;
}

static int noise_unpack(unsigned word, const uint8_t *in, size_t n, uint8_t *data, size_t end)
{
	uint64_t bits = 0;
	unsigned have = 0;
	size_t at = 0;

	for (size_t i = 0; i < end; i += word) {
		uint64_t v = get(data + i, word), a = magnitude_of(v), noise = 0;
		unsigned left = noise_of(pxd_length(v), 8 * word), got = 0;

		while (left > 0) {
			unsigned some = left < 32 ? left : 32;

			for (; have < some; have += 8) {
				if (at >= n)
					return PX_EPROTO;
				bits |= (uint64_t)in[at++] << have;
			}
			noise |= (bits & ((1ull << some) - 1)) << got;
			bits >>= some;
			have -= some;
			got += some;
			left -= some;
		}
		put(data + i, fold(a | noise, v & 1), word);
	}
	return at == n && bits == 0 ? PX_OK : PX_EPROTO;
}

size_t pxd_residual_pack(
	unsigned word, const struct pxd_guide *g, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	size_t end = n / word * word, tail = n - end, coded, noise;

	if (cap > n - 1)
		cap = n - 1;
	if (n == 0 || cap < HEAD + tail)
		return 0;
	cap -= HEAD + tail;
	coded = word == 4 ? range_pack(4, g, in, end, out + HEAD, cap)
			  : range_pack(8, g, in, end, out + HEAD, cap);
	if (coded == 0)
		return 0;
	noise = noise_pack(word, in, end, out + HEAD + coded, cap - coded);
	if (noise == SIZE_MAX)
		return 0;
	px_put32(out, (uint32_t)coded);
	memcpy(out + HEAD + coded + noise, in + end, tail);
	return HEAD + coded + noise + tail;
}

int pxd_residual_unpack(
	unsigned word, const struct pxd_guide *g, const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	size_t end = want / word * word, tail = want - end, coded;
	int rc;

	if (n < HEAD + tail || n >= want)
		return PX_EPROTO;
	coded = px_get32(in);
	if (coded > n - HEAD - tail)
		return PX_EPROTO;
	rc = word == 4 ? range_unpack(4, g, in + HEAD, coded, out, end)
		       : range_unpack(8, g, in + HEAD, coded, out, end);
	if (rc == PX_OK)
		rc = noise_unpack(word, in + HEAD + coded, n - HEAD - coded - tail, out, end);
	memcpy(out + end, in + n - tail, tail);
	return rc;
}
