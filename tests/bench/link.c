/* link.c: the MPI side of link.py: traffic between sites, measured at the receiver.
 *
 * usage: link latency ROUNDS
 *        link stream SENDERS WARM SECONDS SIZE...    the first SENDERS ranks send to the others, sender i to receiver i modulo their
 *                                                    number: messages of SIZE bytes, several under way, for WARM seconds that do
 *                                                    not count and SECONDS that do; random data
 *        link exchange ROUNDS BYTES KIND...          the first and the last rank exchange BYTES of data of a kind (kinds.h, or
 *                                                    file:PATH:ELEMENT-SIZE); what arrives is compared
 * Prints lines "NAME VALUE". latency: lat_us (one way, median). stream: for each SIZE rate_SIZE (bytes/s, all receivers), cpu_SIZE
 * (processor seconds of all daemons of the job on this machine per 10^9 bytes), and, with the environment variable
 * LINK_SERIES, series_SIZE_I (bytes/s in half second I from the beginning). exchange: for each kind first_KIND and time_KIND
 * (seconds, the first round and the median of the others) and bytes_KIND.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "kinds.h"

#define TAG_DATA    1
#define TAG_END     2
#define TAG_STOP    3
#define AHEAD       (4 << 20) /* bytes under way per sender, but at least 2 messages and at most AHEAD_MAX */
#define AHEAD_MAX   64
#define SERIES_MAX  64
#define SERIES_STEP 0.5

static int rank, size;

