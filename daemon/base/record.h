/* record.h: what the processes of a site say to pacxrun among the output of their site.
 *
 * A record is PXD_RECORD bytes: "\001pacx SITE:ROLE KIND SEQ/TOTAL FRAGMENT", blanks, '\n', written by one write(). Daemons send
 * reports and how far they are, pump.c how much standard input it has passed on; pacxrun takes them out again (records.h).
 */
#ifndef PXD_RECORD_H
#define PXD_RECORD_H

#include <stddef.h>

#define PXD_RECORD      256
#define PXD_RECORD_MARK "\001pacx "

/* pxd_record_send: write text[0..n) in as many records as it takes. 0 or PX_EIO, PX_EINVAL (name too long). */
int pxd_record_send(int fd, const char *site, const char *role, const char *kind, const char *text, size_t n);
/* pxd_record_value: the text of a record of one fragment, which blanks follow, if it is of this site, role and kind; else NULL. */
const char *pxd_record_value(const char *record, const char *site, const char *role, const char *kind);

#endif
