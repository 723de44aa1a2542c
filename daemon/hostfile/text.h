/* text.h: what the readers of the forms of hostfile share: error lines and value checks; and how hostfile.c knows them.
 *
 * Private to hostfile*.c. Owns nothing but the caller's error buffer. Every function that fails has
 * written the whole error line; callers pass the code up unchanged.
 */
#ifndef PXD_HOSTFILE_TEXT_H
#define PXD_HOSTFILE_TEXT_H

#include "hostfile.h"

struct pxd_text {
	const char *file; /* display name */
	const char *text;
	size_t len;
	char *why; /* error line goes here */
	size_t cap;
	bool flat; /* the text is an option of a command line: errors say no line and column */
};

/* pxd_text_fail: "file:line:column: found F, expected E"; returns PX_ECONF. at.line 0: no position. */
int pxd_text_fail(const struct pxd_text *t, struct pxd_mark at, const char *expected, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int pxd_text_nomem(const struct pxd_text *t);
/* pxd_text_mark: position of a byte offset. Columns count characters, not bytes. */
struct pxd_mark pxd_text_mark(const struct pxd_text *t, size_t offset);
/* pxd_text_check: size, UTF-8, control characters. */
int pxd_text_check(const struct pxd_text *t);
/* pxd_text_show: v in quotes, shortened, for messages. buf is returned. */
#define PXD_SHOW 64
const char *pxd_text_show(const char *v, char buf[PXD_SHOW]);

/* Values. v is the text, at where it stands; outputs are written on success only. */
int pxd_value_name(const struct pxd_text *t, struct pxd_mark at, const char *v, char **out);
int pxd_value_host(const struct pxd_text *t, struct pxd_mark at, const char *v, char **out);
int pxd_value_port(const struct pxd_text *t, struct pxd_mark at, const char *v, int *out);
int pxd_value_ranks(const struct pxd_text *t, struct pxd_mark at, const char *v, int *out);
/* pxd_value_endpoint: "host:port", "[v6]:port", "host", "[v6]"; *port = -1 when there is none. */
int pxd_value_endpoint(const struct pxd_text *t, struct pxd_mark at, const char *v, char **host, int *port);
int pxd_value_duration(const struct pxd_text *t, struct pxd_mark at, const char *v, long *ms);
/* pxd_value_buffer: bytes of a site's buffer, from 16 MiB. */
int pxd_value_buffer(const struct pxd_text *t, struct pxd_mark at, const char *v, uint64_t *bytes);
int pxd_value_latency(
	const struct pxd_text *t, struct pxd_mark at, const char *v, long *us); /* 0 is allowed */
/* pxd_value_rate: whole bytes/s; "unlimited" gives 0. */
int pxd_value_rate(const struct pxd_text *t, struct pxd_mark at, const char *v, double *rate);
/* pxd_value_proxy: only the form is checked. The text is never shown: it may hold a password. */
int pxd_value_proxy(const struct pxd_text *t, struct pxd_mark at, const char *v, char **out);
int pxd_value_compress(
	const struct pxd_text *t, struct pxd_mark at, const char *v, enum pxd_compress *kind, int *level);

/* pxd_value_files: the word shared or local, or the name of one of h's sites, into h->files. word: v is not in quotes, which make a
 * site's name of it. */
int pxd_value_files(
	const struct pxd_text *t, struct pxd_mark at, const char *v, bool word, struct pxd_hosts *h);

/* pxd_key_nearest: the known key with the least edit distance to key; *distance may be NULL. */
const char *pxd_key_nearest(const char *key, const char *const *known, int n, int *distance);

/* A form of hostfile. mine: does the text look like it? (NULL: what is no other form.) read: h is empty and gets sites, links, job,
 * deadline; pxd_hosts_give does the rest. */
struct pxd_hostform {
	bool (*mine)(const char *text, size_t len);
	int (*read)(const struct pxd_text *t, struct pxd_hosts *h);
};
extern const struct pxd_hostform pxd_hostform_yaml, pxd_hostform_classic;
/* pxd_hosts_add: one more site, zeroed, at the end of h->sites; NULL when out of memory. */
struct pxd_site *pxd_hosts_add(struct pxd_hosts *h);
/* pxd_hosts_link_text: "streams: 4, compress: none" as (further) keys of the default link. */
int pxd_hosts_link_text(const struct pxd_text *t, struct pxd_hosts *h);
/* Parts of pxd_hosts_finish. */
int pxd_hosts_gates_default(const struct pxd_text *t, struct pxd_hosts *h);
int pxd_hosts_links_default(const struct pxd_text *t, struct pxd_hosts *h);
void pxd_link_opts_fini(struct pxd_link_opts *o);
/* pxd_hosts_finish: defaults, base ranks, job id, and all checks that need more than one value. */
int pxd_hosts_finish(const struct pxd_text *t, struct pxd_hosts *h);
/* pxd_hosts_give: h has been read with result rc: finish it and give it to *out, or free it. Its result. */
int pxd_hosts_give(const struct pxd_text *t, struct pxd_hosts *h, int rc, struct pxd_hosts **out);

#endif
