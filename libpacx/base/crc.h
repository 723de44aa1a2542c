/* crc.h: CRC32C (Castagnoli), in pieces: crc = px_crc32c(crc, data, n), beginning with 0. */
#ifndef PX_CRC_H
#define PX_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t px_crc32c(uint32_t crc, const void *data, size_t n);

#endif
