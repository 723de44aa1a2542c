/* fuzz/hostfile.c: any text is either refused with a reason, or its plan reads back as the same job. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "hostfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct pxd_hosts *h = NULL, *again = NULL;
	char why[PXD_WHY] = "";
	char *plan, *second;
	int rc = pxd_hosts_parse((const char *)in, len, "F", &h, why, sizeof why);

	if (rc < 0) {
		MUST(rc == PX_ECONF && !h && why[0] == 'F');
		return 0;
	}
	MUST(h && h->nsites > 0 && h->nranks >= h->nsites);
	plan = pxd_hosts_plan(h);
	MUST(plan && !strchr(plan, '\n'));
	rc = pxd_hosts_parse(plan, strlen(plan), "plan", &again, why, sizeof why);
	/* In the plan port 0 stands for itself; a job with a manual site has none. */
	MUST(rc == 0 && again->nsites == h->nsites && again->nranks == h->nranks);
	MUST(strcmp(again->job_id, h->job_id) == 0 && strcmp(again->job, h->job) == 0);
	for (int a = 0; a < h->nsites && a < 8; a++)
		for (int b = 0; b < h->nsites && b < 8; b++)
			MUST(a == b || pxd_hosts_dials(h, a, a, b) || pxd_hosts_dials(h, b, a, b));
	second = pxd_hosts_plan(again);
	MUST(second && strcmp(second, plan) == 0);
	free(second);
	free(plan);
	pxd_hosts_free(h);
	pxd_hosts_free(again);
	return 0;
}
