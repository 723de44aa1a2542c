/* status.c: see status.h.
 *
 *  1. A client is freed in the close callback of its handle only, and its place in client[] is given up when the closing
 *     begins.
 *  2. A write holds the client's text until its callback, which comes before the close callback, also on cancel.
 */
#include "status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"
#include "rundir.h"

struct pxd_status_client {
	uv_pipe_t pipe;
	uv_write_t write;
	struct px_buf text;
	struct pxd_status *status;
};

static void on_client_closed(uv_handle_t *h)
{
	struct pxd_status_client *c = h->data;

	px_buf_fini(&c->text);
	free(c);
}

static void client_close(struct pxd_status_client *c)
{
	struct pxd_status_client **at = c->status->client;
	int i = 0;

	if (uv_is_closing((uv_handle_t *)&c->pipe))
		return;
	while (i < PXD_STATUS_CLIENTS && at[i] != c)
		i++;
	for (; i < PXD_STATUS_CLIENTS; i++)
		at[i] = i + 1 < PXD_STATUS_CLIENTS ? at[i + 1] : NULL;
	uv_close((uv_handle_t *)&c->pipe, on_client_closed);
}

static void on_written(uv_write_t *w, int status)
{
	(void)status; /* whoever does not want the rest does not get it */
	client_close(w->data);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct pxd_status *s = server->data;
	struct pxd_status_client *c = status < 0 ? NULL : calloc(1, sizeof *c);
	uv_buf_t b;
	int i = 0;

	if (!c)
		return;
	if (uv_pipe_init(server->loop, &c->pipe, 0) < 0) {
		free(c);
		return;
	}
	c->pipe.data = c;
	c->write.data = c;
	c->status = s;
	if (s->client[PXD_STATUS_CLIENTS - 1])
		client_close(s->client[0]);
	while (s->client[i])
		i++;
	s->client[i] = c;
	if (uv_accept(server, (uv_stream_t *)&c->pipe) < 0) {
		client_close(c);
		return;
	}
	s->make(s->arg, &c->text);
	b = uv_buf_init((char *)px_buf_data(&c->text), (unsigned)px_buf_len(&c->text));
	if (b.len == 0 || uv_write(&c->write, (uv_stream_t *)&c->pipe, &b, 1, on_written) < 0)
		client_close(c);
}

int pxd_status_open(struct pxd_status *s, uv_loop_t *loop, const char *name,
	void (*make)(void *arg, struct px_buf *b), void *arg)
{
	char dir[PXD_RUNDIR_MAX], path[sizeof((struct sockaddr_un *)0)->sun_path], why[PXD_RUNDIR_MAX + 200];
	struct stat st;
	int rc = pxd_rundir_make(dir, sizeof dir, why, sizeof why);

	if (rc == 0 && pxd_rundir_socket(dir, name, path, sizeof path) < 0) {
		snprintf(why, sizeof why, "the path of a socket in %s would be too long", dir);
		rc = PX_ECONF;
	}
	if (rc < 0) {
		px_log(PX_LOG_WARN, "no pacxctl status for this daemon: %s", why);
		return rc;
	}
	pxd_rundir_sweep(dir, NULL);
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) /* of a daemon that was killed */
		unlink(path);
	rc = uv_pipe_init(loop, &s->pipe, 0);
	if (rc < 0)
		goto fail;
	s->pipe.data = s;
	s->open = true;
	s->make = make;
	s->arg = arg;
	snprintf(s->path, sizeof s->path, "%s", path);
	rc = uv_pipe_bind(&s->pipe, path);
	if (rc == 0)
		rc = chmod(path, 0600) < 0 ? -errno : 0;
	if (rc == 0)
		rc = uv_listen((uv_stream_t *)&s->pipe, PXD_STATUS_CLIENTS, on_connection);
	if (rc == 0)
		return 0;
	pxd_status_close(s);
fail:
	px_log(PX_LOG_WARN, "no pacxctl status for this daemon: %s: %s", path, uv_strerror(rc));
	return PX_EIO;
}

void pxd_status_close(struct pxd_status *s)
{
	if (!s->open)
		return;
	s->open = false;
	while (s->client[0])
		client_close(s->client[0]);
	uv_close((uv_handle_t *)&s->pipe, NULL); /* libuv removes the path */
}
