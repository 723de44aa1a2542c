/* rundir.h: the directory of the daemons' status sockets, which pacxd makes and pacxctl reads.
 *
 * ${PACX_RUN_DIR}, else ${XDG_RUNTIME_DIR:-/tmp}/pacx-UID; it must be a directory of ours with mode 0700. A daemon that is started
 * through ssh often has no XDG_RUNTIME_DIR while the user's shell has, so the reader looks at all places. No libuv, no
 * output.
 */
#ifndef PXD_RUNDIR_H
#define PXD_RUNDIR_H

#include <stddef.h>

#define PXD_RUNDIR_MAX    4096
#define PXD_RUNDIR_PLACES 4

/* pxd_rundir_make: the directory for a writer, made if need be. 0, or PX_ECONF, PX_EIO with the reason in why. */
int pxd_rundir_make(char *dir, size_t cap, char *why, size_t whycap);
/* pxd_rundir_own: the same for a directory that the caller names. */
int pxd_rundir_own(const char *dir, char *why, size_t whycap);
/* pxd_rundir_place: the i-th place where a reader looks, i < PXD_RUNDIR_PLACES. 0, PX_EINVAL when there is none,
 * PX_ECONF when it is there but not ours (why says so). */
int pxd_rundir_place(int i, char *dir, size_t cap, char *why, size_t whycap);
/* pxd_rundir_socket: the path of the socket `name` in dir, in at most cap bytes (those of sun_path): a name that is too long is cut and
 * gets a hash of the whole. 0 or PX_EINVAL: even that is too long. */
int pxd_rundir_socket(const char *dir, const char *name, char *path, size_t cap);

/* pxd_rundir_sweep: remove the sockets in dir at which nobody listens: their daemons were killed. job: only those of this job (its id),
 * of any age, which nobody starts any more; NULL: of all jobs, but not the youngest, whose daemons may be starting. */
void pxd_rundir_sweep(const char *dir, const char *job);
/* pxd_rundir_sweep_all: in all places. */
void pxd_rundir_sweep_all(const char *job);

#endif
