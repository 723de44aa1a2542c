/* records.c: see records.h. */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "json.h"

#define FRAGMENTS_MAX 65536 /* of one report */
#define REPORTS_MAX   65536

/* Behind a record: may what comes now be the rest of the torn one? It has one newline, at its end. */
static bool torn_goes_on(const struct pxd_filter *f, const char *data, size_t n)
{
	size_t rest = PXD_RECORD - f->ntorn;

	if (f->ntorn == 0 || f->nheld > 0 || *data == PXD_RECORD_MARK[0])
		return false;
	return !memchr(data, '\n', n < rest ? n : rest - 1) && (n < rest || data[rest - 1] == '\n');
}

void pxd_filter_put(struct pxd_filter *f, const char *data, size_t n, const struct pxd_filter_sink *sink)
{
	static const size_t mark = sizeof PXD_RECORD_MARK - 1;

	while (n > 0) {
		const char *begin;
		size_t part, match;

		if (torn_goes_on(f, data, n)) {
			memcpy(f->held, f->torn, f->ntorn);
			f->nheld = f->ntorn;
			f->ntorn = 0;
		}
		if (f->nheld == 0) {
			begin = memchr(data, PXD_RECORD_MARK[0], n);
			part = begin ? (size_t)(begin - data) : n;
			if (part)
				sink->text(sink->arg, data, part);
			data += part;
			n -= part;
			if (n == 0)
				return;
		}
		/* The mark byte by byte, then the rest as it comes. */
		part = f->nheld < mark ? 1 : PXD_RECORD - f->nheld;
		if (part > n)
			part = n;
		/* In a record there is no such byte. */
		begin = f->nheld >= mark && f->ntorn == 0 ? memchr(data, PXD_RECORD_MARK[0], part) : NULL;
		if (begin == data) {
			memcpy(f->torn, f->held, f->nheld);
			f->ntorn = f->nheld;
			f->nheld = 0;
			continue;
		}
		if (begin)
			part = (size_t)(begin - data);
		memcpy(f->held + f->nheld, data, part);
		f->nheld += part;
		data += part;
		n -= part;
		match = f->nheld < mark ? f->nheld : mark;
		if (memcmp(f->held, PXD_RECORD_MARK, match) != 0) {
			/* Not a record: all of it is text, but its last byte may begin the next one. */
			size_t keep = f->held[f->nheld - 1] == PXD_RECORD_MARK[0];

			sink->text(sink->arg, f->held, f->nheld - keep);
			f->held[0] = PXD_RECORD_MARK[0];
			f->nheld = keep;
			continue;
		}
		if (f->nheld < PXD_RECORD)
			continue;
		f->nheld = 0;
		if (f->held[PXD_RECORD - 1] == '\n') {
			sink->record(sink->arg, f->held);
		} else {
			/* Torn by other output. Let it be seen: there is application text in it. */
			char copy[PXD_RECORD];

			f->broken++;
			memcpy(copy, f->held, sizeof copy);
			sink->text(sink->arg, copy + 1, mark - 1);
			pxd_filter_put(f, copy + mark, sizeof copy - mark, sink);
		}
	}
}

void pxd_filter_end(struct pxd_filter *f, const struct pxd_filter_sink *sink)
{
	f->broken += f->ntorn > 0;
	if (f->ntorn)
		sink->text(sink->arg, f->torn, f->ntorn);
	if (f->nheld)
		sink->text(sink->arg, f->held, f->nheld);
	f->nheld = f->ntorn = 0;
}

/* What one daemon reports of one kind: fragments, put together when all are there. */
struct report {
	char role[PX_NAME_MAX + 16], kind[32];
	long total;
	bool from_zero; /* fragments are numbered from 0, not from 1 */
	char **part;    /* [total + 1] */
};

struct pxd_stats {
	struct report *reports;
	int nreports;
	int lost; /* malformed records */
};

struct pxd_stats *pxd_stats_new(void)
{
	return calloc(1, sizeof(struct pxd_stats));
}

