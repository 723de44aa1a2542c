/* win_attr.h: the predefined attributes of our windows, for C (win.c) and Fortran (fortran_attr.c). */
#ifndef PX_WIN_ATTR_H
#define PX_WIN_ATTR_H

#include <stdbool.h>

struct px_win;

/* px_win_predefined: what MPI_Win_get_attr gives for a predefined key value; false: it is none of these. Under px_lock. */
bool px_win_predefined(struct px_win *w, int keyval, void **value);

#endif
