/* handoff.c: see handoff.h. One datagram per connection: the preamble, the descriptor, and who sends (SCM_CREDENTIALS). */
#include "handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"

static socklen_t address(const struct pxd *d, struct sockaddr_un *a)
{
	char hash[2 * PX_JOBHASH_SIZE + 1];
	int n;

	for (int i = 0; i < PX_JOBHASH_SIZE; i++)
		snprintf(hash + 2 * i, 3, "%02x", d->jobhash[i]);
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "pacx-%u-%s-%d-%d", (unsigned)getuid(), hash,
		d->self, d->gateway);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct pxd_handoff *h = p->data;
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

	(void)status;
	(void)events;
	pxd_of(p->loop)->events++;
	if (n < 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			/* Any user of this node may send here, also several: none may stay open. */
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
}

int pxd_handoff_open(struct pxd_handoff *h, struct pxd *d)
{
	struct sockaddr_un a;
	socklen_t len = address(d, &a);
	int one = 1, rc;

	h->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd < 0)
		return -errno;
	if (setsockopt(h->fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) < 0 ||
		bind(h->fd, (struct sockaddr *)&a, len) < 0) {
		rc = -errno;
		close(h->fd);
		return rc;
	}
	rc = uv_poll_init(&d->loop, &h->poll, h->fd);
	if (rc < 0) {
		close(h->fd);
		return rc;
	}
	h->poll.data = h;
	h->open = true;
	return uv_poll_start(&h->poll, UV_READABLE, on_poll);
}

static void on_closed(uv_handle_t *handle)
{
	close(((struct pxd_handoff *)handle->data)->fd);
}

void pxd_handoff_close(struct pxd_handoff *h)
{
	if (h->open)
		uv_close((uv_handle_t *)&h->poll, on_closed);
	h->open = false;
}

int pxd_handoff_give(struct pxd *d, int fd, const struct px_preamble *p)
{
	struct sockaddr_un a;
	uint8_t bytes[PX_PREAMBLE_SIZE];
	struct iovec v = { bytes, sizeof bytes };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr m = { .msg_name = &a,
		.msg_namelen = address(d, &a),
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (s < 0)
		return -errno;
	px_preamble_put(p, bytes);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	rc = sendmsg(s, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
	close(s);
	return rc;
}