void pxd_stats_free(struct pxd_stats *s)
{
	if (!s)
		return;
	for (int i = 0; i < s->nreports; i++) {
		for (long k = 0; k <= s->reports[i].total; k++)
			free(s->reports[i].part[k]);
		free(s->reports[i].part);
	}
	free(s->reports);
	free(s);
}

static int report_find(
	struct pxd_stats *s, const char *role, const char *kind, long total, struct report **out)
{
	struct report *r;

	for (int i = 0; i < s->nreports; i++) {
		r = &s->reports[i];
		if (strcmp(r->role, role) == 0 && strcmp(r->kind, kind) == 0) {
			*out = r;
			return r->total == total ? 0 : PX_EPROTO;
		}
	}
	if (s->nreports == REPORTS_MAX)
		return PX_EPROTO;
	r = realloc(s->reports, ((size_t)s->nreports + 1) * sizeof *r);
	if (!r)
		return PX_ENOMEM;
	s->reports = r;
	r += s->nreports;
	memset(r, 0, sizeof *r);
	snprintf(r->role, sizeof r->role, "%s", role);
	snprintf(r->kind, sizeof r->kind, "%s", kind);
	r->total = total;
	r->part = calloc((size_t)total + 1, sizeof *r->part);
	if (!r->part)
		return PX_ENOMEM;
	s->nreports++;
	*out = r;
	return 0;
}

int pxd_stats_put(struct pxd_stats *s, const char *record)
{
	char text[PXD_RECORD + 1], role[PX_NAME_MAX + 16], kind[32];
	long seq = -1, total = -1;
	struct report *r;
	int at = 0, rc;
	size_t n = PXD_RECORD - 1;

	memcpy(text, record, PXD_RECORD);
	while (n > 0 && text[n - 1] == ' ')
		n--;
	text[n] = '\0';
	if (strlen(text) != n || /* a NUL inside */
		sscanf(text + sizeof PXD_RECORD_MARK - 1, "%79s %31s %9ld/%9ld%n", role, kind, &seq, &total,
			&at) != 4 ||
		at == 0 || text[sizeof PXD_RECORD_MARK - 1 + at] != ' ' || total < 1 ||
		total > FRAGMENTS_MAX || seq < 0 || seq > total) {
		s->lost++;
		return PX_EPROTO;
	}
	rc = report_find(s, role, kind, total, &r);
	if (rc < 0 || r->part[seq]) {
		s->lost++;
		return rc < 0 ? rc : PX_EPROTO;
	}
	r->from_zero |= seq == 0;
	r->part[seq] = strdup(text + sizeof PXD_RECORD_MARK + at);
	return r->part[seq] ? 0 : PX_ENOMEM;
}

/* report_text: all fragments in order into b. 0, PX_ESHORT: *missing of them are not there. */
static int report_text(const struct report *r, struct px_buf *b, long *missing)
{
	long from = r->from_zero ? 0 : 1;

	*missing = 0;
	for (long k = from; k < from + r->total; k++) {
		if (!r->part[k])
			++*missing;
		else if (px_buf_append(b, r->part[k], strlen(r->part[k])) < 0)
			return PX_ENOMEM;
	}
	return *missing ? PX_ESHORT : 0;
}

/* The lists of the file while they grow. */
struct merged {
	struct px_buf links, links_in, collectives, missing;
};

static int list_add(struct px_buf *b, const char *data, size_t n)
{
	int rc = px_buf_len(b) ? px_buf_append(b, ", ", 2) : 0;

	return rc < 0 ? rc : px_buf_append(b, data, n);
}

static int missing_add(struct merged *m, const char *role, const char *kind, long lost, long total)
{
	char text[256];
	int n = snprintf(text, sizeof text, "{\"from\":\"%s\",\"kind\":\"%s\",\"lost\":%ld,\"of\":%ld}", role,
		kind, lost, total);

	return list_add(&m->missing, text, (size_t)n);
}

