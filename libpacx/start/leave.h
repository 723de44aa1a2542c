/* leave.h: a rank that goes without MPI_Finalize.
 *
 * leave.c interposes the ways out of a process that run no exit handler (_exit, quick_exit, exec) and looks at the others when
 * they end with status 0. Launchers notice a status other than 0 and signals; a rank that goes with 0 they take for one that is
 * well, and the other sites would wait for it until `reconnect` has passed.
 */
#ifndef PX_LEAVE_H
#define PX_LEAVE_H

/* px_leave_watch: from now on this process is a rank; called by the thread that initialises MPI. */
void px_leave_watch(void);

#endif
