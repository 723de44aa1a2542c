/* lock.c: see lock.h. */
#include "lock.h"

#include <pthread.h>

bool px_threaded;
unsigned px_held;
_Thread_local const char *px_function;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* Initial-exec would be faster but takes static TLS space that a preloaded library may not get. */
static _Thread_local unsigned depth; /* how often this thread holds it */

void px_lock_slow(void)
{
	if (depth++ == 0)
		pthread_mutex_lock(&mutex);
}

void px_unlock_slow(void)
{
	if (--depth == 0)
		pthread_mutex_unlock(&mutex);
}

bool px_trylock_slow(void)
{
	if (depth > 0 || pthread_mutex_trylock(&mutex) != 0)
		return false;
	depth = 1;
	return true;
}

bool px_lock_mine_slow(void)
{
	return depth > 0;
}

unsigned px_unlock_all_slow(void)
{
	unsigned held = depth;

	if (held == 0)
		return 0;
	depth = 0;
	pthread_mutex_unlock(&mutex);
	return held;
}

void px_relock_slow(unsigned held)
{
	if (held == 0)
		return;
	pthread_mutex_lock(&mutex);
	depth = held;
}
