/* spare.c: see spare.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "spare.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS 32
/* From here on blocks are mapped by ourselves, for huge pages where the system has them: a fault for each 2 MiB. */
#define MAPPED (4u << 20)
#define HUGE   (2u << 20)

/* In the order in which they were given. */
static struct slot {
	void *block;
	size_t bytes;
	uint64_t given; /* the turn */
} slot[SLOTS];
static int slots;
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

static void *fresh(size_t bytes)
{
	size_t whole = bytes + HUGE, head;
	char *at;

	if (bytes < MAPPED)
		return calloc(1, bytes);
	at = whole < bytes ? MAP_FAILED
			   : mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	head = HUGE - (uintptr_t)at % HUGE; /* 1 to HUGE */
	munmap(at, head);
	if (head < HUGE)
		munmap(at + head + bytes, HUGE - head);
	(void)!madvise(at + head, bytes, MADV_HUGEPAGE); /* an old kernel says no */
	return at + head;
}

static void release(void *block, size_t bytes)
{
	if (bytes < MAPPED)
		free(block);
	else if (block)
		munmap(block, bytes);
}

static void *out(int i)
{
	void *block = slot[i].block;

	kept -= slot[i].bytes;
	slots--;
	memmove(&slot[i], &slot[i + 1], (size_t)(slots - i) * sizeof *slot);
	return block;
}

static void drop(int i)
{
	size_t bytes = slot[i].bytes;

	release(out(i), bytes);
}

void *px_spare_take(size_t bytes, bool *used)
{
	size_t room = rounded(bytes);

	*used = false;
	if (bytes < PX_SPARE_LEAST)
		return calloc(1, bytes ? bytes : 1);
	for (int i = slots - 1; i >= 0; i--) /* the last one may still be in a cache */
		if (slot[i].bytes == room) {
			*used = true;
			return out(i);
		}
	return fresh(room);
}

void px_spare_give(void *block, size_t bytes)
{
	bool keep;

	bytes = bytes < PX_SPARE_LEAST ? 0 : rounded(bytes);
	keep = block && bytes > 0 && bytes <= PX_SPARE_MOST;
	turn++;
	while (slots > 0 && (turn - slot[0].given > PX_SPARE_TURNS ||
				    (keep && (slots == SLOTS || kept + bytes > PX_SPARE_MOST))))
		drop(0);
	if (!keep) {
		release(block, bytes);
		return;
	}
	slot[slots++] = (struct slot){ block, bytes, turn };
	kept += bytes;
}

void px_spare_close(void)
{
	while (slots > 0)
		drop(0);
}

size_t px_spare_kept(void)
{
	return kept;
}
