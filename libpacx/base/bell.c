/* bell.c: see bell.h.
 *
 * Why no ring is lost between a poll and the sleep behind it: whether somebody sleeps (ASLEEP) and how often the bell was rung are one word.
 * A ringer counts and wakes up in one step, and a sleeper lies down only if the count is still what it was before the poll; the kernel
 * looks once more, for a futex. (In two words a ringer that was slow between the two took the next sleeper for awake.)
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "err.h"

struct bell {
	_Alignas(64) _Atomic uint32_t word; /* how often rung * RING, + ASLEEP */
	_Atomic int pid;                    /* whom to send SIGURG; 0: a futex */
	uint64_t space;                     /* of that number: /proc/self/ns/pid */
};

#define ASLEEP 1u
#define RING   2u

static struct bell *bells, *mine;
static int nbells, *bell_of, nof; /* process -> bell, -1 = none */
static uint64_t space;

static _Thread_local int owed[PX_BELL_OWED], nowed;

static size_t bytes_of(int n)
{
	return (size_t)n * sizeof(struct bell);
}

int px_bell_make(char name[PX_BELL_NAME], int n)
{
	struct timespec t;
	int fd = -1;

	for (int i = 0; fd < 0 && i < 100; i++) {
		clock_gettime(CLOCK_REALTIME, &t);
		snprintf(name, PX_BELL_NAME, "/dev/shm/pacx-%ld-%ld.%09ld", (long)getpid(), (long)t.tv_sec,
			t.tv_nsec);
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return PX_EIO;
	/* Memory that is there: a full /dev/shm shall say so here and not by SIGBUS. */
	if (posix_fallocate(fd, 0, (off_t)bytes_of(n)) != 0) {
		close(fd);
		unlink(name);
		return PX_EIO;
	}
	close(fd);
	return PX_OK;
}

int px_bell_join(const char *name, int n, const int *who, int size, int self, bool by_signal)
{
	int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW), *of = malloc((size_t)size * sizeof *of);
	struct stat st = { 0 };
	void *at = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)bytes_of(n) && st.st_uid == geteuid())
		at = mmap(NULL, bytes_of(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (!of || at == MAP_FAILED) {
		if (at != MAP_FAILED)
			munmap(at, bytes_of(n));
		free(of);
		return of ? PX_EIO : PX_ENOMEM;
	}
	for (int i = 0; i < size; i++)
		of[i] = -1;
	for (int i = 0; i < n; i++)
		of[who[i]] = i;
	bells = at;
	nbells = n;
	bell_of = of;
	nof = size;
	mine = &bells[of[self]];
	/* A number means the same process only within one namespace. */
	space = stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
	mine->space = space;
	atomic_store(&mine->pid, by_signal ? (int)getpid() : 0);
	return PX_OK;
}

void px_bell_unlink(const char *name)
{
	unlink(name);
}

bool px_bell_all(void)
{
	return nbells > 0 && nbells == nof;
}

void px_bell_drop(void)
{
	if (bells)
		munmap(bells, bytes_of(nbells));
	free(bell_of);
	bells = mine = NULL;
	bell_of = NULL;
	nbells = nof = 0;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *t)
{
#if defined SYS_futex_time64 && defined __SIZEOF_POINTER__ && __SIZEOF_POINTER__ == 4
	if (sizeof t->tv_sec > 4) /* machines of 32 bits whose struct timespec has 64 */
		return syscall(SYS_futex_time64, (uint32_t *)word, op, value, t, NULL, 0);
#endif
	return syscall(SYS_futex, (uint32_t *)word, op, value, t, NULL, 0);
}

void px_bell_ring(int to)
{
	struct bell *b;
	uint32_t w;
	int pid;

	if (to < 0 || to >= nof || bell_of[to] < 0)
		return;
	b = &bells[bell_of[to]];
	w = atomic_load(&b->word);
	while (!atomic_compare_exchange_weak(&b->word, &w, (w + RING) & ~ASLEEP))
		;
	if (!(w & ASLEEP))
		return;
	pid = atomic_load(&b->pid);
	if (pid <= 0)
		futex(&b->word, FUTEX_WAKE, INT_MAX, NULL);
	else if (b->space == space)
		kill(pid, SIGURG);
}

void px_bell_owe(int to)
{
	if (nowed < PX_BELL_OWED && to >= 0 && to < nof && bell_of[to] >= 0 && &bells[bell_of[to]] != mine)
		owed[nowed++] = to;
}

void px_bell_pay(void)
{
	while (nowed > 0)
		px_bell_ring(owed[--nowed]);
}

uint32_t px_bell_heard(void)
{
	return mine ? atomic_load(&mine->word) & ~ASLEEP : 0;
}

bool px_bell_listen(uint32_t heard)
{
	uint32_t w = heard; /* with ASLEEP: another thread sleeps already */

	return !mine || atomic_compare_exchange_strong(&mine->word, &w, heard | ASLEEP) ||
	       w == (heard | ASLEEP);
}

void px_bell_sleep(uint32_t heard, uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	if (!mine)
		nanosleep(&t, NULL); /* a signal may shorten it: the caller polls again anyway */
	else if (px_bell_listen(heard))
		futex(&mine->word, FUTEX_WAIT, heard | ASLEEP, &t);
}
