/* accuracy.c: see accuracy.h. */
#include "accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "comm.h"
#include "comm_find.h"
#include "err.h"
#include "vendor.h"

static const char *rules;

/* The rule at *at, which moves on to the next one; false: it is none. A name may hold "=", a bound not. */
static bool rule_next(const char **at, size_t *name, double *bound)
{
	const char *end = *at + strcspn(*at, ","), *eq = end;
	char *stop;

	while (eq > *at && *eq != '=')
		eq--;
	if (eq == *at)
		return false;
	*name = (size_t)(eq - *at);
	*bound = strtod(eq + 1, &stop);
	*at = *end ? end + 1 : end;
	return stop == end && stop > eq + 1 && isfinite(*bound);
}

void px_accuracy_open(const char *text)
{
	const char *at = text ? text : "";
	double bound;
	size_t name;

	for (rules = text; *at;) {
		if (!rule_next(&at, &name, &bound)) {
			px_log(PX_LOG_ERROR,
				"PACX_ACCURACY=%s is not NAME=BOUND[,NAME=BOUND...]; every message stays "
				"exact",
				text);
			rules = NULL;
			return;
		}
	}
}

bool px_accuracy_named(const char *name, double *bound)
{
	size_t n = strlen(name), len;
	bool found = false;
	double b;

	for (const char *at = rules ? rules : "", *from = at; *at; from = at) {
		if (rule_next(&at, &len, &b) && len == n && memcmp(from, name, n) == 0) {
			*bound = b;
			found = true;
		}
	}
	return found;
}

int px_Comm_set_name(MPI_Comm comm, const char *name)
{
	int rc = px_n.Comm_set_name(comm, name);
	struct px_comm *c = rc == MPI_SUCCESS ? px_comm_find(comm) : NULL;
	double bound;

	if (c && px_accuracy_named(name, &bound))
		c->accuracy = bound;
	return rc;
}
