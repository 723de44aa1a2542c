/* stats.h: what a daemon tells pacxrun at the end: records of 256 bytes on standard output.
 *
 * One report = one JSON text, sent as records (record.h). Nothing else may be written to standard output by a daemon.
 */
#ifndef PXD_STATS_H
#define PXD_STATS_H

#include <stddef.h>

#include "buf.h"

struct pxd_node;
struct pxd_path_view;
struct pxd_counters;

/* pxd_stats_add: append formatted text (less than 512 bytes, else PX_EINVAL) to b. 0 or PX_ENOMEM. */
int pxd_stats_add(struct px_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* pxd_stats_quote: append s as a JSON string. */
int pxd_stats_quote(struct px_buf *b, const char *s);
/* pxd_stats_ends: {"from":...,"to":...: how a link begins. */
void pxd_stats_ends(struct px_buf *b, const struct pxd_node *d, int from, int to);
/* pxd_stats_codecs: ,"codec":{...} of the codecs that were used. pxd_stats_link: a link as pacxctl shows it. */
void pxd_stats_codecs(struct px_buf *b, const struct pxd_counters *c);
void pxd_stats_link(struct px_buf *b, const struct pxd_node *d, int from, int to,
	const struct pxd_path_view *v, const struct pxd_counters *c, double rate);

/* pxd_stats_report: send the statistics of this daemon to standard output, and free them. */
void pxd_stats_report(const struct pxd_node *d, const char *role, struct px_buf *b);

#endif
