/* descend.h: the processes below one, found in /proc.
 *
 * Used by pacxrun and its guards to end what is left of a site, and by a daemon to see its neighbours. Signals only processes that descend
 * from the given one, never the given one itself and never by name. Keeps nothing.
 */
#ifndef PXD_DESCEND_H
#define PXD_DESCEND_H

#include <stdbool.h>
#include <sys/types.h>

enum pxd_descend {
	PXD_DESCEND_ALL,   /* all descendants */
	PXD_DESCEND_GROUP, /* those in the process group of the root: a launcher, not its ranks */
};

/* pxd_descend_signal: how many processes were signalled. */
int pxd_descend_signal(pid_t root, int sig, enum pxd_descend which);

/* pxd_descend_orphans: end the children of root that are not among the nkeep in keep, and all below
 * them; sig 0 only counts. Zombies among them are collected when root is the caller. Returns how many
 * still live. */
int pxd_descend_orphans(pid_t root, const pid_t *keep, int nkeep, int sig);

/* pxd_descend_pass: give a signal to those below root that catch it, and not to what is below them: a launcher hands it on to its
 * ranks itself. Who does not catch it is left alone, such as a shell that waits for the launcher. How many have got it. */
int pxd_descend_pass(pid_t root, int sig);

/* pxd_descend_children: how many children of `parent` are alive. */
int pxd_descend_children(pid_t parent);

#endif
