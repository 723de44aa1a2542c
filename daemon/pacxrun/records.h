/* records.h: what daemons report to pacxrun within the standard output of their site, and the file
 * made of it.
 *
 * A record (record.h) may follow application text that does not end in a newline. One
 * pxd_filter per site cuts records out of the stream, one pxd_stats per job puts the fragments
 * together. Pure: no descriptors except the file that pxd_stats_write makes; no logging.
 */
#ifndef PXD_RECORDS_H
#define PXD_RECORDS_H

#include <stddef.h>

#include "hostfile.h"
#include "record.h"

struct pxd_filter {
	char held[PXD_RECORD]; /* beginning of what may be a record */
	size_t nheld;
	char torn
		[PXD_RECORD]; /* beginning of one that another record came into: a launcher that reads a terminal takes 4,095 bytes at a time */
	size_t ntorn;
	int broken; /* records that were torn apart by other output */
};

struct pxd_filter_sink {
	void (*text)(void *arg, const char *data, size_t n);
	void (*record)(void *arg, const char *record); /* PXD_RECORD bytes */
	void *arg;
};

void pxd_filter_put(struct pxd_filter *f, const char *data, size_t n, const struct pxd_filter_sink *sink);
void pxd_filter_end(struct pxd_filter *f, const struct pxd_filter_sink *sink); /* the stream has ended */

struct pxd_stats;
struct pxd_stats *pxd_stats_new(void);
void pxd_stats_free(struct pxd_stats *s); /* NULL is fine */
/* pxd_stats_put: one record. 0, PX_EPROTO when it is malformed (counted as lost), PX_ENOMEM. */
int pxd_stats_put(struct pxd_stats *s, const char *record);
/* pxd_stats_prove: could `path` be written at the end? Made only beside and instead of a regular file, never over anything else. 0,
 * PX_ENOMEM, PX_EIO with the reason in why. */
int pxd_stats_prove(const char *path, char *why, size_t cap);
/* pxd_stats_write: merge all into the JSON file `path` (through a temporary file beside it). exits[i] is the
 * exit status of site i, -1 = not started here. 0, PX_ENOMEM, PX_EIO with the reason in why. */
int pxd_stats_write(const struct pxd_stats *s, const struct pxd_hosts *h, const int *exits, const char *path,
	char *why, size_t cap);

#endif
