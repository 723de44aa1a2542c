/*
 * wanem.c - a wide-area network between network namespaces, in user space: for machines whose kernel has no netem.
 *
 *   wanem [--latency 10ms] [--rate 1MB/s] [--loss 0.1] [--queue 100kB] [--mtu 1500] [--seed 1] [--uplink 0] [--link 'LINK KEY=VALUE...']...
 *         --socket PATH NETNS=ADDRESS NETNS=ADDRESS [...]
 *   wanem --ctl PATH COMMAND...
 *
 * It owns a TUN device "wan0" in each namespace, with the address given (a /24 for all sites), and carries IPv4 packets between
 * them by destination address. It is started by scripts/wanlab, prints "ready" when packets flow, and ends with its parent, at
 * SIGTERM or SIGINT. It uses nothing of PACX, and libc only. It must never touch the namespace it was started in.
 *
 * Commands on the control socket (SOCK_SEQPACKET, one command and one answer each; "ok", "error: ..." or the lines of show):
 *   set LINK KEY=VALUE...    latency, rate (0 unlimited), loss (percent), queue (0 automatic)
 *   cut LINK, heal LINK      a cut link loses what is on its way and all that comes
 *   show                     one line per directed link, parameters and counters as KEY=VALUE
 * LINK: "0:1" from site 0 to site 1, "0-1" both directions, "all"; "up:0", "down:0", the lines that all links out of, and into, site 0
 * share. These have no latency and, unless --uplink or set gives them one, no rate: then nothing passes through them.
 *
 * Design
 *   1. Each directed link is a tail-drop queue, a transmitter and a delay line, as in a router and its cable. A packet waits in
 *      the queue, occupies the transmitter for bytes/rate, then arrives `latency` later. Bytes are those of the IP packet.
 *   2. Times are computed, not measured: a packet starts when the one before it ended (or when it came, if later). A timer that
 *      is late delays one delivery and never lowers the rate.
 *   3. Order is kept, also when the latency is lowered while it runs.
 *   4. Loss is drawn when a packet comes, from a generator with a fixed seed.
 *   5. queue counts the bytes that wait, without the packet being sent. Automatic: a round trip's worth, at least 100 kB.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "wanem_fifo.h"
#include "wanem_params.h"
#include "wanem_tun.h"

#define READS_PER_TURN 64           /* packets taken from one site before the others have their turn */
#define HELD_MAX       (512u << 20) /* bytes in all queues and delay lines together; above it packets are lost */
#define QUEUE_MIN      100000       /* the automatic queue is never shorter */
#define PACKET_MAX     65535
#define SITES_MAX      16    /* what fits into an answer to show */
#define TEXT_MAX       65536 /* an answer on the control socket */

struct link {
	struct params p;
	bool cut;
	struct fifo queue, wire;
	int64_t free_at; /* when the transmitter has sent its last packet */
	int64_t last;    /* when the last packet put on the wire arrives */
	uint64_t carried, carried_bytes, lost, full, dropped; /* full: queue overflow, dropped: cut */
};

struct site {
	const char *ns;
	struct in_addr addr;
	int tun;
};

static struct site *sites;
/* [0, nsites): up lines of the sites; then from each site to each; then down lines. In the order in which a packet passes through them. */
static struct link *links;
static int nsites;
static int mtu = 1500;
static uint64_t seed = 1;

static int nlinks(void)
{
	return nsites * (nsites + 2);
}

static struct link *link_between(int from, int to)
{
	return &links[nsites + from * nsites + to];
}

