/* stats.h: what a daemon tells pacxrun at the end: records of 256 bytes on standard output.
 *
 * One report = one JSON text, cut into records "\001pacx SITE:ROLE KIND SEQ/TOTAL FRAGMENT", padded with
 * blanks, the last byte a newline (records.h reads them). Nothing else may be written to standard output by
 * a daemon.
 */
#ifndef PXD_STATS_H
#define PXD_STATS_H

#include <stddef.h>

#include "buf.h"

/* pxd_stats_add: append formatted text (less than 512 bytes, else PX_EINVAL) to b. 0 or PX_ENOMEM. */
int pxd_stats_add(struct px_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* pxd_stats_quote: append s as a JSON string. */
int pxd_stats_quote(struct px_buf *b, const char *s);
/* pxd_stats_send: write the report json[0..n). 0 or PX_EIO, PX_EINVAL (name too long). */
int pxd_stats_send(int fd, const char *site, const char *role, const char *kind, const char *json, size_t n);

#endif
