/* fuzz/world.c: an accepted world map is consistent and survives another trip. */
#include <string.h>

#include "err.h"
#include "fuzz.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct px_world *w = NULL, *v = NULL;
	uint8_t *again;
	long n;
	int rc = px_world_get(in, len, &w);

	if (rc < 0) {
		MUST(!w && (rc == PX_ESHORT || rc == PX_EPROTO || rc == PX_EVERSION));
		return 0;
	}
	MUST(w->nsites >= 1 && w->self >= 0 && w->self < w->nsites && w->base[w->nsites] == w->nranks);
	for (int i = 0; i < w->nsites; i++) {
		MUST(px_world_site(w, w->base[i]) == i);
		MUST(px_world_site(w, w->base[i + 1] - 1) == i);
		MUST(w->group[i] <= i && w->group[w->group[i]] == w->group[i]);
	}
	n = px_world_put(w, NULL, 0);
	MUST(n > 0 && (size_t)n <= len);
	again = malloc((size_t)n);
	MUST(again && px_world_put(w, again, (size_t)n) == n);
	MUST(px_world_get(again, (size_t)n, &v) == 0);
	MUST(v->nranks == w->nranks && v->self == w->self);
	free(again);
	px_world_free(v);
	px_world_free(w);
	return 0;
}
