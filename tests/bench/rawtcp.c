/* rawtcp.c: the reference of latency.c: two processes, one TCP connection over loopback, TCP_NODELAY. The latency is taken with
 * polling, the best that TCP can do: a blocked reader on an idle core may take ten times as long to wake.
 * Prints lat_us (one way, 81 bytes = what one byte costs on a PACX link), mbs_1m, mbs_16m.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SMALL 81

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void get(int fd, char *buf, size_t n)
{
	while (n > 0) {
		ssize_t k = read(fd, buf, n);

		if (k <= 0)
			exit(1);
		buf += k;
		n -= (size_t)k;
	}
}

static void poll_get(int fd, char *buf, size_t n)
{
	while (n > 0) {
		ssize_t k = recv(fd, buf, n, MSG_DONTWAIT);

		if (k == 0 || (k < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
			exit(1);
		if (k > 0) {
			buf += k;
			n -= (size_t)k;
		}
	}
}

static void put(int fd, const char *buf, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, buf, n);

		if (k <= 0)
			exit(1);
		buf += k;
		n -= (size_t)k;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double latency(int fd, int first, int rounds)
{
	double *t = malloc((size_t)rounds * sizeof *t), m;
	char buf[SMALL] = { 0 };

	for (int i = 0; i < rounds; i++) {
		double start = now();

		if (first)
			put(fd, buf, SMALL);
		poll_get(fd, buf, SMALL);
		if (!first)
			put(fd, buf, SMALL);
		t[i] = (now() - start) / 2 * 1e6;
	}
	qsort(t, (size_t)rounds, sizeof *t, by_value);
	m = t[rounds / 2];
	free(t);
	return m;
}

static double stream(int fd, int first, size_t bytes, int n)
{
	char *buf = calloc(1, bytes), c = 0;
	double start = now(), s;

	for (int i = 0; i < n; i++)
		first ? put(fd, buf, bytes) : get(fd, buf, bytes);
	first ? get(fd, &c, 1) : put(fd, &c, 1);
	s = now() - start;
	free(buf);
	return (double)bytes * n / s / 1e6;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 4000, mib = argc > 2 ? atoi(argv[2]) : 256, one = 1, fd,
	    first;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	double lat, m1, m16;

	if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 1) ||
		getsockname(l, (struct sockaddr *)&a, &len))
		return 1;
	first = fork() != 0;
	if (first) {
		fd = accept(l, NULL, NULL);
	} else {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&a, sizeof a))
			return 1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	latency(fd, first, rounds / 4 + 1);
	lat = latency(fd, first, rounds);
	stream(fd, first, 1 << 20, 16);
	m1 = stream(fd, first, 1 << 20, mib);
	m16 = stream(fd, first, 16 << 20, mib / 16 + 1);
	if (first) {
		printf("lat_us %.3f\nmbs_1m %.3f\nmbs_16m %.3f\n", lat, m1, m16);
		wait(NULL);
	}
	return 0;
}
