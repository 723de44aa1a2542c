/* quiet.c: see quiet.h. */
#include "quiet.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wait.h"

#define BURST 10.0
#define PER_S 0.5

void pxd_quiet_init(struct pxd_quiet *q)
{
	*q = (struct pxd_quiet){ .allowance = BURST, .refilled = px_now_ns() };
}

void pxd_quiet_log(struct pxd_quiet *q, enum px_level level, const char *fmt, ...)
{
	uint64_t now = px_now_ns();
	char text[700];
	va_list ap;

	q->allowance += (double)(now - q->refilled) / 1e9 * PER_S;
	if (q->allowance > BURST)
		q->allowance = BURST;
	q->refilled = now;
	if (q->allowance < 1) {
		q->unsaid++;
		return;
	}
	q->allowance -= 1;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (q->unsaid)
		px_log(level, "%s (and %llu more such events, not shown)", text,
			(unsigned long long)q->unsaid);
	else
		px_log(level, "%s", text);
	q->unsaid = 0;
}

/* Length of the UTF-8 sequence of 2 to 4 bytes at in, 0 if there is none or if it is a control character (U+0080 - U+009F, which
 * terminals obey). */
static size_t utf8_length(const uint8_t *in, size_t n)
{
	size_t k = in[0] >= 0xc2 && in[0] <= 0xdf   ? 2
		   : in[0] >= 0xe0 && in[0] <= 0xef ? 3
		   : in[0] >= 0xf0 && in[0] <= 0xf4 ? 4
						    : 0;

	if (k == 0 || k > n || (in[0] == 0xc2 && in[1] < 0xa0) || (in[0] == 0xe0 && in[1] < 0xa0) ||
		(in[0] == 0xf0 && in[1] < 0x90) || (in[0] == 0xed && in[1] > 0x9f) ||
		(in[0] == 0xf4 && in[1] > 0x8f))
		return 0;
	for (size_t i = 1; i < k; i++)
		if ((in[i] & 0xc0) != 0x80)
			return 0;
	return k;
}

void pxd_text_clean(const uint8_t *in, size_t n, char *out, size_t cap)
{
	size_t k = n < cap - 1 ? n : cap - 1, more;

	for (size_t i = 0; i < k; i += more) {
		more = in[i] >= 0x80 ? utf8_length(in + i, k - i) : 1;
		if (more == 0 || in[i] < 0x20 || in[i] == 0x7f) {
			out[i] = '?';
			more = 1;
		} else {
			memcpy(out + i, in + i, more);
		}
	}
	out[k] = '\0';
}