static void die(const char *what)
{
	fprintf(stderr, "link: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static void *get_memory(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);

	if (!p)
		die("out of memory");
	memset(p, 1, n);
	return p;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Does environment variable NAME of process pid have the value that it has here? */
static bool same_env(const char *pid, const char *name)
{
	static char text[65536];
	const char *mine = getenv(name);
	char path[64];
	size_t n, len = strlen(name);
	FILE *f;

	snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
	f = fopen(path, "r");
	n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	for (char *at = text; mine && at < text + n; at += strlen(at) + 1)
		if (!strncmp(at, name, len) && at[len] == '=')
			return !strcmp(at + len + 1, mine);
	return false;
}

/* Processor seconds that the daemons of this job have used, on this machine. */
static double daemons_cpu(void)
{
	DIR *d = opendir("/proc");
	double sum = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		unsigned long user, system;
		char path[64], text[512], *end;
		size_t n = 0;
		FILE *f;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%.20s/stat", e->d_name);
		f = fopen(path, "r");
		if (f) {
			n = fread(text, 1, sizeof text - 1, f);
			fclose(f);
		}
		text[n] = 0;
		end = strrchr(text, ')');
		if (end && strstr(text, "(pacxd-") && same_env(e->d_name, "PACX_JOB") &&
			sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
				&system) == 2)
			sum += (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	}
	if (d)
		closedir(d);
	return sum;
}

static void latency(int rounds)
{
	int peer = rank == 0 ? size - 1 : 0;
	double *t = get_memory((size_t)rounds * sizeof *t);
	char c = 0;

	if (rank != 0 && rank != size - 1)
		return;
	for (int i = -rounds / 4; i < rounds; i++) {
		double start = MPI_Wtime();

		if (rank == 0)
			MPI_Send(&c, 1, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
		MPI_Recv(&c, 1, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank != 0)
			MPI_Send(&c, 1, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD);
		if (i >= 0)
			t[i] = (MPI_Wtime() - start) / 2 * 1e6;
	}
	if (rank == 0)
		printf("lat_us %.3f\n", median(t, rounds));
	free(t);
}

static int ahead(int bytes)
{
	int n = AHEAD / bytes;

	return n < 2 ? 2 : n > AHEAD_MAX ? AHEAD_MAX : n;
}

/* Messages until the receiver says stop, then one END for each receive that it has posted. The bytes sent. */
static double send_all(int to, int bytes)
{
	int n = ahead(bytes), stop = 0, i;
	MPI_Request r[AHEAD_MAX], stopped;
	MPI_Status st[AHEAD_MAX];
	char *buf = get_memory((size_t)bytes), c;
	double sum = 0;

	noise((uint8_t *)buf, (size_t)bytes);
	for (i = 0; i < n; i++)
		r[i] = MPI_REQUEST_NULL;
	MPI_Irecv(&c, 1, MPI_CHAR, to, TAG_STOP, MPI_COMM_WORLD, &stopped);
	for (i = 0; !stop; i = (i + 1) % n) {
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		MPI_Isend(buf, bytes, MPI_CHAR, to, TAG_DATA, MPI_COMM_WORLD, &r[i]);
		sum += bytes;
		if (bytes > 65536 || i == 0)
			MPI_Test(&stopped, &stop, MPI_STATUS_IGNORE);
	}
	MPI_Waitall(n, r, st);
	for (i = 0; i < n; i++)
		MPI_Send(&c, 1, MPI_CHAR, to, TAG_END, MPI_COMM_WORLD);
	free(buf);
	return sum;
}

/* Receives from the m ranks first, first + step, ... The rate in bytes/s. */
static double receive_all(int first, int step, int m, int bytes, double warm, double seconds, double *series)
{
	int n = ahead(bytes), ended = 0, stopping = 0;
	MPI_Request *r = get_memory((size_t)(n * m) * sizeof *r);
	char **buf = get_memory((size_t)(n * m) * sizeof *buf), c = 0;
	double start = 0, t0 = 0, t1 = 0, sum = 0, sum0 = 0, sum1 = 0;
	int *order = get_memory((size_t)m * sizeof *order); /* the oldest receive of each sender */

	for (int k = 0; k < m; k++) {
		order[k] = k * n;
		for (int i = 0; i < n; i++) {
			buf[k * n + i] = get_memory((size_t)bytes);
			MPI_Irecv(buf[k * n + i], bytes, MPI_CHAR, first + k * step, MPI_ANY_TAG,
				MPI_COMM_WORLD, &r[k * n + i]);
		}
	}
	while (ended < n * m) {
		int k = 0, i;
		MPI_Status st;
		double t;

		/* Messages of one sender complete in order, so its oldest receive is the one to look at. */
		if (m == 1) {
			i = order[0];
			MPI_Wait(&r[i], &st);
		} else {
			MPI_Request oldest[64];

			for (k = 0; k < m; k++)
				oldest[k] = r[order[k]];
			MPI_Waitany(m, oldest, &k, &st);
			i = order[k];
			r[i] = MPI_REQUEST_NULL;
		}
		order[k] = k * n + (i - k * n + 1) % n;
		if (st.MPI_TAG == TAG_END) {
			ended++;
			continue;
		}
		sum += bytes;
		MPI_Irecv(buf[i], bytes, MPI_CHAR, first + k * step, MPI_ANY_TAG, MPI_COMM_WORLD, &r[i]);
		if (stopping || (bytes < 4096 && start > 0 && (long)(sum / bytes) % 8 != 0))
			continue;
		t = MPI_Wtime();
		if (start == 0)
			start = t;
		if (series && (t - start) / SERIES_STEP < SERIES_MAX)
			series[(int)((t - start) / SERIES_STEP)] += (double)bytes * (bytes < 4096 ? 8 : 1);
		if (t0 == 0 && t - start >= warm) {
			t0 = t;
			sum0 = sum;
		} else if (t0 > 0 && t - t0 >= seconds) {
			t1 = t;
			sum1 = sum;
			stopping = 1;
			for (int j = 0; j < m; j++)
				MPI_Send(&c, 1, MPI_CHAR, first + j * step, TAG_STOP, MPI_COMM_WORLD);
		}
	}
	for (int i = 0; i < n * m; i++)
		free(buf[i]);
	free(buf);
	free(r);
	free(order);
	return (sum1 - sum0) / (t1 - t0);
}

static void stream(int senders, double warm, double seconds, int bytes)
{
	int receivers = size - senders;
	double mine[2] = { 0, 0 }, all[2], cpu = 0, series[SERIES_MAX] = { 0 };

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		cpu = daemons_cpu();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank < senders)
		mine[0] = send_all(senders + rank % receivers, bytes);
	else if (rank - senders < senders)
		mine[1] = receive_all(rank - senders, receivers,
			(senders - (rank - senders) + receivers - 1) / receivers, bytes, warm, seconds,
			series);
	MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("rate_%d %.0f\ncpu_%d %.4f\n", bytes, all[1], bytes,
			(daemons_cpu() - cpu) / all[0] * 1e9);
	if (getenv("LINK_SERIES")) {
		double sums[SERIES_MAX];

		MPI_Reduce(series, sums, SERIES_MAX, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		for (int i = 0; rank == 0 && i < SERIES_MAX && sums[i] > 0; i++)
			printf("series_%d_%d %.0f\n", bytes, i, sums[i] / SERIES_STEP);
	}
	fflush(stdout);
}

/* Fill buf with data of a kind, a file only as far as it goes; the element size. */
static unsigned fill(const char *kind, uint8_t *buf, size_t *bytes)
{
	char path[256];
	unsigned elem = 0;
	size_t n = 0;
	FILE *f;

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		if (strcmp(kinds[k].key, kind) != 0)
			continue;
		kinds[k].fill(buf, *bytes);
		return kinds[k].elem;
	}
	if (sscanf(kind, "file:%255[^:]:%u", path, &elem) != 2 || elem == 0)
		die("no such kind of data");
	f = fopen(path, "rb");
	if (f) {
		n = fread(buf, 1, *bytes, f);
		fclose(f);
	}
	if (n < elem)
		die("a file of data is empty or cannot be read");
	*bytes = n / elem * elem;
	return elem;
}

static void exchange(int rounds, size_t bytes, const char *kind)
{
	uint8_t *out = get_memory(bytes), *in = get_memory(bytes);
	double *t = get_memory((size_t)rounds * sizeof *t), first = 0;
	unsigned elem = fill(kind, out, &bytes);
	MPI_Datatype type = elem == 8 ? MPI_DOUBLE : elem == 4 ? MPI_FLOAT : MPI_CHAR;
	int peer = rank == 0 ? size - 1 : 0;
	char name[64];

	if (rank != 0 && rank != size - 1)
		return;
	for (int i = -1; i < rounds; i++) {
		double start;

		MPI_Sendrecv(NULL, 0, MPI_CHAR, peer, TAG_STOP, NULL, 0, MPI_CHAR, peer, TAG_STOP,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		memset(in, 0, bytes);
		start = MPI_Wtime();
		MPI_Sendrecv(out, (int)(bytes / elem), type, peer, TAG_DATA, in, (int)(bytes / elem), type,
			peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (i < 0)
			first = MPI_Wtime() - start;
		else
			t[i] = MPI_Wtime() - start;
		if (memcmp(in, out, bytes) != 0)
			die("what has arrived is not what was sent");
	}
	snprintf(name, sizeof name, "%s", strncmp(kind, "file:", 5) ? kind : "file");
	if (rank == 0)
		printf("first_%s %.6f\ntime_%s %.6f\nbytes_%s %zu\n", name, first, name, median(t, rounds),
			name, bytes);
	fflush(stdout);
	free(out);
	free(in);
	free(t);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc == 3 && !strcmp(argv[1], "latency")) {
		latency(atoi(argv[2]));
	} else if (argc > 5 && !strcmp(argv[1], "stream") && atoi(argv[2]) > 0 && atoi(argv[2]) < size) {
		for (int i = 5; i < argc; i++)
			stream(atoi(argv[2]), atof(argv[3]), atof(argv[4]), atoi(argv[i]));
	} else if (argc > 4 && !strcmp(argv[1], "exchange")) {
		for (int i = 4; i < argc; i++)
			exchange(atoi(argv[2]), (size_t)atol(argv[3]) / 240 * 240, argv[i]);
	} else {
		die("see the beginning of tests/bench/link.c");
	}
	MPI_Finalize();
	return 0;
}
