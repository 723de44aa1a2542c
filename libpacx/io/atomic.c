/* atomic.c: atomic mode of a file that all sites share: one access at a time, by a lock of the file system.
 *
 * Design: the native libraries lock differently or not at all, so each access is made between taking and dropping a lock of our own:
 * of an open file description (two files of one process must exclude each other, too), and of a byte so far behind any
 * data that it meets none of theirs. Whoever waits for it makes progress.
 */
#include "atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "file.h"
#include "request.h"
#include "service.h"
#include "wait.h"

#define LOCK_AT ((off_t)1 << 62)

int px_atomic_open(struct px_file *f)
{
	if (f->fd < 0)
		f->fd = px_file_descriptor(f);
	return f->fd < 0 ? px_class_errno(errno) : MPI_SUCCESS;
}

void px_atomic_close(struct px_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static int lock(const struct px_file *f, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = 1 };

	return fcntl(f->fd, F_OFD_SETLK, &l);
}

int px_atomic_enter(struct px_file *f, bool write)
{
	struct px_wait w;
	int rc;

	px_loop_enter(&w);
	while ((rc = lock(f, write ? F_WRLCK : F_RDLCK)) < 0 &&
		(errno == EAGAIN || errno == EACCES || errno == EINTR))
		px_relax(&w, px_progress());
	px_loop_leave();
	return rc < 0 ? px_class_errno(errno) : MPI_SUCCESS;
}

void px_atomic_leave(struct px_file *f)
{
	lock(f, F_UNLCK);
}
