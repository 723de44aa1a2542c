/* way.c: see way.h. What is said once a connection stands; that is made by way_connect.c. */
#include "way.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "frame.h" /* PX_PROTOCOL_VERSION */
#include "proof.h"
#include "via_command.h"
#include "wait.h"
#include "way_connect.h"

uint64_t pxd_way_until(const struct pxd_way *w)
{
	return px_now_ns() + (uint64_t)w->ctl->o.timeout_ms * 1000000;
}

void pxd_way_good(struct pxd_way *w, const char *name, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (w->hop)
		w->hop(w->arg, name, true, text, NULL);
}

int pxd_way_bad(struct pxd_way *w, int rc, const char *name, const char *fmt, ...)
{
	char todo[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(todo, sizeof todo, fmt, ap);
	va_end(ap);
	if (w->hop)
		w->hop(w->arg, name, false, w->why, todo);
	return rc;
}

void pxd_way_because(struct pxd_way *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->why, sizeof w->why, fmt, ap);
	va_end(ap);
}

/* no_pacx: the other side has not said a word of PACX; the words for what that can mean. */
static int no_pacx(struct pxd_way *w, int rc, const char *name)
{
	const struct pxd_link_opts *o = pxd_way_opts(w);
	const char *file = w->ctl->h->file, *site = pxd_way_peer(w);

	pxd_way_because(w, "%s", w->talk.why);
	if (o->relay && (rc == PX_ETIMEOUT || rc == PX_ECLOSED || rc == PX_EIO || strstr(w->why, "closed")))
		return pxd_way_bad(w, rc, name,
			"nobody has come to the other side of the relay; start at %s: pacxctl answer -f %s "
			"--site %s",
			site, file, site);
	if (o->dial && rc != PX_ETIMEOUT)
		return pxd_way_bad(w, rc, name,
			"the command of dial: has ended, or leads elsewhere; see what it has printed, and "
			"start at %s: pacxctl answer -f "
			"%s --site %s",
			site, file, site);
	if (rc == PX_ETIMEOUT)
		return pxd_way_bad(w, rc, name,
			"what listens there says nothing: it is not PACX, or a firewall lets a connection "
			"through but no bytes");
	if (strstr(w->why, "another key"))
		return pxd_way_bad(w, rc, name,
			"%s; a job that runs has a key of its own: set PACX_KEY_FILE, or end it and start "
			"pacxctl answer",
			w->keyed ? "copy the same key file (pacxctl keygen) to both sites with mode 600"
				 : "there is no key here: write key: for both sites, or set PACX_KEY_FILE");
	if (strstr(w->why, "wrong version") || strstr(w->why, "record"))
		return pxd_way_bad(w, rc, name,
			"another program has this port, or security: is not the same at both sites; correct "
			"port: in the hostfile");
	return pxd_way_bad(w, rc, name,
		"see what is printed there: another program may have the port, or the hostfile or PACX_JOB "
		"is not the same at both "
		"sites");
}

static int preamble_send(struct pxd_way *w, bool reversed, uint64_t end)
{
	struct px_preamble p = {
		.kind = PX_PRE_PROBE,
		.tls = !pxd_way_opts(w)->plain,
		.reversed = reversed,
		.from = (uint16_t)(reversed ? w->peer : w->self),
		.to = (uint16_t)(reversed ? w->self : w->peer),
		.to_gateway = (uint16_t)w->gateway,
		.stream = (uint16_t)w->stream,
	};
	uint8_t pre[PX_PREAMBLE_SIZE];

	memcpy(p.jobhash, w->ctl->jobhash, sizeof p.jobhash);
	pxd_proof_put(pxd_tls_door(w->tls), &p, pre);
	return pxd_talk_send(&w->talk, pre, sizeof pre, end);
}

