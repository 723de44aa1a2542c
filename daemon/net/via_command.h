/* via_command.h: a command as the transport to a peer (`dial:`), and its orderly end. Nothing blocks but pxd_via_kill. */
#ifndef PXD_VIA_COMMAND_H
#define PXD_VIA_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

/* pxd_via_command: run `command` (/bin/sh -c) with %h, %p, %% replaced, standard input and output on a socket pair, standard
 * error as ours, in a process group of its own, without our other files and without PACX_KEY. host: letters, digits and . : - _ [ ]
 * only, not beginning with -. *fd (nonblocking, close-on-exec, AF_UNIX) and *pid are the caller's, who closes fd
 * and then calls pxd_via_reap until it is gone. 0, PX_EINVAL, PX_ENOMEM, PX_EIO (errno says why). */
int pxd_via_command(const char *command, const char *host, int port, int *fd, pid_t *pid);
/* pxd_via_reap: reap the command of a closed connection; never blocks, call it now and then until it is true: gone. The
 * command has PXD_VIA_END_MS from the first call to pass on what it holds and to end by itself; then it is ended, group
 * and all. One thread only. */
#define PXD_VIA_END_MS 5000
bool pxd_via_reap(pid_t pid);
/* pxd_via_kill: end and reap it now; may block for the moment that a killed process takes. */
void pxd_via_kill(pid_t pid);

#endif
