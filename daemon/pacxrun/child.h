/* child.h: one program below us, which dies with us. Used by guard.c and pacxlabel.c. */
#ifndef PXD_CHILD_H
#define PXD_CHILD_H

#include <signal.h>
#include <sys/types.h>

/* pxd_child_start: fork and exec argv, with this signal mask; out and err (-1: as ours) become its standard output and standard error.
 * -1 on failure. When it cannot be run, the child says so in the name of `who` and ends with 127 or 126. */
pid_t pxd_child_start(const char *who, char **argv, const sigset_t *mask, int out, int err);

#endif
