/* wanem_params.c: see wanem_params.h. */
#include "wanem_params.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* parse_number: VALUE UNIT with the units of `table` (name, factor, ..., NULL); false if it is something else or negative. */
struct unit {
	const char *name;
	double factor;
};
static bool parse_number(const char *s, const struct unit *units, double *out)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || !(v >= 0 && v < 1e15))
		return false;
	for (; units->name; units++)
		if (!strcmp(end, units->name)) {
			*out = v * units->factor;
			return true;
		}
	return false;
}

static const struct unit times[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 } };
static const struct unit sizes[] = { { "", 1 }, { "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 },
	{ "KiB", 1024 }, { "MiB", 1048576 }, { NULL, 0 } };
static const struct unit rates[] = { { "", 1 }, { "B/s", 1 }, { "kB/s", 1e3 }, { "MB/s", 1e6 },
	{ "GB/s", 1e9 }, { "kbit/s", 125 }, { "Mbit/s", 125e3 }, { "Gbit/s", 125e6 }, { NULL, 0 } };
static const struct unit percents[] = { { "", 1 }, { "%", 1 }, { NULL, 0 } };

/* params_set: one KEY and VALUE into *p, or what is wrong. */
const char *params_set(struct params *p, const char *key, const char *value)
{
	double v;

	if (!strcmp(key, "latency")) {
		if (!parse_number(value, times, &v) || v > 60e9)
			return "a latency is like 10ms, 500us or 1s, at most 60s";
		p->latency = (int64_t)v;
	} else if (!strcmp(key, "rate")) {
		if (!parse_number(value, rates, &v) || (v > 0 && v < 10))
			return "a rate is like 1MB/s or 100Mbit/s, 0 is unlimited";
		p->rate = v;
	} else if (!strcmp(key, "loss")) {
		if (!parse_number(value, percents, &v) || v > 100)
			return "a loss is in percent, 0 to 100";
		p->loss = v;
	} else if (!strcmp(key, "queue")) {
		if (!parse_number(value, sizes, &v))
			return "a queue is like 100kB, 0 is automatic";
		p->queue = (size_t)v;
	} else {
		return "the keys are latency, rate, loss and queue";
	}
	return NULL;
}

/* params_change: all of "KEY=VALUE KEY=VALUE..." into *p, or what is wrong. */
const char *params_change(struct params *p, const char *words)
{
	char key[16], value[32];
	int n;

	while (sscanf(words, " %15[^= ]=%31s%n", key, value, &n) == 2) {
		const char *why = params_set(p, key, value);

		if (why)
			return why;
		words += n;
	}
	return words[strspn(words, " \n")] ? "set LINK KEY=VALUE..." : NULL;
}
