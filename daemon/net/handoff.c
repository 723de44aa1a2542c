/* handoff.c: see handoff.h. One datagram per connection: the preamble, the descriptor, and who sends (SCM_CREDENTIALS). */
#include "handoff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "door.h"
#include "err.h"
#include "proof.h"
#include "rundir.h"
#include "tls.h"

#define BATCH    64 /* connections taken before the loop goes on with something else */
#define RETRY_MS 5

/* Where nobody else can have made something before us. In /tmp anybody may have taken the name of our directory: then one is used that
 * only who has the job's key can foresee (without a key it is named after the job). 0, 1: that one; PX_E... */
static int dir_find(const struct pxd_node *d, char *dir, size_t cap, char *why, size_t whycap)
{
	uint8_t name[PX_JOBHASH_SIZE];
	int rc = pxd_rundir_make(dir, cap, why, whycap), n;

	if (rc == 0)
		return 0;
	memcpy(name, d->jobhash, sizeof name);
	if (d->tls) {
		uint8_t key[PXD_KEY_SIZE];

		rc = pxd_key_derive(
			pxd_tls_door(d->tls), d->jobhash, sizeof d->jobhash, "pacx1 directory", key);
		if (rc < 0)
			return rc;
		memcpy(name, key, sizeof name);
	}
	n = snprintf(dir, cap, "/tmp/pacx-%lu-", (unsigned long)geteuid());
	for (int i = 0; i < 8; i++)
		n += snprintf(dir + n, cap - (size_t)n, "%02x", name[i]);
	rc = pxd_rundir_own(dir, why, whycap);
	return rc < 0 ? rc : 1;
}

/* Both daemons find the same address. 0, 1: its directory is for this only; or PX_E... with the reason in why. */
static int address(const struct pxd_node *d, struct sockaddr_un *a, char *why, size_t cap)
{
	static const char suffix[] = ".hand"; /* not .sock: those answer pacxctl */
	char dir[PXD_RUNDIR_MAX], name[PX_JOB_MAX + PX_NAME_MAX + 32];
	int rc = dir_find(d, dir, sizeof dir, why, cap);

	if (rc < 0)
		return rc;
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	snprintf(name, sizeof name, "%s-%s-%d", d->hosts->job_id, pxd_site_name(d, d->self), d->gateway);
	if (pxd_rundir_socket(dir, name, a->sun_path, sizeof a->sun_path) < 0) {
		snprintf(why, cap, "the path of a socket in %.150s would be too long; set PACX_RUN_DIR", dir);
		return PX_ECONF;
	}
	memcpy(a->sun_path + strlen(a->sun_path) - strlen(suffix), suffix, sizeof suffix);
	return rc;
}

/* One datagram. false: there is none. */
static bool take(struct pxd_handoff *h)
{
	uint8_t bytes[PX_PREAMBLE_SIZE];
	struct iovec v = { bytes, sizeof bytes };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	struct px_preamble pre;
	bool ours = false;
	int fd = -1, extra;
	ssize_t n = recvmsg(h->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			/* Several may come in one: none may stay open. */
			for (size_t i = 0; CMSG_LEN((i + 1) * sizeof fd) <= c->cmsg_len; i++) {
				memcpy(&extra, CMSG_DATA(c) + i * sizeof fd, sizeof extra);
				if (fd < 0)
					fd = extra;
				else
					close(extra);
			}
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred u;

			memcpy(&u, CMSG_DATA(c), sizeof u);
			ours = u.uid == getuid();
		}
	}
	if (fd >= 0 && ours && px_preamble_get(bytes, (size_t)n, &pre) > 0)
		h->took(h->owner, fd, &pre);
	else if (fd >= 0)
		close(fd);
	return true;
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct pxd_handoff *h = p->data;

	(void)status;
	(void)events;
	pxd_node_of(p->loop)->events++;
	for (int i = 0; i < BATCH && h->open && take(h); i++)
		continue;
}

int pxd_handoff_open(struct pxd_handoff *h, struct pxd_node *d, char *why, size_t cap)
{
	int one = 1, rc = address(d, &h->at, why, cap);

	if (rc < 0)
		return rc;
	h->own_dir = rc > 0;
	h->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd < 0)
		goto fail;
	unlink(h->at.sun_path); /* of a daemon that was killed */
	if (setsockopt(h->fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) < 0 ||
		bind(h->fd, (struct sockaddr *)&h->at, sizeof h->at) < 0 ||
		uv_poll_init(&d->loop, &h->poll, h->fd) < 0)
		goto fail;
	h->poll.data = h;
	h->open = true;
	return uv_poll_start(&h->poll, UV_READABLE, on_poll);
