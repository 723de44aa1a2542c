/* fuzz.h: what every fuzz target has: the entry that libFuzzer or replay.c calls, and a check that is
 * active in every build. A target must hold no state between two inputs. */
#ifndef PX_FUZZ_H
#define PX_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len);

#define MUST(cond)                                                                                           \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                           \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

#endif
