/* recording_test.c: what was recorded comes back; a file that is full, cut off, damaged or something else is told apart. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "hint.h"
#include "recording.h"
#include "test.h"

static char dir[] = "/tmp/recording_test.XXXXXX";
static char path[128];
static uint8_t payload[PX_SEG_MAX];

static const struct pxd_recording_head about = { .from = 1,
	.to = 3,
	.from_gateway = 2,
	.to_gateway = 0,
	.big = true,
	.from_name = "left",
	.to_name = "far.right_2" };

static uint8_t byte_of(uint32_t msg, size_t i)
{
	return (uint8_t)(msg * 131 + i * 7);
}

static struct px_frame frame_of(uint32_t msg, uint64_t total, uint32_t seg, uint64_t offset)
{
	struct px_hint hint = { .bound = 1, .row = 9, .plane = 40000 };
	uint64_t left = total - offset;

	return (struct px_frame){ .type = seg ? PX_F_SEG : PX_F_MSG,
		.flags = msg % 2 ? PX_FF_COLL : 0,
		.seq = px_hint_put(&hint),
		.elem = 8,
		.total = total,
		.offset = offset,
		.ctx = 0x123456789abcu,
		.src = 5,
		.dst = 70000,
		.tag = -3,
		.msg = msg,
		.seg = seg,
		.body = seg && left > seg ? seg : left };
}

static void put(struct pxd_recorder *r, const struct px_frame *f)
{
	for (size_t i = 0; i < f->body; i++)
		payload[i] = byte_of(f->msg, i);
	pxd_recorder_put(r, f, payload);
}

/* A recording of three messages, the last one in two segments. */
static bool make(uint64_t most)
{
	struct px_frame f[] = { frame_of(1, 100, 0, 0), frame_of(2, PX_INLINE_MAX, 0, 0),
		frame_of(3, PX_SEG_MIN + 10, PX_SEG_MIN, PX_SEG_MIN),
		frame_of(3, PX_SEG_MIN + 10, PX_SEG_MIN, 0) };
	struct px_frame ack = { .type = PX_F_ACK, .body = 5 };
	struct pxd_recorder *r;
	char why[300];

	if (!path[0] && !mkdtemp(dir))
		return false;
	snprintf(path, sizeof path, "%s/sub/left.2-far.right_2.0.pacxrec", dir);
	unlink(path);
	strrchr(path, '/')[0] = '\0';
	r = pxd_recorder_new(path, &about, most, why, sizeof why);
	path[strlen(path)] = '/';
	for (size_t i = 0; r && i < sizeof f / sizeof *f; i++)
		put(r, &f[i]);
	if (r)
		put(r, &ack);
	pxd_recorder_free(r);
	return r != NULL;
}

static int count(void)
{
	struct pxd_recording_head h;
	struct px_frame f;
	uint64_t at;
	char why[300];
	FILE *file = pxd_recording_open(path, &h, why, sizeof why);
	int n = 0, rc;

	if (!file)
		return PX_EIO;
	while ((rc = pxd_recording_next(file, &f, &at, payload)) > 0) {
		n++;
		for (size_t i = 0; i < f.body; i++)
			if (payload[i] != byte_of(f.msg, i))
				n = 1000;
	}
	fclose(file);
	return rc < 0 ? rc : n;
}

/* Write one byte over what is in the file. */
static void spoil(long at, int value)
{
	FILE *f = fopen(path, "r+b");

	if (f) {
		fseek(f, at, SEEK_SET);
		fputc(value, f);
		fclose(f);
	}
}

TEST(what_is_recorded_comes_back)
{
	struct pxd_recording_head h;
	struct px_frame f;
	struct px_hint hint;
	struct stat st;
	uint64_t at, before = 0;
	char why[300] = "";
	FILE *file;

	REQUIRE(make(PXD_RECORDING_BYTES));
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK_INT(count(), 4);
	file = pxd_recording_open(path, &h, why, sizeof why);
	REQUIRE(file);
	CHECK(h.from == 1 && h.to == 3 && h.from_gateway == 2 && h.to_gateway == 0 && h.big && h.when > 0);
	CHECK_STR(h.from_name, "left");
	CHECK_STR(h.to_name, "far.right_2");
	for (uint32_t i = 0; i < 4; i++) {
		struct px_frame want = i < 2   ? frame_of(i + 1, i ? PX_INLINE_MAX : 100, 0, 0)
				       : i < 3 ? frame_of(3, PX_SEG_MIN + 10, PX_SEG_MIN, PX_SEG_MIN)
					       : frame_of(3, PX_SEG_MIN + 10, PX_SEG_MIN, 0);

		REQUIRE_INT(pxd_recording_next(file, &f, &at, payload), 1);
		CHECK(at >= before);
		before = at;
		px_hint_get(f.seq, &hint);
		CHECK(hint.bound == 0 && hint.row == 9 && hint.plane == 40000);
		CHECK(f.type == want.type && f.flags == want.flags && f.elem == 8 && f.total == want.total &&
			f.offset == want.offset && f.ctx == want.ctx && f.src == 5 && f.dst == 70000 &&
			f.tag == -3 && f.msg == want.msg && f.seg == want.seg && f.body == want.body);
	}
	CHECK_INT(pxd_recording_next(file, &f, &at, payload), 0);
	fclose(file);
}

TEST(a_recording_is_not_overwritten)
{
	char why[300] = "", sub[64];

	REQUIRE(make(PXD_RECORDING_BYTES));
	snprintf(sub, sizeof sub, "%s/sub", dir);
	CHECK(!pxd_recorder_new(sub, &about, 1000, why, sizeof why));
	CHECK(strstr(why, "exists already"));
	CHECK_INT(count(), 4);
}

TEST(a_file_that_is_full_gets_no_more)
{
	struct stat st;

	REQUIRE(make(10000));
	CHECK(stat(path, &st) == 0 && st.st_size <= 10000);
	CHECK_INT(count(), 3);
}

TEST(a_file_that_is_cut_off_has_what_is_complete)
{
	for (int i = 0; i < 3; i++) {
		static const int ends[] = { PXD_RECORDING_HEAD + 30, PXD_RECORDING_HEAD + 64 + 99,
			PXD_RECORDING_HEAD + 64 + 100 };

		REQUIRE(make(PXD_RECORDING_BYTES));
		REQUIRE(truncate(path, ends[i]) == 0);
		CHECK_INT(count(), i < 2 ? 0 : 1);
	}
	REQUIRE(truncate(path, PXD_RECORDING_HEAD - 1) == 0);
	CHECK_INT(count(), PX_EIO);
}

TEST(what_no_writer_writes_is_refused)
{
	static const struct {
		long at;
		int value;
	} head[] = { { 0, 'p' }, { 7, '2' }, { 24, 2 }, { 32, 0 }, { 32, '/' }, { 97, '\n' } },
	  record[] = { { 16, 99 }, { 16, 101 }, { 24, 1 }, { 48, 1 }, { 52, 0 }, { 54, 32 }, { 56, 17 } };

	for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
		REQUIRE(make(PXD_RECORDING_BYTES));
		spoil(head[i].at, head[i].value);
		CHECK_INT(count(), PX_EIO);
	}
	for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
		REQUIRE(make(PXD_RECORDING_BYTES));
		spoil(PXD_RECORDING_HEAD + record[i].at, record[i].value);
		CHECK_INT(count(), PX_EPROTO);
	}
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
}
