/* front.h: the exported functions, and what stands in front of them.
 *
 * Other tools that wrap MPI (profilers, tracers) define MPI_X and call PMPI_X. So libpacx's own work is PMPI_X, and its MPI_X
 * goes through a table: to a tool's MPI_X if one comes after libpacx in the order in which symbols are searched (it was linked; a tool
 * that comes before us, preloaded or within the program, is called without our help), else to libpacx's own. The table
 * starts full of functions that call px_front_begin first: MPI works from the first constructor on, in any order
 * of initialisation, and costs one indirect jump later. Used by bind.c, fortran_attr.c, dlsym_hook.c; never waits.
 */
#ifndef PX_FRONT_H
#define PX_FRONT_H

#include <stdbool.h>
#include <stddef.h>

typedef void px_any_fn(void);

struct px_exported {
	const char *name; /* without MPI_ */
	px_any_fn *own;   /* what PMPI_X is */
	px_any_fn **to;   /* where MPI_X goes */
};

/* Generated into bind.c; in the order of strcmp. */
extern const struct px_exported px_exported[];
extern const size_t px_exported_count;

/* px_front_begin: load the vendor's MPI and find other tools; again and again does no harm. */
void px_front_begin(void);
/* px_front_tool: another tool's function of that full name behind libpacx, or NULL. */
px_any_fn *px_front_tool(const char *name);
/* px_front_own: libpacx's own function for a full name, MPI_X or PMPI_X, or NULL. */
px_any_fn *px_front_own(const char *name);

/* px_fortran_own: the same for the names that fortran_attr.c exports. */
px_any_fn *px_fortran_own(const char *name);

#endif
