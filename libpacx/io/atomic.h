/* atomic.h: atomic mode of a file that all sites share. See atomic.c; access.c puts each access between enter and leave. */
#ifndef PX_ATOMIC_H
#define PX_ATOMIC_H

#include <stdbool.h>

struct px_file;

/* MPI error codes, not raised. px_atomic_close may be called without px_atomic_open. */
int px_atomic_open(struct px_file *f);
void px_atomic_close(struct px_file *f);
int px_atomic_enter(struct px_file *f, bool write);
void px_atomic_leave(struct px_file *f);

#endif
