/* bell.h: who naps is woken by who sends to it.
 *
 * The native MPIs are polled, and waiters that find nothing nap (wait.h). Processes of a site that share a node also share a page of
 * memory with a bell for each: who has sent to another rings, and the other's nap is over. A bell carries nothing: naps
 * end by themselves, too, so a ring that is lost costs time only, and where there are no bells (the page cannot be made, another node)
 * everything is as before.
 *
 * An application rank sleeps on its bell (a futex). A daemon sleeps in ppoll, for TCP, and its bell is a signal, SIGURG, which only
 * that call lets through. Nobody is rung who does not sleep: then a ring is one addition to memory.
 * Thread-safe but for px_bell_join and px_bell_drop.
 */
#ifndef PX_BELL_H
#define PX_BELL_H

#include <stdbool.h>
#include <stdint.h>

#define PX_BELL_NAME 64

/* px_bell_make: make the page for n processes; where it is, in name. 0 or PX_EIO. */
int px_bell_make(char name[PX_BELL_NAME], int n);
/* px_bell_join: open it. Who it is for: the process with number who[i], of 0 to size - 1, has the i-th bell, i < n; `mine` is ours.
 * by_signal: as a daemon; SIGURG is blocked already. 0, PX_EIO, PX_ENOMEM. */
int px_bell_join(const char *name, int n, const int *who, int size, int mine, bool by_signal);
/* px_bell_unlink: the name goes, when all have joined or failed to. */
void px_bell_unlink(const char *name);
/* px_bell_all: has every process of 0 to size - 1 a bell? */
bool px_bell_all(void);
/* px_bell_drop: ring and hear no more. */
void px_bell_drop(void);

/* px_bell_ring: something was sent to process `to`. */
void px_bell_ring(int to);
/* px_bell_owe: ring `to`, but when this thread waits next or px_bell_pay is called: a native call is about to send to it. At most PX_BELL_OWED;
 * the naps of others end by themselves. */
#define PX_BELL_OWED 64
void px_bell_owe(int to);
void px_bell_pay(void);

/* px_bell_heard: another number each time that ours has been rung. Read before the poll that finds nothing, and given to who sleeps behind it. */
uint32_t px_bell_heard(void);
/* px_bell_sleep: nanosleep for ns, but until ours has been rung since `heard`. */
void px_bell_sleep(uint32_t heard, uint64_t ns);
/* px_bell_listen: from now on SIGURG comes when ours is rung. false: it has been rung since `heard`, do not sleep. */
bool px_bell_listen(uint32_t heard);

#endif