/* Is links[k] from a site to another, and which? */
static bool is_between(int k, int *from, int *to)
{
	*from = k / nsites - 1;
	*to = k % nsites;
	return *from >= 0 && *from < nsites && *from != *to;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* draw: uniform in [0, 1), splitmix64. */
static double draw(void)
{
	uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* ---- links ---- */

static size_t queue_limit(const struct params *p)
{
	double trip = p->rate * (double)p->latency * 2e-9;

	return p->queue ? p->queue : trip > QUEUE_MIN ? (size_t)trip : QUEUE_MIN;
}

static void link_forget(struct link *l)
{
	while (l->queue.head) {
		l->dropped++;
		free(fifo_take(&l->queue));
	}
	while (l->wire.head) {
		l->dropped++;
		free(fifo_take(&l->wire));
	}
	l->free_at = l->last = 0;
}

/* link_transmit: queue -> transmitter -> delay line, as far as `now` allows. */
static void link_transmit(struct link *l, int64_t now)
{
	while (l->queue.head && l->free_at <= now) {
		struct packet *p = fifo_take(&l->queue);
		int64_t start = p->when > l->free_at ? p->when : l->free_at;

		l->free_at = start + (l->p.rate > 0 ? (int64_t)((double)p->size * 1e9 / l->p.rate) : 0);
		p->when = l->free_at + l->p.latency;
		if (p->when < l->last)
			p->when = l->last;
		l->last = p->when;
		fifo_put(&l->wire, p);
	}
}

static void link_accept(struct link *l, struct packet *p)
{
	if (l->cut) {
		l->dropped++;
		free(p);
		return;
	}
	if (l->p.loss > 0 && draw() * 100 < l->p.loss) {
		l->lost++;
		free(p);
		return;
	}
	link_transmit(l, p->when);
	/* When the transmitter is free it starts at once, so the limit does not concern it. */
	if ((l->free_at > p->when && l->queue.bytes + p->size > queue_limit(&l->p)) ||
		held + p->size > HELD_MAX) {
		l->full++;
		free(p);
		return;
	}
	fifo_put(&l->queue, p);
}

/* link_deliver: a packet has come to the end of links[k]: on to the next one, or to its site. */
static void link_deliver(int k, struct packet *p)
{
	struct link *l = &links[k], *down = &links[nsites * (nsites + 1) + p->to];

	l->carried++;
	l->carried_bytes += p->size;
	if (k < nsites) {
		link_accept(link_between(k, p->to), p);
		return;
	}
	if (k < nsites * (nsites + 1) && down->p.rate > 0) {
		link_accept(down, p);
		return;
	}
	/* The kernel takes the packet at once; what it refuses is as good as lost. */
	if (write(sites[p->to].tun, p->data, p->size) != (ssize_t)p->size) {
		l->carried--;
		l->carried_bytes -= p->size;
		l->lost++;
	}
	free(p);
}

/* link_advance: all that is due by `now` at links[k]. Returns when it has something to do next, or INT64_MAX. */
static int64_t link_advance(int k, int64_t now)
{
	struct link *l = &links[k];
	int64_t next = INT64_MAX;

	link_transmit(l, now);
	while (l->wire.head && l->wire.head->when <= now)
		link_deliver(k, fifo_take(&l->wire));
	if (l->queue.head)
		next = l->free_at;
	if (l->wire.head && l->wire.head->when < next)
		next = l->wire.head->when;
	return next;
}

/* site_send: a packet of a site begins its way. */
static void site_send(int from, int to, const unsigned char *data, size_t size)
{
	struct link *up = &links[from];
	struct packet *p = malloc(sizeof *p + size);

	if (!p) {
		link_between(from, to)->full++;
		return;
	}
	memcpy(p->data, data, size);
	p->size = size;
	p->to = to;
	p->when = now_ns();
	link_accept(up->p.rate > 0 ? up : link_between(from, to), p);
}

/* site_read: takes what the site sends and puts it on its links. */
static void site_read(int from)
{
	static unsigned char buf[PACKET_MAX];

	for (int i = 0; i < READS_PER_TURN; i++) {
		ssize_t n = read(sites[from].tun, buf, sizeof buf);
		struct in_addr to;

		if (n <= 0)
			return;
		if (n < 20 || buf[0] >> 4 != 4)
			continue; /* IPv6 solicitations and the like */
		memcpy(&to, buf + 16, sizeof to);
		for (int j = 0; j < nsites; j++)
			if (j != from && sites[j].addr.s_addr == to.s_addr)
				site_send(from, j, buf, (size_t)n);
	}
}

/* ---- commands ---- */

/* between_matches: does the text name the link from -> to? */
static bool between_matches(const char *text, int from, int to)
{
	int a, b, n = 0;
	char sep;

	if (!strcmp(text, "all"))
		return true;
	if (sscanf(text, "%d%c%d%n", &a, &sep, &b, &n) != 3 || text[n])
		return false;
	return (from == a && to == b && (sep == ':' || sep == '-')) || (from == b && to == a && sep == '-');
}

/* link_matches: does the text name links[k]? */
static bool link_matches(const char *text, int k)
{
	int from, to, site, n = 0;

	if (is_between(k, &from, &to))
		return between_matches(text, from, to);
	if (k < nsites ? sscanf(text, "up:%d%n", &site, &n) != 1 : sscanf(text, "down:%d%n", &site, &n) != 1)
		return false;
	return !text[n] && (k < nsites ? k == site : k == nsites * (nsites + 1) + site);
}

static void show(char *out, size_t size)
{
	size_t n = 0;

	for (int k = 0; k < nlinks() && n < size; k++) {
		const struct link *l = &links[k];
		char name[24];
		int from, to;

		if (is_between(k, &from, &to))
			snprintf(name, sizeof name, "%d:%d", from, to);
		else if (from != to && l->p.rate > 0) /* a line */
			snprintf(name, sizeof name, "%s:%d", from < 0 ? "up" : "down", to);
		else
			continue;
		n += (size_t)snprintf(out + n, size - n,
			"%s state=%s latency=%.9gms rate=%.9gB/s loss=%.9g queue=%zu carried=%" PRIu64
			" bytes=%" PRIu64 " lost=%" PRIu64 " full=%" PRIu64 " dropped=%" PRIu64
			" waiting=%zu\n",
			name, l->cut ? "cut" : "up", (double)l->p.latency * 1e-6, l->p.rate, l->p.loss,
			queue_limit(&l->p), l->carried, l->carried_bytes, l->lost, l->full, l->dropped,
			l->queue.bytes);
	}
}

/* command: carries out one line, which it cuts up; the answer goes to out. Nothing changes when there is an error. */
static void command(char *line, char *out, size_t size)
{
	char *rest, *verb = strtok_r(line, " \n", &rest), *which;
	bool is_set, is_cut;
	int found = 0;

	if (verb && !strcmp(verb, "show")) {
		show(out, size);
		return;
	}
	is_set = verb && !strcmp(verb, "set");
	is_cut = verb && !strcmp(verb, "cut");
	if (!is_set && !is_cut && !(verb && !strcmp(verb, "heal"))) {
		snprintf(out, size, "error: the commands are set, cut, heal and show\n");
		return;
	}
	which = strtok_r(NULL, " \n", &rest);
	for (int k = 0; which && k < nlinks(); k++)
		found += link_matches(which, k);
	if (!found) {
		snprintf(out, size, "error: a link is like 0:1, 0-1, up:0, down:0 or all\n");
		return;
	}
	if (is_set ? !*rest : *rest != 0) {
		snprintf(out, size, "error: %s\n",
			is_set ? "set LINK KEY=VALUE..." : "cut and heal take a link only");
		return;
	}
	if (is_set) {
		struct params scratch = { 0 };
		const char *why = params_change(&scratch, rest);

		if (why) {
			snprintf(out, size, "error: %s\n", why);
			return;
		}
	}
	for (int k = 0; k < nlinks(); k++) {
		if (!link_matches(which, k))
			continue;
		if (is_set) {
			params_change(&links[k].p, rest);
			continue;
		}
		links[k].cut = is_cut;
		if (is_cut)
			link_forget(&links[k]);
	}
	snprintf(out, size, "ok\n");
}

/* ---- sockets ---- */

static int control_socket(const char *path, bool listening)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof sun.sun_path)
		die("%s is too long for a socket", path);
	strcpy(sun.sun_path, path);
	if (listening)
		umask(077);
	if (fd < 0 || (listening ? bind : connect)(fd, (struct sockaddr *)&sun, sizeof sun) < 0 ||
		(listening && listen(fd, 8) < 0))
		die("%s: %s", path, strerror(errno));
	return fd;
}

