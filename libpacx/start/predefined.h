/* predefined.h: see predefined.c. For init.c. */
#ifndef PX_PREDEFINED_H
#define PX_PREDEFINED_H

/* px_predefined_start: learn the values, collective over the application's MPI_COMM_WORLD. MPI error code, raised. */
int px_predefined_start(void);
/* px_predefined_join: the same in a process that joins the world later: but for MPI_TAG_UB they are the vendor's. */
int px_predefined_join(void);

#endif
