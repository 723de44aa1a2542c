/* wave.h: numbers that depend smoothly on their neighbours and on time. */
#ifndef WAVE_H
#define WAVE_H

#include <math.h>
#include <stddef.h>

static inline void wave(double *to, size_t n, double t)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 300 + 40 * sin(0.01 * (double)i + 0.1 * t) + exp(-t / 20) * cos(0.3 * (double)i);
}

#endif
