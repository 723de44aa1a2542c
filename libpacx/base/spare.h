/* spare.h: long blocks of memory that one operation has used are kept for the next ones. What comes fresh from the kernel costs a page fault for each
 * 4 KiB, and glibc gives back what is freed above a limit: of MPI_Scan of 1 MiB at 8+8 ranks on two cores that was 550 of 600 ms.
 *
 * Shorter blocks are malloc's; those of many MiB are in huge pages where the system has them. Owns what it keeps, PX_SPARE_MOST bytes at most; what nobody has wanted while PX_SPARE_TURNS blocks,
 * long or short, were given goes back.
 * Not thread safe: under the library's lock.
 */
#ifndef PX_SPARE_H
#define PX_SPARE_H

#include <stdbool.h>
#include <stddef.h>

#define PX_SPARE_LEAST (64u << 10)
#define PX_SPARE_MOST  (32u << 20)
#define PX_SPARE_TURNS 1024

/* px_spare_take: memory, aligned as malloc's; *used: not zeroed. NULL: there is none. */
void *px_spare_take(size_t bytes, bool *used);
/* px_spare_give: block (NULL: nothing) is used no more; bytes as it was taken. */
void px_spare_give(void *block, size_t bytes);
/* px_spare_close: nothing is kept any more. px_spare_kept: bytes that are. */
void px_spare_close(void);
size_t px_spare_kept(void);

#endif
