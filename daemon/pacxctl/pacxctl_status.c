/* pacxctl_status.c: pacxctl status: all daemons and their links once, as tables or as JSON.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "pacxctl.h"
#include "daemons.h"

static void print_daemons(const struct pxd_daemons *d, int from, int to)
{
	printf("%-24s %7s %8s %9s %21s  %s\n", "DAEMON", "PID", "UP", "MEMORY", "BUFFER", "VERSION");
	for (int i = from; i < to; i++) {
		const struct pxd_daemon *x = &d->list[i];
		char name[PX_NAME_MAX + 32], up[16], memory[16], used[16], all[16], buffer[40];

		snprintf(name, sizeof name, "%s:%s/%.0f", x->site, x->role, x->gateway);
		snprintf(buffer, sizeof buffer, "%s of %s", pxd_memory_text(x->used, used),
			pxd_memory_text(x->buffer, all));
		printf("%-24s %7.0f %8s %9s %21s  %s\n", name, x->pid, pxd_time_text(x->uptime_s, up),
			pxd_memory_text(x->memory, memory), buffer, x->version);
	}
}

static void print_links(const struct pxd_daemons *d, int from, int to)
{
	printf("\n%-24s %-20s %-18s %7s %9s %9s %9s %7s %9s %9s %6s\n", "DAEMON", "LINK", "STATE", "STREAMS",
		"RTT", "MESSAGES", "PAYLOAD", "RATIO", "QUEUED", "RETAINED", "RECONN");
	for (int i = from; i < to; i++) {
		const struct pxd_daemon *x = &d->list[i];

		for (int k = 0; k < x->nlinks; k++) {
			const struct pxd_daemon_link *l = &x->links[k];
			char name[PX_NAME_MAX + 32], way[2 * PX_NAME_MAX + 8], state[48], rtt[24] = "-",
											  ratio[24] = "-";
			char since[16], payload[16], queued[16], retained[16];

			snprintf(name, sizeof name, "%s:%s/%.0f", x->site, x->role, x->gateway);
			snprintf(way, sizeof way, "%s->%s", l->from, l->to);
			snprintf(state, sizeof state, "%s %s", l->state, pxd_time_text(l->since_s, since));
			if (l->rtt_us > 0)
				snprintf(rtt, sizeof rtt, "%.2f ms", l->rtt_us / 1e3);
			if (l->coded > 0)
				snprintf(ratio, sizeof ratio, "%.2f", l->plain / l->coded);
			printf("%-24s %-20s %-18s %7.0f %9s %9.0f %9s %7s %9s %9s %6.0f\n", name, way, state,
				l->streams, rtt, l->messages, pxd_size_text(l->payload, payload), ratio,
				pxd_memory_text(l->queued, queued), pxd_memory_text(l->retained, retained),
				l->reconnects);
			if (l->lossy_plain > 0)
				printf("%-24s %-20s %s of numbers are lossy, within the bound that was "
				       "asked for\n",
					"", way, pxd_size_text(l->lossy_plain, payload));
		}
	}
}

static void print_tables(const struct pxd_daemons *d)
{
	for (int i = 0, end; i < d->n; i = end) {
		for (end = i + 1; end < d->n && strcmp(d->list[end].job, d->list[i].job) == 0;)
			end++;
		printf("%sjob %s\n", i ? "\n" : "", d->list[i].job);
		print_daemons(d, i, end);
		print_links(d, i, end);
	}
}

int pxd_ctl_status(int argc, char **argv)
{
	static const struct option longs[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
	struct pxd_daemons d;
	bool json = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt != 'j') {
			fprintf(stderr, "pacxctl: see pacxctl --help\n");
			return PXD_CTL_USAGE;
		}
		json = true;
	}
	if (argc - optind > 1) {
		fprintf(stderr, "pacxctl: status: found '%s', expected one job at most\n", argv[optind + 1]);
		return PXD_CTL_USAGE;
	}
	if (pxd_daemons_read(&d, argv[optind]) < 0) {
		fprintf(stderr, "pacxctl: out of memory\n");
		return PXD_CTL_WRONG;
	}
	if (json) {
		putchar('[');
		for (int i = 0; i < d.n; i++)
			printf("%s%s", i ? ",\n" : "", d.list[i].text);
		puts("]");
	} else {
		print_tables(&d);
	}
	if (d.silent)
		fprintf(stderr, "pacxctl: %d daemon%s not answer\n", d.silent,
			d.silent > 1 ? "s do" : " does");
	if (d.n == 0 && !json)
		fprintf(stderr, "pacxctl: no daemon of yours runs on this machine%s%s\n",
			argv[optind] ? " for job " : "", argv[optind] ? argv[optind] : "");
	opt = d.n == 0 || d.silent ? PXD_CTL_WRONG : 0;
	pxd_daemons_free(&d);
	return opt;
}