static int member_merge(void *arg, const char *key, size_t nkey, const char *value, size_t nvalue)
{
	struct merged *m = arg;
	size_t from = 1, to = nvalue - 1;
	struct px_buf *list = NULL;

	if (nkey == 5 && memcmp(key, "links", 5) == 0)
		list = &m->links;
	else if (nkey == 8 && memcmp(key, "links_in", 8) == 0)
		list = &m->links_in;
	if (!list || value[0] != '[')
		return 0;
	while (from < to && strchr(" \t\n\r", value[from])) /* an empty list adds nothing */
		from++;
	return from < to ? list_add(list, value + from, to - from) : 0;
}

struct find {
	const char *value;
	size_t nvalue;
};

static int member_collectives(void *arg, const char *key, size_t nkey, const char *value, size_t nvalue)
{
	struct find *f = arg;

	if (nkey == 11 && memcmp(key, "collectives", 11) == 0 && value[0] == '{')
		*f = (struct find){ value, nvalue };
	return 0;
}

/* report_merge: collectives are kept apart by site; summing them up would count each once per site. */
static int report_merge(const struct report *r, struct merged *m)
{
	struct px_buf text = { 0 };
	struct find c = { 0 };
	long missing;
	int rc = report_text(r, &text, &missing);

	if (rc == PX_ESHORT) {
		rc = missing_add(m, r->role, r->kind, missing, r->total);
	} else if (rc >= 0 && !pxd_json_valid((const char *)px_buf_data(&text), px_buf_len(&text))) {
		rc = missing_add(m, r->role, r->kind, r->total, r->total);
	} else if (rc >= 0) {
		const char *json = (const char *)px_buf_data(&text);

		rc = pxd_json_members(json, px_buf_len(&text), member_merge, m);
		if (rc >= 0)
			rc = pxd_json_members(json, px_buf_len(&text), member_collectives, &c);
		if (rc >= 0 && c.value) {
			char key[PX_NAME_MAX + 8];

			snprintf(key, sizeof key, "\"%.*s\": ", (int)strcspn(r->role, ":"), r->role);
			rc = list_add(&m->collectives, key, strlen(key));
			if (rc >= 0)
				rc = px_buf_append(&m->collectives, c.value, c.nvalue);
		}
	}
	px_buf_fini(&text);
	return rc;
}

static void list_print(FILE *f, const char *key, char open, const struct px_buf *b, char close)
{
	fprintf(f, ",\n\"%s\": %c%.*s%c", key, open, (int)px_buf_len(b), (const char *)px_buf_data(b), close);
}

static void stats_print(const struct pxd_stats *s, const struct merged *m, const struct pxd_hosts *h,
	const int *exits, FILE *f)
{
	fprintf(f, "{\"job\": ");
	pxd_json_print(f, h->job);
	fprintf(f, ",\n\"job_id\": ");
	pxd_json_print(f, h->job_id);
	fprintf(f, ",\n\"sites\": [");
	for (int i = 0; i < h->nsites; i++) {
		fprintf(f, "%s{\"name\": \"%s\", \"ranks\": %d, \"mpi\": \"%s\", \"exit\": ", i ? ", " : "",
			h->sites[i].name, h->sites[i].ranks, pxd_flavor_name(h->sites[i].mpi));
		if (exits[i] < 0)
			fprintf(f, "null}");
		else
			fprintf(f, "%d}", exits[i]);
	}
	fprintf(f, "]");
	list_print(f, "links", '[', &m->links, ']');
	list_print(f, "links_in", '[', &m->links_in, ']');
	list_print(f, "collectives", '{', &m->collectives, '}');
	if (px_buf_len(&m->missing) || s->lost)
		list_print(f, "missing", '[', &m->missing, ']');
	if (s->lost)
		fprintf(f, ",\n\"broken_records\": %d", s->lost);
	fprintf(f, "}\n");
}

/* missing_daemons: a site that ran here must have reported through both of its daemons. */
static int missing_daemons(
	const struct pxd_stats *s, const struct pxd_hosts *h, const int *exits, struct merged *m)
{
	static const char *const roles[] = { "out", "in" };

	for (int i = 0; i < h->nsites; i++) {
		for (int k = 0; k < 2; k++) {
			char role[PX_NAME_MAX + 16];
			bool found = exits[i] < 0;

			snprintf(role, sizeof role, "%s:%s", h->sites[i].name, roles[k]);
			for (int r = 0; r < s->nreports && !found; r++)
				found = strncmp(s->reports[r].role, role, strlen(role)) == 0;
			if (!found && missing_add(m, role, "stats", 1, 1) < 0)
				return PX_ENOMEM;
		}
	}
	return 0;
}

