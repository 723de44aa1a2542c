/* Statistics records: cut out of any stream cut up in any way, put together in any order, written as JSON. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#include "../../daemon/base/json.c"
#include "../../daemon/pacxrun/records.c"

static char text[65536];
static size_t ntext;
static int nrecords;
static struct pxd_stats *stats;

static void text_put(void *arg, const char *data, size_t n)
{
	(void)arg;
	memcpy(text + ntext, data, n);
	ntext += n;
	text[ntext] = '\0';
}

static void record_put(void *arg, const char *record)
{
	(void)arg;
	nrecords++;
	if (stats)
		pxd_stats_put(stats, record);
}

static const struct pxd_filter_sink sink = { text_put, record_put, NULL };

static void record_make(char out[PXD_RECORD], const char *body)
{
	memset(out, ' ', PXD_RECORD);
	memcpy(out, PXD_RECORD_MARK, 6);
	memcpy(out + 6, body, strlen(body));
	out[PXD_RECORD - 1] = '\n';
}

static void filter_start(struct pxd_filter *f)
{
	memset(f, 0, sizeof *f);
	ntext = 0;
	text[0] = '\0';
	nrecords = 0;
}

TEST(records_are_cut_out_whatever_the_chunks)
{
	static const char before[] = "step 1\001\001pac\001pacx", between[] = "no newline",
			  after[] = "end\001pa";
	char stream[2048];
	size_t n = 0;

	memcpy(stream, before, sizeof before - 1);
	n = sizeof before - 1;
	record_make(stream + n, "left:out stats 1/1 {}");
	n += PXD_RECORD;
	memcpy(stream + n, between, sizeof between - 1);
	n += sizeof between - 1;
	for (int i = 0; i < 2; i++, n += PXD_RECORD)
		record_make(stream + n, "left:in stats 1/1 {}");
	memcpy(stream + n, after, sizeof after - 1);
	n += sizeof after - 1;
	for (size_t chunk = 1; chunk <= n; chunk++) {
		struct pxd_filter f;

		filter_start(&f);
		for (size_t at = 0; at < n; at += chunk)
			pxd_filter_put(&f, stream + at, n - at < chunk ? n - at : chunk, &sink);
		pxd_filter_end(&f, &sink);
		CHECK_INT(nrecords, 3);
		CHECK_STR(text, "step 1\001\001pac\001pacxno newlineend\001pa");
		CHECK_INT(f.broken, 0);
	}
}

TEST(torn_record_loses_no_text_and_no_record_behind_it)
{
	char stream[1024];
	struct pxd_filter f;
	size_t n = 100;

	filter_start(&f);
	record_make(stream, "left:out stats 1/1 {}");
	memcpy(stream + n, "HELLO\n", 6); /* the rest of the record never comes */
	n += 6;
	record_make(stream + n, "left:in stats 1/1 {}");
	n += PXD_RECORD;
	memcpy(stream + n, "BYE\n", 4);
	n += 4;
	pxd_filter_put(&f, stream, n, &sink);
	pxd_filter_end(&f, &sink);
	CHECK_INT(f.broken, 1);
	CHECK_INT(nrecords, 1);
	CHECK(strstr(text, "HELLO\n") != NULL);
	CHECK(strstr(text, "BYE\n") != NULL);
}

TEST(a_record_that_others_came_into_is_put_together)
{
	for (size_t cut = 6; cut < PXD_RECORD; cut += cut < 250 ? 61 : 1) {
		for (size_t chunk = 1; chunk <= 4 * PXD_RECORD; chunk += 3) {
			char stream[4 * PXD_RECORD + 8], one[PXD_RECORD];
			struct pxd_filter f;
			size_t n;

			filter_start(&f);
			record_make(one, "left:out stats 16/19 {}");
			memcpy(stream, one, cut);
			n = cut;
			for (int i = 0; i < 2; i++, n += PXD_RECORD)
				record_make(stream + n, "left:in stats 1/1 {}");
			memcpy(stream + n, one + cut, PXD_RECORD - cut);
			n += PXD_RECORD - cut;
			record_make(stream + n, "left:out stats 17/19 {}");
			n += PXD_RECORD;
			for (size_t at = 0; at < n; at += chunk)
				pxd_filter_put(&f, stream + at, n - at < chunk ? n - at : chunk, &sink);
			pxd_filter_end(&f, &sink);
			CHECK_INT(nrecords, 4);
			CHECK_INT(f.broken, 0);
			CHECK_STR(text, "");
		}
	}
}