static int greet(struct pxd_way *w)
{
	uint64_t end = pxd_way_until(w);
	int rc = preamble_send(w, false, end);

	if (pxd_way_opts(w)->plain)
		return rc < 0 ? no_pacx(w, rc, "pacx") : 0;
	if (rc >= 0)
		rc = pxd_talk_secure(&w->talk, w->tls, true, w->peer, end);
	if (rc < 0)
		return no_pacx(w, rc, "tls");
	if (w->keyed)
		pxd_way_good(w, "tls", "encrypted, and site %s has proved that it has the job's key",
			pxd_way_peer(w));
	else
		pxd_way_good(w, "tls",
			"encrypted; there is no key here, so who is there was not proved (pacxrun makes one "
			"for the job)");
	return 0;
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ask: a request and the head of its answer; refusals become why. */
static int ask(struct pxd_way *w, uint8_t op, const uint8_t *payload, size_t n, struct px_probing *answer,
	uint64_t end)
{
	uint8_t head[PX_PROBING_SIZE], text[PX_PROBING_WHY_MAX];
	int rc;

	px_probing_put(&(struct px_probing){ op, 0, n }, head);
	rc = pxd_talk_send(&w->talk, head, sizeof head, end);
	if (rc >= 0 && n)
		rc = pxd_talk_send(&w->talk, payload, n, end);
	if (rc >= 0)
		rc = pxd_talk_recv(&w->talk, head, sizeof head, end);
	if (rc < 0)
		return rc;
	if (px_probing_get(head, answer) < 0 || !answer->answer ||
		(answer->op != op && answer->op != PX_PROBING_REFUSED)) {
		snprintf(w->talk.why, sizeof w->talk.why, "what it answers is not of PACX");
		return PX_EPROTO;
	}
	if (answer->op == op)
		return 0;
	rc = pxd_talk_recv(&w->talk, text, (size_t)answer->n, end);
	if (rc >= 0)
		snprintf(w->talk.why, sizeof w->talk.why, "it refuses: %.*s", (int)answer->n,
			(const char *)text);
	return rc < 0 ? rc : PX_EAGAIN;
}

/* How the two sites store data: no failure, but what it costs. */
static void data_tell(struct pxd_way *w)
{
	struct px_repr here;
	char what[420];

	px_repr_native(&here);
	if (px_repr_alike(&here, &w->id.repr))
		pxd_way_good(w, "data", "stored as here: nothing has to be converted");
	else
		pxd_way_good(w, "data", "stored unlike here: at site %s %s", pxd_way_peer(w),
			px_repr_tell(&here, &w->id.repr, what, sizeof what));
}

static int identity(struct pxd_way *w)
{
	const struct pxd_hosts *h = w->ctl->h;
	uint8_t body[PX_PROBING_ID];
	struct px_probing a;
	uint64_t sent = 0, got = 0, sent_mono, end = pxd_way_until(w);
	int rc = 0;

	for (int i = 0; i < 3 && rc == 0; i++) { /* the quickest of three says most about the clock */
		uint64_t clock = clock_ns(), rtt;

		sent_mono = px_now_ns();
		rc = ask(w, PX_PROBING_WHO, NULL, 0, &a, end);
		if (rc == 0)
			rc = pxd_talk_recv(&w->talk, body, sizeof body, end);
		rtt = px_now_ns() - sent_mono;
		if (rc == 0 && px_probing_get_id(body, &w->id) < 0) {
			snprintf(w->talk.why, sizeof w->talk.why, "what it answers is not of PACX");
			rc = PX_EPROTO;
		}
		if (rc == 0 && (i == 0 || rtt < got)) {
			got = rtt;
			sent = clock;
			w->clock_s = ((double)w->id.clock_ns - (double)sent - (double)rtt / 2) / 1e9;
		}
	}
	if (rc < 0)
		return no_pacx(w, rc, "pacx");
	w->rtt_us = (double)got / 1e3;
	if (w->id.site != w->peer || strcmp(w->id.name, pxd_way_peer(w)) != 0 || w->id.nsites != h->nsites ||
		(w->id.gateway != w->gateway && !pxd_way_opts(w)->relay)) {
		pxd_way_because(w,
			"it is site %s (%d of %d), gateway %d; gateway %d of %s (%d of %d) was dialled",
			w->id.name, w->id.site + 1, w->id.nsites, w->id.gateway, w->gateway, pxd_way_peer(w),
			w->peer + 1, h->nsites);
		return pxd_way_bad(w, PX_ESITE, "identity",
			"use the same hostfile at all sites, and give each site and gateway a port of its "
			"own");
	}
	pxd_way_good(w, "identity", "site %s, gateway %d, job %s%s", w->id.name, w->id.gateway, w->id.job,
		w->id.flags & PX_PROBING_JOB ? ", which runs" : "");
	if (w->id.protocol != PX_PROTOCOL_VERSION) {
		pxd_way_because(w, "it speaks version %d of the protocol (PACX %s), we %d (PACX %s)",
			w->id.protocol, w->id.version, PX_PROTOCOL_VERSION, PX_VERSION_TEXT);
		return pxd_way_bad(
			w, PX_EVERSION, "version", "install the same version of PACX at both sites");
	}
	pxd_way_good(w, "version", "PACX %s%s", w->id.version,
		strcmp(w->id.version, PX_VERSION_TEXT) == 0 ? ", as here"
							    : "; here is " PX_VERSION_TEXT
							      ", which understands it");
	data_tell(w);
	if (w->clock_s > 3600 || w->clock_s < -3600) {
		pxd_way_because(w, "its clock is %.0f s %s", w->clock_s < 0 ? -w->clock_s : w->clock_s,
			w->clock_s < 0 ? "behind" : "ahead");
		return pxd_way_bad(w, PX_EIO, "clock",
			"set the clocks (NTP), or the times in the logs of the sites do not fit together");
	}
	pxd_way_good(w, "clock", "%+.3f s (give or take %.3f s)%s", w->clock_s, w->rtt_us / 2e6,
		w->clock_s > 1 || w->clock_s < -1 ? "; times in the logs of the sites differ as much" : "");
	return 0;
}

int pxd_way_echo(struct pxd_way *w, size_t n, uint64_t end)
{
	static const uint8_t zero[PX_PROBING_ECHO_MAX];
	static __thread uint8_t back[PX_PROBING_ECHO_MAX];
	struct px_probing a;
	int rc = ask(w, PX_PROBING_ECHO, zero, n, &a, end);

	if (rc == 0 && a.n != n) {
		snprintf(w->talk.why, sizeof w->talk.why, "what it answers is not of PACX");
		rc = PX_EPROTO;
	}
	return rc < 0 ? rc : pxd_talk_recv(&w->talk, back, n, end);
}

int pxd_way_mtu(struct pxd_way *w)
{
	int mss = 0, mtu = 0, rc;
	socklen_t len = sizeof mss;
	char text[64] = "";

	/* More than any packet: what is too long for a link on the way and not said so to us gets lost for good. */
	rc = pxd_way_echo(w, 32768, pxd_way_until(w));
	if (rc < 0) {
		pxd_way_because(w, "short packets pass, 32 KiB do not: %s", w->talk.why);
		return pxd_way_bad(w, rc, "mtu",
			"long packets are lost on the way: have firewalls pass ICMP \"fragmentation "
			"needed\", or lower the MTU (ip link set "
			"dev DEVICE mtu 1400)");
	}
	if (getsockopt(w->talk.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) < 0)
		mss = 0;
	len = sizeof mtu;
	if (getsockopt(w->talk.fd, IPPROTO_IP, IP_MTU, &mtu, &len) < 0 &&
		getsockopt(w->talk.fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len) < 0)
		mtu = 0;
	if (mtu > 0)
		snprintf(text, sizeof text, "MTU %d, ", mtu);
	if (mss > 0)
		pxd_way_good(w, "mtu", "%ssegments of %d bytes; 32 KiB came back", text, mss);
	else
		pxd_way_good(w, "mtu", "32 KiB came back");
	return 0;
}

int pxd_way_open(struct pxd_way *w)
{
	int rc;

	w->talk = (struct pxd_talk){ .fd = -1 };
	w->pid = 0;
	rc = pxd_way_connect(w);
	if (rc >= 0)
		rc = greet(w);
	return rc < 0 ? rc : identity(w);
}

int pxd_way_meet(struct pxd_way *w)
{
	uint64_t end = px_now_ns() + UINT64_C(3600) * 1000000000;
	int rc;

	w->talk = (struct pxd_talk){ .fd = -1 };
	w->pid = 0;
	rc = pxd_way_connect(w);
	if (rc < 0)
		return rc;
	rc = preamble_send(w, true, pxd_way_until(w));
	if (rc >= 0 && !pxd_way_opts(w)->plain)
		rc = pxd_talk_secure(&w->talk, w->tls, false, 0, end);
	if (rc < 0)
		pxd_way_because(w, "%s", w->talk.why);
	return rc;
}

void pxd_way_close(struct pxd_way *w)
{
	pxd_talk_close(&w->talk);
	if (w->pid > 0)
		pxd_via_kill(w->pid);
	w->pid = 0;
}
