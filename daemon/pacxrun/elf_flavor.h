/* elf_flavor.h: which MPI a program was linked with, found without running it.
 *
 * Reads DT_NEEDED of the program and, recursively, of its shared libraries (as ldd would list them, but
 * nothing of the program is executed). Called by pacxrun for `mpi: auto`. Owns nothing, logs nothing.
 */
#ifndef PXD_ELF_FLAVOR_H
#define PXD_ELF_FLAVOR_H

#include "wire/hello.h"

/* pxd_flavor_of: PX_MPI_OTHER when the file is no ELF program of this machine or uses no MPI library. */
enum px_flavor pxd_flavor_of(const char *path);

/* pxd_path_find: the file that execvp(name) would run, into buf. 0, or PX_EINVAL when there is none. */
int pxd_path_find(const char *name, char *buf, size_t cap);

#endif