static char *stats_file(const int *exits)
{
	static const char hosts[] =
		"job: j\nsites: [{name: left, ranks: 2, mpi: mpich}, {name: right, ranks: 1, mpi: openmpi}]";
	static char out[8192];
	char path[] = "/tmp/records-test-XXXXXX", why[PXD_WHY];
	struct pxd_hosts *h = NULL;
	int fd = mkstemp(path);
	FILE *f;

	CHECK_INT(pxd_hosts_parse(hosts, strlen(hosts), "F", &h, why, sizeof why), 0);
	strcpy(h->job_id, "id");
	CHECK_INT(pxd_stats_write(stats, h, exits, path, why, sizeof why), 0);
	close(fd);
	f = fopen(path, "r");
	out[fread(out, 1, sizeof out - 1, f)] = '\0';
	fclose(f);
	unlink(path);
	pxd_hosts_free(h);
	CHECK(pxd_json_valid(out, strlen(out)));
	return out;
}

TEST(fragments_come_together_in_any_order)
{
	static const char *const bodies[] = {
		"right:out stats 2/2 :\"left\",\"messages\":3}],\"collectives\":{\"bcast\":1}}",
		"left:in stats 1/1 {\"links_in\":[]}",
		"left:out stats 3/3 :7}],\"collectives\":{}}",
		"right:in stats 1/1 {\"links_in\":[{\"from\":\"left\"}]}",
		"left:out stats 1/3 {\"links\":[{\"from\":\"le",
		"right:out stats 1/2 {\"links\":[{\"from\":\"right\",\"to\"",
		"left:out stats 2/3 ft\",\"to\":\"right\",\"messages\"",
	};
	const int exits[] = { 0, 0 };

	stats = pxd_stats_new();
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		char record[PXD_RECORD];

		record_make(record, bodies[i]);
		CHECK_INT(pxd_stats_put(stats, record), 0);
	}
	CHECK_STR(stats_file(exits),
		"{\"job\": \"j\",\n\"job_id\": \"id\",\n\"sites\": [{\"name\": \"left\", \"ranks\": 2, "
		"\"mpi\": \"mpich\", "
		"\"exit\": 0}, {\"name\": \"right\", \"ranks\": 1, \"mpi\": \"openmpi\", \"exit\": 0}],\n"
		"\"links\": [{\"from\":\"right\",\"to\":\"left\",\"messages\":3}, "
		"{\"from\":\"left\",\"to\":\"right\",\"messages\":7}],\n\"links_in\": "
		"[{\"from\":\"left\"}],\n"
		"\"collectives\": {\"right\": {\"bcast\":1}, \"left\": {}}}\n");
	pxd_stats_free(stats);
	stats = NULL;
}

TEST(what_is_missing_is_said)
{
	const int exits[] = { 9, -1 };
	char record[PXD_RECORD];

	stats = pxd_stats_new();
	record_make(record, "left:out stats 2/3 {}");
	CHECK_INT(pxd_stats_put(stats, record), 0);
	CHECK_INT(pxd_stats_put(stats, record), PX_EPROTO); /* twice */
	record_make(record, "left:out stats 4/3 {}");
	CHECK_INT(pxd_stats_put(stats, record), PX_EPROTO);
	record_make(record, "left:out stats x");
	CHECK_INT(pxd_stats_put(stats, record), PX_EPROTO);
	CHECK(strstr(stats_file(exits),
		      "\"missing\": [{\"from\":\"left:out\",\"kind\":\"stats\",\"lost\":2,\"of\":3}, "
		      "{\"from\":\"left:in\",\"kind\":\"stats\",\"lost\":1,\"of\":1}],\n"
		      "\"broken_records\": 3}") != NULL);
	CHECK(strstr(stats_file(exits), "\"exit\": 9}") && strstr(stats_file(exits), "\"exit\": null}"));
	pxd_stats_free(stats);
	stats = NULL;
}

TEST(json_is_checked)
{
	static const char *const good[] = { "{}", " {\"a\": [1, -2.5e+3, true, null, \"\\u00e9\\n\"]} " };
	static const char *const wrong[] = { "", "[]", "{", "{}x", "{\"a\"}", "{\"a\":01x}", "{a:1}",
		"{\"a\":1,}", "{\"a\":\"\n\"}", "{\"a\":-}", "{\"a\":1.}" };

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		CHECK(pxd_json_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		if (!CHECK(!pxd_json_valid(wrong[i], strlen(wrong[i]))))
			printf("  %s\n", wrong[i]);
}
