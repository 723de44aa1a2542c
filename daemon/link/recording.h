/* recording.h: the payload that the ranks of a site send over a path, in a file, to try compression on: `pacxrun --record`.
 *
 * Written by role out, which owns a recorder for each path; read by pacxctl probe and by the benchmarks. It holds what the
 * application sends, so nobody but its owner may read it (0600), and a file that exists is not overwritten. Bounded: what
 * comes after the file is full is left out. No libuv; the reader is a parser that believes nothing.
 *
 * The file: a head of HEAD bytes, then records, each of RECORD bytes and its payload. Little endian, but for the payload, which is as the
 * ranks have it in memory, packed. A record is the payload of a message that went in one piece, or a segment of one.
 *
 *     head    0  text  PACXREC1                     record   0  u64  ns since the file was made
 *             8  u64   when: ns since 1970                   8  u64  context of the communicator
 *            16  u16   from: site                           16  u64  total: bytes of the message
 *            18  u16   to: site                             24  u64  offset of this segment in it
 *            20  u16   gateway of from                      32  u32  source: global rank
 *            22  u16   gateway of to                        36  u32  destination
 *            24  u8    1: numbers are big endian            40  i32  tag
 *            25        0                                    44  u32  message: a number counted by the source
 *            32  text  name of from, 64 bytes               48  u32  seg: length of all segments but the last; 0 = it has none
 *            96  text  name of to, 64 bytes                 52  u32  bytes of payload that follow
 *                                                           56  u8   elem: size of its elements (as in the frame that carries it), 0 = not known
 *                                                           57  u8   1: of a collective operation
 *                                                           58  u16  numbers in a row, 0 = not known
 *                                                           60  u16  rows in a plane, 0 = not known
 *                                                           62  u16  0
 */
#ifndef PXD_RECORDING_H
#define PXD_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "frame.h"
#include "hello.h"

#define PXD_RECORDING_HEAD   160
#define PXD_RECORDING_RECORD 64
#define PXD_RECORDING_BYTES  (64u << 20) /* at most in a file, unless PACX_RECORD_SIZE says something else */

struct pxd_recording_head {
	uint64_t when;
	uint16_t from, to, from_gateway, to_gateway;
	bool big;
	char from_name[PX_NAME_MAX + 1], to_name[PX_NAME_MAX + 1];
};

/* Writing. */
struct pxd_recorder;

/* pxd_recorder_new: into a new file in dir, which is made if need be: FROM-TO.pacxrec, with the gateways' numbers if they are not 0. most:
 * bytes of the file. NULL with the reason in why. */
struct pxd_recorder *pxd_recorder_new(
	const char *dir, const struct pxd_recording_head *h, uint64_t most, char *why, size_t cap);
/* pxd_recorder_put: the plain payload of frame f, whose seq is still its hint. Nothing, if r is NULL, or f no MSG or SEG. */
void pxd_recorder_put(struct pxd_recorder *r, const struct px_frame *f, const uint8_t *payload);
void pxd_recorder_free(struct pxd_recorder *r); /* the file is complete. NULL is fine */

/* Reading. */

/* pxd_recording_open: the head of a recording. NULL with the reason in why. */
FILE *pxd_recording_open(const char *path, struct pxd_recording_head *h, char *why, size_t cap);
/* pxd_recording_next: the next record as the frame that it was, f->body bytes of payload[PX_SEG_MAX]; *at: its time. 1; 0 at the end, also
 * where the writer was stopped in a record; PX_EPROTO: no recording. */
int pxd_recording_next(FILE *file, struct px_frame *f, uint64_t *at, uint8_t *payload);

#endif
