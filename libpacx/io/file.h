/* file.h: files opened on a communicator that spans sites.
 *
 * Design. The application holds a native file handle, opened among the members at its site; a side table adds what the native
 * MPI does not know (struct px_file). How the handles of the sites belong together is the hostfile's `files:`:
 *
 *   shared   All sites see one file system. Every site opens the path. Reads are native, collective ones natively
 *            collective inside the site. Writes are native but never collective, and without data sieving: an
 *            aggregator that reads a block, changes its bytes and writes it back would undo what another site has
 *            written in between. Ranks wait for each other behind a collective write. What is done once is done by the first site that has members: exclusive creation,
 *            truncation, preallocation, deletion.
 *   local    Every site has a file of its own by that name. All is native, also collective writes.
 *   SITE     (carried) The file is at one site. Its members have it open as in `shared`; the others hold a native handle
 *            on /dev/null, which keeps what the MPI library wants to keep (error handler, view, info), and send their accesses,
 *            flattened to byte ranges, to a server there (carry.h, service.h).
 *
 * Sites may store data in different ways. In a "native" view bytes are as they are in memory, whatever wrote them (MPI standard 13.5.1); with
 * "external32", and with "internal" where sites differ, numbers are converted here and ranges of the file read and written as for
 * a file that is elsewhere (rep.h, carry.h), also by ranks that have it.
 *
 * The shared file pointer is a number at the server, in all modes: the native one knows one site only. Its value belongs to an
 * epoch: each collective that sets it (a view, a shared seek) begins a new one, so that setting a view needs no message.
 * MPI_MODE_SEQUENTIAL and MPI_MODE_DELETE_ON_CLOSE are kept from the native MPI and carried out here.
 * Native calls are made without the lock, collective ones after px_comm_turn; messages go on a communicator of the file's own.
 * Errors: data access answers per process; opening, closing, sizes and preallocation agree, so that all sites raise the same class.
 */
#ifndef PX_FILE_H
#define PX_FILE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm_find.h"
#include "schedule.h"
#include "view.h"

struct px_comm;
struct px_repr;
struct px_service;

enum px_files { PX_FILES_SHARED, PX_FILES_LOCAL, PX_FILES_CARRIED };

enum px_split { PX_SPLIT_NONE, PX_SPLIT_ALL, PX_SPLIT_AT_ALL, PX_SPLIT_ORDERED };

struct px_file {
	MPI_File fh; /* native; what the application holds */
	struct px_comm
		*c; /* of the file: a duplicate of the application's, with its own native communicator */
	enum px_files files;
	bool far; /* carried, and this rank is not at the site of the file: fh is /dev/null */
	const struct px_repr
		*rep; /* how the view has numbers in the file (rep.h); NULL: as they are in memory */
	int amode;
	char *name;
	int server;          /* comm rank: keeps the shared file pointer and, carried, has the file */
	MPI_Count etype;     /* bytes in the file */
	uint32_t epoch;      /* of the shared file pointer */
	MPI_Offset at;       /* px_file_ours: the individual file pointer, in etypes */
	struct px_view view; /* px_file_ours */
	enum px_split split; /* a split collective is under way */
	bool split_write;
	MPI_Status split_status;
	int split_error;
	bool atomic; /* shared: accesses exclude each other by fd (atomic.h) */
	int fd;      /* the file below all views: for locks, and for data that is converted; -1 = not open */
	struct px_service *service; /* at the server */
};

extern _Atomic unsigned px_files_open; /* entries of the table */

struct px_file *px_file_look(MPI_File fh);
/* px_file_find: the object of a handle; NULL: an ordinary native file. */
static inline struct px_file *px_file_find(MPI_File fh)
{
	return PX_LIKELY(atomic_load_explicit(&px_files_open, memory_order_acquire) == 0) ? NULL
											  : px_file_look(fh);
}

/* px_file_raise: call f's error handler (NULL: that of MPI_FILE_NULL) with an error class; returns code. */
int px_file_raise(struct px_file *f, int code);

/* px_file_agree: collective over f: one number and one MPI error code of each rank. The code of the first that failed, as this
 * site's error class, or MPI_SUCCESS; all[] (may be NULL) gets the numbers. Raises nothing. */
int px_file_agree(struct px_comm *c, int code, int64_t number, int64_t *all);
/* px_file_tell: collective: everybody gets the server's number. MPI error code. */
int px_file_tell(struct px_file *f, int64_t *number);

/* px_class_index, px_class_of: MPI error classes as numbers that mean the same at every site. */
int px_class_index(int code);
int px_class_of(int index);
int px_class_errno(int err); /* errno -> MPI error class */

/* px_file_ours: is data accessed by carry.c, with our own view and file pointer? */
static inline bool px_file_ours(const struct px_file *f)
{
	return f->far || f->rep;
}

/* px_file_descriptor: the file itself, opened anew by its path: below all views. -1: errno says why. */
int px_file_descriptor(const struct px_file *f);

/* px_file_writes_alone: must data be written without the native collectives? See above. */
static inline bool px_file_writes_alone(const struct px_file *f)
{
	return f->files != PX_FILES_LOCAL;
}

/* px_together: a native call that is collective among the members at this site. */
#define px_together(rc, c, call)                                                                             \
	do {                                                                                                 \
		(rc) = px_comm_turn(c);                                                                      \
		if ((rc) == MPI_SUCCESS)                                                                     \
			px_blocking(rc, call);                                                               \
	} while (0)

#endif
