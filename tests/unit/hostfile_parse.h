/* hostfile_parse.h: a hostfile from a text, for the tests of hostfiles. */
#ifndef HOSTFILE_PARSE_H
#define HOSTFILE_PARSE_H

#include <string.h>

#include "base/err.h"
#include "hostfile.h"
#include "test.h"

static char why[PXD_WHY];

static inline struct pxd_hosts *parse_n(const char *text, size_t len)
{
	struct pxd_hosts *h = NULL;
	int rc;

	why[0] = '\0';
	rc = pxd_hosts_parse(text, len, "F", &h, why, sizeof why);
	CHECK((rc == 0) == (h != NULL));
	CHECK(rc == 0 || rc == PX_ECONF);
	return h;
}

static inline struct pxd_hosts *parse(const char *text)
{
	return parse_n(text, strlen(text));
}

#endif
