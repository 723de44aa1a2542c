/* spare.c: see spare.h. */
#include "spare.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 32

/* In the order in which they were given. */
static struct slot {
	void *block;
	size_t bytes;
	uint64_t given; /* the turn */
} slot[SLOTS];
static int used;
static size_t kept;
static uint64_t turn;

/* Blocks that are alike but for some bytes serve for one another. */
static size_t rounded(size_t bytes)
{
	size_t step = PX_SPARE_LEAST / 4;

	while (bytes / step >= 8)
		step *= 2;
	return bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

static void *out(int i)
{
	void *block = slot[i].block;

	kept -= slot[i].bytes;
	used--;
	memmove(&slot[i], &slot[i + 1], (size_t)(used - i) * sizeof *slot);
	return block;
}

void *px_spare_take(size_t bytes)
{
	if (bytes < PX_SPARE_LEAST)
		return calloc(1, bytes ? bytes : 1);
	bytes = rounded(bytes);
	for (int i = used - 1; i >= 0; i--) /* the last one may still be in a cache */
		if (slot[i].bytes == bytes)
			return memset(out(i), 0, bytes);
	return calloc(1, bytes);
}

void px_spare_give(void *block, size_t bytes)
{
	bool keep;

	if (bytes >= PX_SPARE_LEAST)
		bytes = rounded(bytes);
	keep = block && bytes >= PX_SPARE_LEAST && bytes <= PX_SPARE_MOST;
	turn++;
	while (used > 0 && (turn - slot[0].given > PX_SPARE_TURNS ||
				   (keep && (used == SLOTS || kept + bytes > PX_SPARE_MOST))))
		free(out(0));
	if (!keep) {
		free(block);
		return;
	}
	slot[used++] = (struct slot){ block, bytes, turn };
	kept += bytes;
}

void px_spare_close(void)
{
	while (used > 0)
		free(out(0));
}

size_t px_spare_kept(void)
{
	return kept;
}
