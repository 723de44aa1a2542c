/* err.c: see err.h. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static char speaker[128] = "pacx";
static enum px_level most = PX_LOG_WARN;

const char *px_strerror(int err)
{
	switch (err) {
	case PX_OK:
		return "success";
#define X(name, num, text)                                                                                   \
	case name:                                                                                           \
		return text;
		PX_ERRORS(X)
#undef X
	default:
		return err > 0 ? "success" : "unknown error";
	}
}

void px_log_init(const char *who, enum px_level level)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	const char *env = getenv("PACX_LOG");
	size_t i;

	snprintf(speaker, sizeof speaker, "%s", who);
	most = level;
	if (!env || !*env)
		return;
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(env, names[i]) == 0) {
			most = (enum px_level)i;
			return;
		}
	}
	px_log(PX_LOG_WARN, "PACX_LOG=%s is not known; use error, warn, info or debug", env);
}

void px_log(enum px_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	int saved = errno, head, text;
	size_t len;
	va_list ap;

	if (level > most)
		return;
	head = snprintf(line, sizeof line, "%s: ", speaker);
	va_start(ap, fmt);
	text = vsnprintf(line + head, sizeof line - (size_t)head, fmt, ap);
	va_end(ap);
	len = (size_t)head + (text > 0 ? (size_t)text : 0);
	if (len > sizeof line - 1) {
		len = sizeof line - 1;
		memcpy(line + len - 3, "...", 3); /* the reader shall see that it was cut */
	}
	line[len++] = '\n';
	/* One write, so that lines of several processes do not mix. Nothing can be done when it fails. */
	if (write(STDERR_FILENO, line, len) < 0)
		errno = 0;
	errno = saved;
}
