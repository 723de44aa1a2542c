/* vendor.h: the native MPI through pointers. Nothing else names PMPI.
 *
 * px_n is a table with one pointer per function of the vendor's mpi.h, named without the MPI_
 * prefix: px_n.Send(buf, ...). It is generated (struct px_native in vendor_table.h) from mpicc -E.
 * px_vendor_load fills it from the vendor library itself by dlsym on its own handle, so that our
 * exported MPI_ and PMPI_ symbols are never found; until then each pointer leads to a function that calls it. So px_n
 * is good at any time, from the first constructor to the last destructor. In pacxd it is the same.
 */
#ifndef PX_VENDOR_H
#define PX_VENDOR_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "hello.h"
#include "vendor_table.h" /* generated into build/gen/<vendor>/ */

extern struct px_native px_n;

/* px_vendor_load: idempotent; 0 or PX_EMPI after logging what could not be loaded. */
int px_vendor_load(void);
/* px_vendor_first: px_vendor_load, or abort; what the functions with which px_n starts call. */
void px_vendor_first(void);
/* px_vendor_open: load the MPI library in a program that has none yet, which is pacxd of MPICH's kind: the file PACX_LIBMPI of the
 * environment, else that of the MPI which it was built with, else another of the same ABI. 0 or PX_EMPI after saying why. */
int px_vendor_open(void);
/* px_vendor_lacking: a function that the loaded library has not got was called: raises MPI_ERR_UNSUPPORTED_OPERATION by its name. */
int px_vendor_lacking(const char *name);
/* px_vendor_fits: is the loaded library one for which this was built? If not, why is a sentence, with the command that builds the
 * right one. Before and after MPI_Init. */
bool px_vendor_fits(char *why, size_t cap);
/* px_vendor_find: dlsym itself, not the one that libpacx puts in front of it for the program. */
void *px_vendor_find(void *handle, const char *name);
/* px_vendor_symbol: the vendor library's own function of that full name (MPI_X or PMPI_X), or NULL. */
void *px_vendor_symbol(const char *name);
/* px_vendor_owns: is an object of that path part of an MPI library of any vendor? px_vendor_front: is it a front end of one, for
 * Fortran, C++ or Java, whose calls are the application's? */
bool px_vendor_owns(const char *path);
bool px_vendor_front(const char *path);
/* px_vendor_seal: point the vendor library's own calls of public MPI names back at itself
 * (rewrites its JUMP_SLOT and GLOB_DAT entries), so that it never enters libpacx. Call after
 * loading, after native Init, and after anything that loads vendor components (File_open). */
void px_vendor_seal(void);
/* px_vendor_poll: from here (true) to there (false) this thread polls in a loop of its own, which waits by wait.h. Open MPI
 * yields in each call that finds nothing, when cores are scarce; a loop with several such calls per turn would
 * give the core away several times for one look at each source. Calls nest. */
void px_vendor_poll(bool on);
/* px_unweighted: MPI_UNWEIGHTED, which is a variable of MPICH's library. */
const void *px_unweighted(void);
/* px_vendor_name: "Open MPI 4.1.4", from Get_library_version; px_vendor_flavor: enum px_flavor. */
const char *px_vendor_name(void);
int px_vendor_flavor(void);

/* PX_OVER_OPENMPI: is the loaded library Open MPI's, and not MPICH's or a relative's? What is built for the standard ABI of MPI-5 (PX_ABI,
 * from vendor_table.h) finds out; it runs over either. */
#ifdef OPEN_MPI
#define PX_VENDOR       "openmpi"
#define PX_OVER_OPENMPI true
#elif defined(PX_ABI)
#define PX_VENDOR       "abi"
#define PX_OVER_OPENMPI (px_vendor_flavor() == PX_MPI_OPENMPI)
#else
#define PX_VENDOR       "mpich"
#define PX_OVER_OPENMPI false
#endif

#endif
