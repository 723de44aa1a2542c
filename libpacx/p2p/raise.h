/* raise.h: errors that libpacx itself finds, given to the error handler of their communicator.
 *
 * One place says what the user reads: "rank 3: MPI_Send: rank 999, the communicator has 4". The name of the MPI function
 * is known from the wrapper that was called (lock.h: px_begin), the rest from whoever found the error. Where the handler is
 * MPI_ERRORS_ARE_FATAL the line is printed here and the job ends at all sites; where it is MPI_ERRORS_RETURN nothing is printed and
 * the error class is returned; a handler of the user's own is called by the native MPI. What a native call on behalf of the
 * user has raised is the vendor's affair.
 */
#ifndef PX_RAISE_H
#define PX_RAISE_H

#include <mpi.h>
#include <stdbool.h>

struct px_comm;

/* px_raise: raise MPI error class `code` on c (NULL: MPI_COMM_WORLD); the text says which argument and its value. Returns code, when
 * the handler returns. */
int px_raise(struct px_comm *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The three that are raised in many places. */
int px_raise_count(struct px_comm *c, MPI_Count count);
int px_raise_type(struct px_comm *c);
int px_raise_memory(struct px_comm *c);
/* px_raise_null: `name` was called with MPI_COMM_NULL. For wrappers: takes the lock. */
int px_raise_null(const char *name);
/* px_raise_no_output: `name`, called on c, was given no room for what it gives back. Likewise. */
int px_raise_no_output(struct px_comm *c, const char *name);
/* px_raise_beyond: `name`, called on a communicator or window of one site, was given a group that reaches to others; comm hears of it, as the
 * program knows it. Likewise. */
int px_raise_beyond(MPI_Comm comm, const char *name);
/* px_raise_as: the text has been found earlier; NULL: the vendor's for the class. */
int px_raise_as(struct px_comm *c, int code, const char *text);
/* px_raise_fatal: end the job if this handler does so, with the vendor's text for the class. For errors of files and windows, whose
 * handlers are not a communicator's. The handler is as a get_errhandler has given it, and is released here. */
void px_raise_fatal(MPI_Errhandler handler, int code);

/* px_raised_on: the communicator that c's errors are raised on, for native calls that raise what is ours. */
MPI_Comm px_raised_on(const struct px_comm *c);

/* px_hush: before a blocking call on c waits for a native request: MPICH raises what such a request meets on MPI_COMM_WORLD, where the call itself
 * would be raised on c. true: until px_hush_end it raises nothing there, and px_hushed is not 0; what fails meanwhile is for libpacx to
 * raise. The lock is held. */
bool px_hush(const struct px_comm *c);
void px_hush_end(void);
extern int px_hushed;

/* px_raising: this thread calls an error handler for an error of ours; errhandler.c asks. */
extern _Thread_local bool px_raising;

/* px_unsupported: raise "MPI_X: not supported on a communicator that spans sites: why". */
int px_unsupported(struct px_comm *c, const char *name, const char *why);

/* px_text: a formatted text on the heap; NULL: out of memory. */
char *px_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* px_text_truncated: of a message of `bytes` bytes from comm rank src with tag `tag` (collective: a tag of ours) where `room` are right.
 * Says so when just these numbers are a constant in which the vendors of the job differ. Heap; NULL: out of memory. */
char *px_text_truncated(struct px_comm *c, int src, int tag, unsigned long long bytes,
	unsigned long long room, bool collective);

#endif