/* control_serve: one connection, one command, one answer. The peer is the same user and gets half a second. */
static void control_serve(int listener)
{
	static char line[TEXT_MAX], answer[TEXT_MAX];
	struct timeval patience = { .tv_usec = 500000 };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	n = recv(fd, line, sizeof line - 1, 0);
	if (n > 0) {
		line[n] = 0;
		answer[0] = 0;
		command(line, answer, sizeof answer);
		send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	close(fd);
}

/* control_ask: the other end, for the command line. The exit status. */
static int control_ask(const char *path, int argc, char **argv)
{
	static char text[TEXT_MAX];
	size_t n = 0;
	ssize_t got;
	int fd;

	for (int i = 0; i < argc && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "", argv[i]);
	if (n == 0 || n >= sizeof text)
		die("usage: wanem --ctl PATH COMMAND...");
	fd = control_socket(path, false);
	if (send(fd, text, n, MSG_NOSIGNAL) < 0 || (got = recv(fd, text, sizeof text - 1, 0)) <= 0)
		die("%s: no answer", path);
	text[got] = 0;
	fputs(text, strncmp(text, "error", 5) ? stdout : stderr);
	return strncmp(text, "error", 5) ? 0 : 1;
}

static void watch(int ep, int fd, int tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)tag };

	if (fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0)
		die("epoll: %s", strerror(errno));
}

