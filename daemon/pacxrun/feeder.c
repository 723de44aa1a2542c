/* feeder.c: see feeder.h. */
#include "feeder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "records.h"
#include "write_all.h"

struct pxd_feed_window *pxd_feed_window_new(void)
{
	struct pxd_feed_window *w = calloc(1, sizeof *w);

	if (!w || uv_mutex_init(&w->lock) < 0) {
		free(w);
		return NULL;
	}
	if (uv_cond_init(&w->moved) < 0) {
		uv_mutex_destroy(&w->lock);
		free(w);
		return NULL;
	}
	return w;
}

bool pxd_feed_window_put(struct pxd_feed_window *w, const char *site, const char *record)
{
	const char *taken = pxd_record_value(record, site, "rank", "stdin");

	if (!taken)
		return false;
	uv_mutex_lock(&w->lock);
	w->taken = strtoull(taken, NULL, 10);
	uv_cond_signal(&w->moved);
	uv_mutex_unlock(&w->lock);
	return true;
}

/* Until the reader has taken all but what the window allows to be under way. false: it takes no more. */
static bool window_wait(struct pxd_feed_window *w, uint64_t sent)
{
	bool open;

	uv_mutex_lock(&w->lock);
	while (w->taken != PXD_FEED_SHUT && sent > w->taken + PXD_FEED_WINDOW)
		uv_cond_wait(&w->moved, &w->lock);
	open = w->taken != PXD_FEED_SHUT;
	uv_mutex_unlock(&w->lock);
	return open;
}

int pxd_feeder_choose(const struct pxd_start *st, const char *key, const char *fifo,
	struct pxd_feed_window *w, struct pxd_feeder *feed)
{
	int ends[2];

	*feed = (struct pxd_feeder){ .from = 0, .to = -1 };
	if (st->key_stdin && key) {
		feed->first = key;
		if (st->site->base != 0)
			feed->from = -1;
	} else if (st->site->base != 0) {
		return -1;
	}
	if (st->fifo_stdin) {
		feed->fifo = fifo;
		return -1;
	}
	feed->window = st->pump_stdin ? w : NULL;
	if (!isatty(0) && !feed->first && !feed->window)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	feed->to = ends[1];
	return ends[0];
}

void pxd_feeder_run(void *arg)
{
	uint64_t sent = 0;
	struct pxd_feeder *f = arg;
	char buf[4096];

	if (f->fifo)
		f->to = open(f->fifo, O_WRONLY | O_CLOEXEC);
	if (f->to >= 0 && f->first &&
		!(pxd_write_all(f->to, f->first, strlen(f->first)) && pxd_write_all(f->to, "\n", 1)))
		f->from = -1;
	while (f->to >= 0 && f->from >= 0) {
		ssize_t n;

		/* In the background a terminal is not ours to read. */
		if (isatty(f->from) && tcgetpgrp(f->from) != getpgrp()) {
			usleep(200000);
			continue;
		}
		n = read(f->from, buf, sizeof buf);
		if (n < 0 && (errno == EINTR || (errno == EIO && isatty(f->from))))
			continue;
		if (n <= 0)
			break;
		sent += (uint64_t)n;
		if (f->window && !window_wait(f->window, sent))
			break;
		if (!pxd_write_all(f->to, buf, (size_t)n))
			break;
	}
	if (f->to >= 0)
		close(f->to);
	free(f);
}