/* target_find: the file that `path` leads to, which a rename may replace: a regular one, or none yet. New memory. */
static int target_find(const char *path, char **target, char *why, size_t cap)
{
	struct stat st, out;
	int rc = stat(path, &st);

	if (!*path) {
		snprintf(why, cap, "--stats: found an empty name, expected the name of a file");
		return PX_EIO;
	}
	if (rc < 0 && errno == ENOENT && lstat(path, &st) < 0) {
		*target = strdup(path);
		return *target ? 0 : PX_ENOMEM;
	}
	if (rc < 0) {
		snprintf(why, cap, "--stats: %s: %s", path, strerror(errno));
		return PX_EIO;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, cap, "--stats: %s is no regular file; expected the name of a file", path);
		return PX_EIO;
	}
	for (int fd = 0; fd <= 2; fd++) {
		if (fstat(fd, &out) < 0 || out.st_dev != st.st_dev || out.st_ino != st.st_ino)
			continue;
		snprintf(why, cap, "--stats: %s is also the standard %s; expected another file", path,
			fd == 0 ? "input" : "output");
		return PX_EIO;
	}
	*target = realpath(path, NULL);
	return *target ? 0 : PX_ENOMEM;
}

/* temp_make: a new file beside the target, under a name that nobody can have made before. A descriptor, or PX_E... */
static int temp_make(const char *target, char **temp)
{
	mode_t mask = umask(0);
	int fd;

	umask(mask);
	if (asprintf(temp, "%s.XXXXXX", target) < 0) {
		*temp = NULL;
		return PX_ENOMEM;
	}
	fd = mkostemp(*temp, O_CLOEXEC);
	if (fd >= 0)
		fchmod(fd, 0666 & ~mask);
	return fd < 0 ? PX_EIO : fd;
}

int pxd_stats_prove(const char *path, char *why, size_t cap)
{
	char *target = NULL, *temp = NULL;
	int rc;

	snprintf(why, cap, "out of memory");
	rc = target_find(path, &target, why, cap);
	if (rc >= 0) {
		rc = temp_make(target, &temp);
		if (rc == PX_EIO)
			snprintf(why, cap, "--stats: cannot make a file beside %s: %s", target,
				strerror(errno));
		if (rc >= 0) {
			close(rc);
			unlink(temp);
		}
	}
	free(temp);
	free(target);
	return rc < 0 ? rc : 0;
}

int pxd_stats_write(const struct pxd_stats *s, const struct pxd_hosts *h, const int *exits, const char *path,
	char *why, size_t cap)
{
	struct merged m = { 0 };
	char *temp = NULL, *target = NULL;
	FILE *f = NULL;
	int rc = 0, fd = -1;

	snprintf(why, cap, "out of memory");
	for (int i = 0; i < s->nreports && rc >= 0; i++)
		rc = report_merge(&s->reports[i], &m);
	if (rc >= 0)
		rc = missing_daemons(s, h, exits, &m);
	if (rc >= 0)
		rc = target_find(path, &target, why, cap);
	if (rc >= 0)
		rc = fd = temp_make(target, &temp);
	if (rc < 0 && rc != PX_EIO)
		goto done;
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f)
		stats_print(s, &m, h, exits, f);
	rc = f && !ferror(f) && fflush(f) == 0 && rename(temp, target) == 0 ? 0 : PX_EIO;
	if (rc < 0 && target)
		snprintf(why, cap, "cannot write the statistics to %s: %s", path, strerror(errno));
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (rc < 0 && fd >= 0)
		unlink(temp);
done:
	free(temp);
	free(target);
	px_buf_fini(&m.links);
	px_buf_fini(&m.links_in);
	px_buf_fini(&m.collectives);
	px_buf_fini(&m.missing);
	return rc;
}