static void relay(const char *socket_path, int sigfd)
{
	int listener = control_socket(socket_path, true), ep = epoll_create1(EPOLL_CLOEXEC);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	int64_t armed = INT64_MAX;

	for (int i = 0; i < nsites; i++)
		watch(ep, sites[i].tun, i);
	watch(ep, timer, nsites);
	watch(ep, listener, nsites + 1);
	watch(ep, sigfd, nsites + 2);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct epoll_event ev[16];
		int n = epoll_wait(ep, ev, 16, -1);
		int64_t now, next = INT64_MAX;

		for (int i = 0; i < n; i++) {
			int tag = (int)ev[i].data.u32;
			uint64_t ticks;

			if (tag < nsites)
				site_read(tag);
			else if (tag == nsites)
				armed = read(timer, &ticks, sizeof ticks) > 0 ? INT64_MAX : armed;
			else if (tag == nsites + 1)
				control_serve(listener);
			else
				return;
		}
		now = now_ns();
		for (int k = 0; k < nlinks(); k++) {
			int64_t t = link_advance(k, now);

			next = t < next ? t : next;
		}
		if (next != armed) {
			struct itimerspec at = { 0 };

			if (next != INT64_MAX) {
				at.it_value.tv_sec = next / 1000000000;
				at.it_value.tv_nsec = next % 1000000000;
			}
			timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
			armed = next;
		}
	}
}

int main(int argc, char **argv)
{
	struct params common = { 0 }, shared = { 0 };
	const char *socket_path = NULL;
	char **orders, answer[256];
	int home, norders = 0, i, sigfd;
	pid_t parent = getppid();
	sigset_t set;

	if (argc >= 3 && !strcmp(argv[1], "--ctl"))
		return control_ask(argv[2], argc - 3, argv + 3);
	if (!(orders = calloc((size_t)argc + 1, sizeof *orders)))
		die("out of memory");
	for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i += 2) {
		const char *key = argv[i] + 2, *value = i + 1 < argc ? argv[i + 1] : "", *why = NULL;

		if (!strcmp(key, "socket"))
			socket_path = value;
		else if (!strcmp(key, "mtu"))
			why = (mtu = atoi(value)) < 576 || mtu > PACKET_MAX ? "an MTU is 576 to 65535" : NULL;
		else if (!strcmp(key, "seed"))
			seed = strtoull(value, NULL, 10);
		else if (!strcmp(key, "uplink"))
			why = params_set(&shared, "rate", value);
		else if (!strcmp(key, "link"))
			orders[norders++] = argv[i + 1];
		else
			why = params_set(&common, key, value);
		if (why)
			die("--%s %s: %s", key, value, why);
	}
	nsites = argc - i;
	if (!socket_path || nsites < 2 || nsites > SITES_MAX)
		die("usage: wanem [--latency T] [--rate R] [--loss PERCENT] [--queue BYTES] [--mtu N] "
		    "[--seed N]"
		    " [--uplink R] [--link 'LINK KEY=VALUE...'] --socket PATH NETNS=ADDRESS "
		    "NETNS=ADDRESS...");
	sites = calloc((size_t)nsites, sizeof *sites);
	links = calloc((size_t)nlinks(), sizeof *links);
	if (!sites || !links)
		die("out of memory");
	for (int k = 0; k < nlinks(); k++) {
		int from, to;

		links[k].p = is_between(k, &from, &to) ? common : shared;
		fifo_init(&links[k].queue);
		fifo_init(&links[k].wire);
	}
	for (int k = 0; k < norders; k++) {
		size_t size = strlen(orders[k] ? orders[k] : "") + 5;
		char *line = malloc(size);

		if (!line)
			die("out of memory");
		snprintf(line, size, "set %s", orders[k] ? orders[k] : "");
		command(line, answer, sizeof answer);
		if (strcmp(answer, "ok\n"))
			die("--link %s: %s", orders[k], answer);
		free(line);
	}
	free(orders);

	/* Blocked before anything is made, so that none of them can come in between. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return 1;
	prctl(PR_SET_TIMERSLACK, 1);
	/* A wire does not wait for a processor: ahead of all that is measured, if we may. */
	sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 1 });

	if ((home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) < 0)
		die("/proc/self/ns/net: %s", strerror(errno));
	for (int k = 0; k < nsites; k++) {
		char *eq = strchr(argv[i + k], '=');

		if (!eq)
			die("a site is NETNS=ADDRESS, not %s", argv[i + k]);
		*eq = 0;
		sites[k].ns = argv[i + k];
		if (inet_pton(AF_INET, eq + 1, &sites[k].addr) != 1)
			die("%s is no IPv4 address", eq + 1);
		sites[k].tun = tun_open(sites[k].ns, sites[k].addr, mtu, home);
	}
	relay(socket_path, sigfd);
	unlink(socket_path);
	for (int k = 0; k < nlinks(); k++)
		link_forget(&links[k]);
	free(links);
	free(sites);
	return 0;
}
