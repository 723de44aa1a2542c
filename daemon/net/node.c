/* node.c: see node.h. */
#include "node.h"

#include <stdarg.h>
#include <stdio.h>

#include "err.h"

void pxd_fail(struct pxd_node *d, int code, const char *fmt, ...)
{
	char text[900];
	va_list ap;

	if (d->failed)
		return; /* the first cause is the cause */
	d->failed = true;
	d->code = code;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(d->why, sizeof d->why, "%.299s", text);
	px_log(PX_LOG_ERROR, "%s", text);
}
