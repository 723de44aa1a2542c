/* vendor.h: the native MPI through pointers. Nothing else names PMPI.
 *
 * px_n is a table with one pointer per function of the vendor's mpi.h, named without the MPI_
 * prefix: px_n.Send(buf, ...). It is generated (struct px_native in vendor_table.h) from mpicc -E.
 * px_vendor_load fills it from the vendor library itself by dlsym on its own handle, so that our
 * exported MPI_ and PMPI_ symbols are never found. In pacxd, which exports none, it is the same.
 */
#ifndef PX_VENDOR_H
#define PX_VENDOR_H

#include <mpi.h>
#include <stdbool.h>

#include "vendor_table.h" /* generated into build/gen/<vendor>/ */

extern struct px_native px_n;

/* px_vendor_load: idempotent; 0 or PX_EMPI after logging what could not be loaded. */
int px_vendor_load(void);
/* px_vendor_seal: point the vendor library's own calls of public MPI names back at itself
 * (rewrites its JUMP_SLOT and GLOB_DAT entries), so that it never enters libpacx. Call after
 * loading, after native Init, and after anything that loads vendor components (File_open). */
void px_vendor_seal(void);
/* px_vendor_poll: from here (true) to there (false) this thread polls in a loop of its own, which waits by wait.h. Open MPI
 * yields in each call that finds nothing, when cores are scarce; a loop with several such calls per turn would
 * give the core away several times for one look at each source. Calls nest. */
void px_vendor_poll(bool on);
/* px_vendor_name: "Open MPI 4.1.4", from Get_library_version; px_vendor_flavor: enum px_flavor. */
const char *px_vendor_name(void);
int px_vendor_flavor(void);

#ifdef OPEN_MPI
#define PX_VENDOR "openmpi"
#else
#define PX_VENDOR "mpich"
#endif

#endif
