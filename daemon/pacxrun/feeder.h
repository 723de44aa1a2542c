/* feeder.h: standard input for rank 0 where it cannot simply be inherited.
 *
 * Used by launch.c only. From a terminal (a site is in another session, where its launcher would not read
 * it), or into the FIFO that stands in for a launcher without a way to choose the rank. It runs in a thread
 * of its own, because reading a terminal blocks, and lives until the end of the input or of the process.
 */
#ifndef PXD_FEEDER_H
#define PXD_FEEDER_H

struct pxd_feeder {
	int from, to;      /* descriptors; to is closed at the end; from = -1: only the first line */
	const char *fifo;  /* opened here, which blocks until the rank opens it */
	const char *first; /* a line to be written before everything else, NULL = none */
};

/* pxd_feeder_run: thread body; arg is a struct pxd_feeder from malloc, freed here. SIGPIPE and SIGTTIN must be ignored. */
void pxd_feeder_run(void *arg);

#endif
