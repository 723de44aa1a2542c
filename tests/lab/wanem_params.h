/* wanem_params.h: the properties of a link of the emulated network, from KEY=VALUE words with units. */
#ifndef WANEM_PARAMS_H
#define WANEM_PARAMS_H

#include <stddef.h>
#include <stdint.h>

struct params {
	int64_t latency; /* ns */
	double rate;     /* bytes per second, 0 unlimited */
	double loss;     /* percent */
	size_t queue;    /* bytes, 0 automatic */
};

/* params_set: one KEY and VALUE into *p, or what is wrong. */
const char *params_set(struct params *p, const char *key, const char *value);
/* params_change: all of "KEY=VALUE KEY=VALUE..." into *p, or what is wrong. Cuts up words. */
const char *params_change(struct params *p, const char *words);

#endif
