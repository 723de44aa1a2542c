/* elf_flavor.h: which MPI a program was linked with, and where that is, found without running it.
 *
 * Reads DT_NEEDED of the program and, recursively, of its shared libraries (as ldd would list them, but
 * nothing of the program is executed), and looks for the MPI library where the dynamic linker would: RPATH, LD_LIBRARY_PATH, RUNPATH,
 * the system's. Called by pacxrun. Owns nothing, logs nothing.
 */
#ifndef PXD_ELF_FLAVOR_H
#define PXD_ELF_FLAVOR_H

#include <limits.h>
#include <stdbool.h>

#include "wire/hello.h"

struct pxd_elf_mpi {
	enum px_flavor flavor;  /* PX_MPI_OTHER: no ELF program of this machine, or it uses no MPI library */
	bool abi;               /* it uses the library of the standard ABI, here that of this vendor */
	char library[PATH_MAX]; /* the MPI library that it would load, "" = none was found */
};

/* libpath: the LD_LIBRARY_PATH that the program will have, NULL = none. */
void pxd_elf_mpi(const char *path, const char *libpath, struct pxd_elf_mpi *out);

/* pxd_path_find: the file that execvp(name) would run, into buf. 0, or PX_EINVAL when there is none. */
int pxd_path_find(const char *name, char *buf, size_t cap);

#endif
