/* rawlink.c: plain TCP as the reference of link.c, also between network namespaces: streams of messages of a size, measured at the
 * receivers. TCP_NODELAY, the kernel's own buffers; one write per message, as an MPI without a buffer has to.
 *
 * usage: rawlink receive ADDRESS RECEIVERS CONNECTIONS WARM SECONDS SIZE
 *                prints "port N", takes CONNECTIONS for each of RECEIVERS processes, prints "rate BYTES-PER-SECOND", the sum, when each
 *                has had WARM seconds that do not count and SECONDS that do; then closes all
 *        rawlink send ADDRESS PORT PROCESSES CONNECTIONS SIZE
 *                PROCESSES processes with CONNECTIONS each send until the receivers close
 * MPWide's way, several streams for one message, is 1 process with several connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNS_MAX 64
#define PIECE     (1 << 20) /* bytes for one of several streams at a time */
#define READ_MIN  65536     /* a reader of short messages reads many at once */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	fprintf(stderr, "rawlink: %s: %s\n", what, strerror(errno));
	exit(1);
}

static char *get_memory(size_t n)
{
	char *p = malloc(n);

	if (!p)
		die("out of memory");
	memset(p, 1, n);
	return p;
}

static double receive(const int *fd, int n, double warm, double seconds, size_t size)
{
	size_t room = size < READ_MIN ? READ_MIN : size;
	char **buf = (char **)(void *)get_memory((size_t)n * sizeof *buf);
	size_t *at = (size_t *)(void *)get_memory((size_t)n * sizeof *at);
	struct pollfd *p = (struct pollfd *)(void *)get_memory((size_t)n * sizeof *p);
	double start = 0, t0 = 0, t, sum = 0, sum0 = 0;

	for (int i = 0; i < n; i++) {
		buf[i] = get_memory(room);
		at[i] = 0;
		p[i] = (struct pollfd){ fd[i], POLLIN, 0 };
	}
	for (;;) {
		if (n > 1 && poll(p, (nfds_t)n, -1) < 0)
			die("poll");
		for (int i = 0; i < n; i++) {
			ssize_t k;

			if (n > 1 && !p[i].revents)
				continue;
			k = recv(fd[i], buf[i] + at[i], room - at[i], n > 1 ? MSG_DONTWAIT : 0);
			if (k < 0 && errno == EAGAIN)
				continue;
			if (k <= 0)
				die("a sender is gone");
			at[i] = (at[i] + (size_t)k) % room;
			sum += (double)k;
		}
		t = now();
		if (start == 0)
			start = t;
		if (t0 == 0 && t - start >= warm) {
			t0 = t;
			sum0 = sum;
		} else if (t0 > 0 && t - t0 >= seconds) {
			return (sum - sum0) / (t - t0);
		}
	}
}

static int receivers(const char *address, int procs, int conns, double warm, double seconds, size_t size)
{
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd[CONNS_MAX];
	struct sockaddr_in a = { .sin_family = AF_INET };
	double *rate = mmap(
		NULL, CONNS_MAX * sizeof *rate, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	socklen_t len = sizeof a;
	double sum = 0;
	int status;

	if (procs * conns > CONNS_MAX || inet_pton(AF_INET, address, &a.sin_addr) != 1 ||
		rate == MAP_FAILED || bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, CONNS_MAX) ||
		getsockname(l, (struct sockaddr *)&a, &len))
		die(address);
	printf("port %d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (int i = 0; i < procs * conns; i++) {
		fd[i] = accept(l, NULL, NULL);
		if (fd[i] < 0)
			die("accept");
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	}
	for (int i = 0; i < procs; i++) {
		if (fork() == 0) {
			rate[i] = receive(fd + i * conns, conns, warm, seconds, size);
			_exit(0);
		}
	}
	for (int i = 0; i < procs; i++)
		if (wait(&status) < 0 || status != 0)
			return 1;
	for (int i = 0; i < procs; i++)
		sum += rate[i];
	printf("rate %.0f\n", sum);
	return 0; /* closes all */
}

static void send_all(const struct sockaddr_in *a, int conns, size_t size)
{
	size_t piece = conns > 1 && size > PIECE ? PIECE : size, left[CONNS_MAX] = { 0 };
	char *buf = get_memory(size);
	struct pollfd p[CONNS_MAX];
	int one = 1;

	for (int i = 0; i < conns; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (const struct sockaddr *)a, sizeof *a))
			die("connect");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		p[i] = (struct pollfd){ fd, POLLOUT, 0 };
	}
	for (;;) {
		if (conns > 1 && poll(p, (nfds_t)conns, -1) < 0)
			die("poll");
		for (int i = 0; i < conns; i++) {
			ssize_t k;

			if (conns > 1 && !p[i].revents)
				continue;
			if (left[i] == 0)
				left[i] = piece;
			k = send(p[i].fd, buf + piece - left[i], left[i],
				MSG_NOSIGNAL | (conns > 1 ? MSG_DONTWAIT : 0));
			if (k < 0 && errno != EAGAIN)
				return; /* the receiver has had enough */
			left[i] -= k > 0 ? (size_t)k : 0;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 8 && !strcmp(argv[1], "receive"))
		return receivers(argv[2], atoi(argv[3]), atoi(argv[4]), atof(argv[5]), atof(argv[6]),
			(size_t)atol(argv[7]));
	if (argc == 7 && !strcmp(argv[1], "send") && atoi(argv[5]) <= CONNS_MAX) {
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3])) };
		int procs = atoi(argv[4]);

		if (inet_pton(AF_INET, argv[2], &a.sin_addr) != 1)
			die(argv[2]);
		for (int i = 1; i < procs; i++)
			if (fork() == 0)
				break;
		send_all(&a, atoi(argv[5]), (size_t)atol(argv[6]));
		return 0;
	}
	fprintf(stderr, "usage: see the beginning of tests/bench/rawlink.c\n");
	return 2;
}
