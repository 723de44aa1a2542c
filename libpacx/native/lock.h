/* lock.h: the one lock of libpacx.
 *
 * Owns a recursive mutex (a user's callback may call MPI from inside a body). The trampolines take it around every
 * body; unless the program asked for MPI_THREAD_MULTIPLE it is a counter. While it is held the objects of libpacx may be
 * half-way between two states, so what runs inside native calls (progress.c) serves only if px_trylock gets it. A body that
 * waits, or makes a native call that may block or run the user's code, must let go of it, with px_unlock_all and px_relock
 * (or px_blocking), because it may be held more than once. px_threaded changes only where nobody holds it.
 */
#ifndef PX_LOCK_H
#define PX_LOCK_H

#include <stdbool.h>

extern bool px_threaded; /* MPI_THREAD_MULTIPLE was given; set once, by init.c */

extern unsigned px_held; /* without threads: how often it is held */

void px_lock_slow(void);
void px_unlock_slow(void);
bool px_trylock_slow(void);
bool px_lock_mine_slow(void);
unsigned px_unlock_all_slow(void);
void px_relock_slow(unsigned depth);

static inline void px_lock(void)
{
	if (px_threaded)
		px_lock_slow();
	else
		px_held++;
}

static inline void px_unlock(void)
{
	if (px_threaded)
		px_unlock_slow();
	else
		px_held--;
}

/* px_trylock: take it unless somebody holds it, this thread included. */
static inline bool px_trylock(void)
{
	if (px_threaded)
		return px_trylock_slow();
	return px_held == 0 && ++px_held;
}

/* px_lock_mine: does this thread hold it? */
static inline bool px_lock_mine(void)
{
	return px_threaded ? px_lock_mine_slow() : px_held > 0;
}

/* The MPI function that this thread is in, for messages; NULL: none. Bodies that call bodies, and the user's callbacks that call
 * MPI functions, leave it as they found it. */
extern _Thread_local const char *px_function;

/* px_begin, px_end: around every body: name it and take the lock. */
static inline const char *px_begin(const char *name)
{
	const char *outer = px_function;

	px_lock();
	px_function = name;
	return outer;
}

static inline void px_end(const char *outer)
{
	px_function = outer;
	px_unlock();
}

/* px_unlock_all: let go however often this thread holds it; returns how often, for px_relock. */
static inline unsigned px_unlock_all(void)
{
	unsigned held = px_held;

	if (px_threaded)
		return px_unlock_all_slow();
	px_held = 0;
	return held;
}

static inline void px_relock(unsigned held)
{
	if (px_threaded)
		px_relock_slow(held);
	else
		px_held = held;
}

/* px_blocking: rc = a native call that may block or call the user's code, without the lock. */
#define px_blocking(rc, call)                                                                                \
	do {                                                                                                 \
		unsigned held_ = px_unlock_all();                                                            \
                                                                                                             \
		(rc) = (call);                                                                               \
		px_relock(held_);                                                                            \
	} while (0)

#endif