fail:
	snprintf(why, cap, "%s: %s", h->at.sun_path, strerror(errno));
	if (h->fd >= 0)
		close(h->fd);
	return PX_EIO;
}

void pxd_handoff_close(struct pxd_handoff *h)
{
	if (!h->open)
		return;
	h->open = false;
	uv_close((uv_handle_t *)&h->poll, NULL);
	close(h->fd);
	unlink(h->at.sun_path);
	*strrchr(h->at.sun_path, '/') = '\0';
	if (h->own_dir)
		rmdir(h->at.sun_path);
}

/* A connection on its way to the out-daemon. */
struct gift {
	struct px_list l;
	int fd;
	uint64_t deadline; /* uv_now */
	struct px_preamble pre;
};

static void on_retry(uv_timer_t *t);

/* 0 or -errno. */
static int send_one(struct pxd_giver *g, int fd, const struct px_preamble *p)
{
	uint8_t bytes[PX_PREAMBLE_SIZE];
	struct iovec v = { bytes, sizeof bytes };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr m = { .msg_name = &g->at,
		.msg_namelen = sizeof g->at,
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (g->fd < 0)
		g->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (g->fd < 0)
		return -errno;
	px_preamble_put(p, bytes);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(g->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* It is busy, or not there yet. */
static bool passes(int e)
{
	return e == -EAGAIN || e == -EWOULDBLOCK || e == -EINTR || e == -ENOBUFS || e == -ENOENT ||
	       e == -ECONNREFUSED || e == -ETOOMANYREFS || e == -EMFILE || e == -ENFILE || e == -ENOMEM;
}

static void not_given(struct pxd_giver *g, int fd, int e)
{
	pxd_quiet_log(g->quiet, PX_LOG_WARN,
		"cannot hand a connection to the out-daemon of this gateway: %s; both have to run on the "
		"same "
		"node "
		"when the peer dials for both directions",
		strerror(-e));
	pxd_door_reset(fd);
}

static void gift_free(struct pxd_giver *g, struct gift *i)
{
	px_list_del(&i->l);
	g->ngifts--;
	free(i);
}

static void on_retry(uv_timer_t *t)
{
	struct pxd_giver *g = t->data;
	uint64_t now = uv_now(&g->d->loop);

	g->d->events++;
	while (!px_list_empty(&g->gifts)) { /* in order: who has waited longest first */
		struct gift *i = px_list_entry(g->gifts.next, struct gift, l);
		int rc = send_one(g, i->fd, &i->pre);

		if (passes(rc) && now < i->deadline) {
			uv_timer_start(&g->timer, on_retry, RETRY_MS, 0);
			return;
		}
		if (rc == 0)
			close(i->fd);
		else
			not_given(g, i->fd, rc);
		gift_free(g, i);
	}
}

int pxd_giver_open(struct pxd_giver *g, struct pxd_node *d, struct pxd_quiet *quiet)
{
	char why[PXD_WHY];

	*g = (struct pxd_giver){ .d = d, .quiet = quiet, .fd = -1 };
	px_list_init(&g->gifts);
	if (address(d, &g->at, why, sizeof why) < 0) /* the out-daemon says so when one is needed */
		px_log(PX_LOG_DEBUG, "no way to the out-daemon of this gateway: %s", why);
	g->open = uv_timer_init(&d->loop, &g->timer) == 0;
	g->timer.data = g;
	return g->open ? 0 : UV_ENOMEM;
}

void pxd_handoff_give(struct pxd_giver *g, int fd, const struct px_preamble *p)
{
	int rc = px_list_empty(&g->gifts) ? send_one(g, fd, p) : -EAGAIN;
	struct gift *i = passes(rc) && g->ngifts < PXD_GIVER_MAX ? calloc(1, sizeof *i) : NULL;

	if (rc == 0) {
		close(fd);
		return;
	}
	if (!i) {
		not_given(g, fd, rc);
		return;
	}
	i->fd = fd;
	i->pre = *p;
	i->deadline = uv_now(&g->d->loop) + PXD_GIVER_WAIT_MS;
	px_list_push(&g->gifts, &i->l);
	g->ngifts++;
	if (!uv_is_active((uv_handle_t *)&g->timer))
		uv_timer_start(&g->timer, on_retry, RETRY_MS, 0);
}

void pxd_giver_close(struct pxd_giver *g)
{
	if (!g->open)
		return;
	g->open = false;
	while (!px_list_empty(&g->gifts)) {
		struct gift *i = px_list_entry(g->gifts.next, struct gift, l);

		close(i->fd);
		gift_free(g, i);
	}
	if (g->fd >= 0)
		close(g->fd);
	uv_close((uv_handle_t *)&g->timer, NULL);
}
