/* pump.h: standard input of global rank 0, taken from the launcher as it comes and acknowledged to pacxrun.
 *
 * Used by pacxrank only. A process of its own between the launcher's pipe and the rank's: it has no descriptor but these two and
 * standard error, is nobody's child, and ends with the input; when the rank reads no more it says so, and takes what is under
 * way, since hydra ends a job whose standard input it cannot get rid of. At most a read's worth of bytes is with it; whoever feeds it must not send more than a pipe holds beyond what it has said to have passed on (feeder.h).
 */
#ifndef PXD_PUMP_H
#define PXD_PUMP_H

/* pxd_pump_start: 0: descriptor 0 is now the pump's pipe; -1 with errno: nothing has changed. */
int pxd_pump_start(const char *site);

#endif
