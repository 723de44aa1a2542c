/* words.h: the size of the numbers that a program has packed into bytes.
 *
 * MPI_BYTE and MPI_PACKED say nothing of what they carry, often numbers; and structures of several sizes may be nearly all numbers of one. To shuffle or
 * predict them, their size has to be guessed: a wrong guess costs bytes, never data, as each frame says what was done with it.
 * Pure: memory in, a size out.
 */
#ifndef PXD_WORDS_H
#define PXD_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pxd_words_guess: in[0..n) looks like numbers of that many bytes, 8 or 4, of a machine that is big-endian or not; 0: like none. */
unsigned pxd_words_guess(const uint8_t *in, size_t n, bool big);

#endif
