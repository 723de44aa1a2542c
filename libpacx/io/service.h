/* service.h: what one rank does for the others of a file that spans sites: it keeps the shared file pointer and, where the file is
 * at one site, reads and writes for the ranks of the others.
 *
 * Requests and answers are point-to-point messages on the file's communicator, which the application does not know. A request is
 * one message of at most PX_REQUEST_MAX bytes to the server, tag PX_TAG_REQUEST; the answer, of PX_ANSWER_SIZE bytes, has the
 * request's own tag. The bytes of a write follow the request with that tag, those of a read follow the answer. All numbers
 * are little endian.
 *
 *   request   0 op (4)  4 tag (4)  8 epoch (4)  12 n (4)  16 arg (8)  24 bytes (8)  32 n ranges: offset (8), length (8)
 *   answer    0 error, see px_class_index (4)  4 zero (4)  8 value (8)
 *
 *   FETCH   value = shared file pointer of `epoch`, to which arg is added. A request from an epoch that the server has not
 *           entered yet waits for it.
 *   READ    the bytes of the ranges, up to the end of the file; value = how many there are
 *   WRITE   the bytes of the ranges
 *   SIZE    value = size of the file;  SYNC: to the device
 *
 * The server serves whenever it makes progress (px_server). It never waits there, and holds at most PX_SLOTS requests.
 */
#ifndef PX_SERVICE_H
#define PX_SERVICE_H

#include "file.h"

enum px_request_op { PX_REQ_FETCH = 1, PX_REQ_READ, PX_REQ_WRITE, PX_REQ_SIZE, PX_REQ_SYNC };

#define PX_TAG_REQUEST  1
#define PX_REQUEST_SIZE 32
#define PX_RANGES_MAX   4096
#define PX_REQUEST_MAX  (PX_REQUEST_SIZE + 16 * PX_RANGES_MAX)
#define PX_ANSWER_SIZE  16
#define PX_CHUNK        (1 << 20) /* most bytes of one request */
#define PX_SLOTS        4

/* px_service_start: at the server, when the file is open everywhere. MPI error code. */
int px_service_start(struct px_file *f);
/* px_service_stop: when nobody will ask any more. */
void px_service_stop(struct px_file *f);
/* px_service_epoch: at the server, after f->epoch has grown: the shared file pointer is now `at`. */
void px_service_epoch(struct px_file *f, MPI_Offset at);
/* px_service_prune: all ranks are in this epoch: earlier ones are forgotten. */
void px_service_prune(struct px_file *f);

/* px_file_ask: a request without data; *value gets the answer's. MPI error code, not raised. At the server it is answered at once. */
int px_file_ask(struct px_file *f, enum px_request_op op, int64_t arg, int64_t *value);
/* px_request_put: the fixed part of a request; px_file_tag: a tag that no pending request of this rank has. */
void px_request_put(uint8_t out[PX_REQUEST_SIZE], const struct px_file *f, enum px_request_op op, int tag,
	int n, int64_t arg, int64_t bytes);
int px_file_tag(void);
/* px_file_move: one range, at most to the end of the file. Bytes moved, or -1 and errno. */
int64_t px_file_move(int fd, bool write, uint8_t *at, int64_t off, int64_t len);

#endif
