/* fuzz/frame.c: an accepted header is written back bit by bit, and its sizes are within the limits. */
#include <string.h>

#include "err.h"
#include "frame.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t again[PX_FRAME_SIZE];
	struct px_frame f;
	int rc = px_frame_get(in, len, &f);

	if (rc < 0) {
		MUST(rc == PX_ESHORT ? len < PX_FRAME_SIZE : rc == PX_EPROTO || rc == PX_EVERSION);
		return 0;
	}
	MUST(rc == PX_FRAME_SIZE && len >= PX_FRAME_SIZE);
	MUST(f.body <= PX_CONTROL_MAX && f.body <= PX_SEG_MAX);
	MUST(f.type != PX_F_SEG || (f.offset < f.total && f.body <= f.total - f.offset));
	px_frame_put(&f, again);
	MUST(memcmp(again, in, PX_FRAME_SIZE) == 0);
	px_frame_check_link(&f, 0);
	return 0;
}
