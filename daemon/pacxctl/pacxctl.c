/* pacxctl.c: pacxctl's command line: the subcommands, what they have in common, and keygen.
 */
#include "pacxctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"
#include "base/err.h"
#include "text.h"
#include "proof.h"

static const char usage_text[] =
	"usage: pacxctl status [--json] [JOB]            what the relay daemons of this machine are doing\n"
	"       pacxctl top [-d SECONDS] [-n ROUNDS] [JOB]   the same as a live screen; q ends it\n"
	"       pacxctl doctor -f HOSTFILE [options]     test every hop of every link\n"
	"       pacxctl probe -f HOSTFILE [options]      measure latency and bandwidth, propose link "
	"options\n"
	"       pacxctl probe --recording FILE [--rate R] [--rtt T]   try compression on what pacxrun "
	"--record "
	"wrote\n"
	"       pacxctl answer -f HOSTFILE [options]     answer doctor and probe of other sites while no job "
	"runs\n"
	"       pacxctl mpis                             the MPIs that PACX is built for here\n"
	"       pacxctl keygen FILE                      make a key for sites that are started by hand\n"
	"       pacxctl doorkey KEYFILE FILE             make the key for a relay's --door\n"
	"\n"
	"  -f, --hostfile F     the sites are described in F\n"
	"      --site NAME      speak for this site; the default is each site with an address of this "
	"machine\n"
	"      --timeout T      how long to wait at each hop; the default is 10s\n"
	"      --for T          answer: end after this time; probe: measure so long each time, the default "
	"is 1s\n"
	"      --rate R, --rtt T    of the link that the recording is for; the defaults are 1.25MB/s and "
	"35ms\n"
	"      --version, --help\n"
	"\n"
	"See pacxctl(1).\n";

static int options_read(int argc, char **argv, struct pxd_ctl_options *o)
{
	enum { SITE = 256, TIMEOUT, FOR, RECORDING, RATE, RTT };
	static const struct option longs[] = {
		{ "hostfile", required_argument, NULL, 'f' },
		{ "site", required_argument, NULL, SITE },
		{ "timeout", required_argument, NULL, TIMEOUT },
		{ "for", required_argument, NULL, FOR },
		{ "recording", required_argument, NULL, RECORDING },
		{ "rate", required_argument, NULL, RATE },
		{ "rtt", required_argument, NULL, RTT },
		{ NULL, 0, NULL, 0 },
	};
	struct pxd_text t = { .why = (char[PXD_WHY]){ "" }, .cap = PXD_WHY, .flat = true };
	int opt, rc = 0;

	o->timeout_ms = PXD_CTL_TIMEOUT_S * 1000;
	o->rtt_us = -1;
	while (rc >= 0 && (opt = getopt_long(argc, argv, "f:", longs, NULL)) != -1) {
		switch (opt) {
		case 'f':
			o->file = optarg;
			break;
		case SITE:
			o->site = optarg;
			break;
		case TIMEOUT:
			t.file = "--timeout";
			rc = pxd_value_duration(&t, (struct pxd_mark){ 0, 0 }, optarg, &o->timeout_ms);
			break;
		case FOR:
			t.file = "--for";
			rc = pxd_value_duration(&t, (struct pxd_mark){ 0, 0 }, optarg, &o->for_ms);
			break;
		case RECORDING:
			o->recording = optarg;
			break;
		case RATE:
			t.file = "--rate";
			rc = pxd_value_rate(&t, (struct pxd_mark){ 0, 0 }, optarg, &o->rate);
			break;
		case RTT:
			t.file = "--rtt";
			rc = pxd_value_latency(&t, (struct pxd_mark){ 0, 0 }, optarg, &o->rtt_us);
			break;
		default:
			fprintf(stderr, "pacxctl: see pacxctl --help\n");
			return PX_EINVAL;
		}
	}
	if (rc < 0)
		fprintf(stderr, "pacxctl: %s\n", t.why);
	else if (argv[optind])
		fprintf(stderr, "pacxctl: found '%s', expected options only; see pacxctl --help\n",
			argv[optind]);
	else if (o->recording && (o->file || strcmp(argv[0], "probe") != 0))
		fprintf(stderr, "pacxctl: --recording is for probe without a hostfile; see pacxctl --help\n");
	else if (!o->file && !o->recording)
		fprintf(stderr, "pacxctl: %s needs -f HOSTFILE; see pacxctl --help\n", argv[0]);
	else
		return 0;
	return PX_EINVAL;
}

bool pxd_ctl_selected(const struct pxd_ctl *c, int site)
{
	const struct pxd_site *s = &c->h->sites[site];

	if (c->o.site)
		return strcmp(s->name, c->o.site) == 0;
	if (!s->listen && !s->has_host)
		return false; /* it could be anywhere */
	for (int g = 0; g < s->ngateways; g++) {
		const char *bind = s->gateways[g].bind_host;
		bool any = strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0;

		if (pxd_host_is_here(any ? s->gateways[g].host : bind))
			return true;
	}
	return false;
}

int pxd_ctl_open(struct pxd_ctl *c, int argc, char **argv)
{
	const char *job = getenv("PACX_JOB");
	char why[PXD_WHY];
	bool some = false;

	*c = (struct pxd_ctl){ 0 };
	if (options_read(argc, argv, &c->o) < 0)
		return PXD_CTL_USAGE;
	if (c->o.recording)
		return 0;
	if (pxd_hosts_load(c->o.file, &c->h, why, sizeof why) < 0)
		goto fail;
	if (job && *job && pxd_hosts_job_set(c->h, job, why, sizeof why) < 0)
		goto fail;
	if (c->o.site && pxd_hosts_find(c->h, c->o.site) < 0) {
		snprintf(why, sizeof why, "--site: found '%.64s', expected the name of a site in %s",
			c->o.site, c->o.file);
		goto fail;
	}
	for (int i = 0; i < c->h->nsites && !some; i++)
		some = pxd_ctl_selected(c, i);
	if (!some) {
		snprintf(why, sizeof why,
			"no site of %s has an address of this machine; say with --site which one this is",
			c->o.file);
		goto fail;
	}
	if (getenv("PACX_KEY")) {
		if (pxd_key_take(c->h, -1, c->key, why, sizeof why) < 0)
			goto fail;
		c->env_key = true;
	}
	pxd_jobhash(c->h->job_id, c->jobhash);
	return 0;
fail:
	fprintf(stderr, "pacxctl: %s\n", why);
	pxd_ctl_close(c);
	return PXD_CTL_USAGE;
}

void pxd_ctl_close(struct pxd_ctl *c)
{
	pxd_key_wipe(c->key, sizeof c->key);
	pxd_hosts_free(c->h);
	c->h = NULL;
}

int pxd_ctl_tls(struct pxd_ctl *c, int self, struct pxd_tls_ctx **out, bool *keyed, char *why, size_t cap)
{
	const char *file = getenv("PACX_KEY_FILE");
	uint8_t key[PXD_KEY_SIZE] = { 0 }; /* that everybody knows */
	bool needed = false;
	int rc = 0;

	*out = NULL;
	*keyed = true;
	for (int i = 0; i < c->h->nsites; i++)
		needed |= i != self && !pxd_hosts_link(c->h, self, i)->plain;
	if (!needed)
		return 0;
	if (c->env_key)
		memcpy(key, c->key, sizeof key);
	else if ((file && *file) || c->h->sites[self].key)
		rc = pxd_key_take(c->h, self, key, why, cap);
	else
		*keyed = false;
	if (rc >= 0)
		rc = pxd_tls_ctx_new(out, key, c->jobhash, self, why, cap);
	pxd_key_wipe(key, sizeof key);
	return rc;
}

/* key_file_put: into a new file that nobody else can read. 0, or an exit status after a message. */
static int key_file_put(const char *path, const uint8_t key[PXD_KEY_SIZE])
{
	char text[PXD_KEY_TEXT + 1];
	int fd, rc = 0;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		fprintf(stderr, "pacxctl: %s: %s\n", path,
			errno == EEXIST ? "it exists already; a key that is in use must not be lost, so "
					  "remove it yourself"
					: strerror(errno));
		return PXD_CTL_WRONG;
	}
	pxd_key_text(key, text);
	strcat(text, "\n");
	/* fchmod: a file system may have its own idea of modes. */
	if (fchmod(fd, 0600) < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0)
		rc = PX_EIO;
	pxd_key_wipe(text, sizeof text);
	if (close(fd) < 0 || rc < 0) {
		fprintf(stderr, "pacxctl: %s: cannot write the key: %s\n", path, strerror(errno));
		unlink(path);
		return PXD_CTL_WRONG;
	}
	return 0;
}

static int keygen(int argc, char **argv)
{
	uint8_t key[PXD_KEY_SIZE];
	int rc;

	if (argc != 2 || !argv[1][0]) {
		fprintf(stderr, "pacxctl: keygen needs the name of one file; see pacxctl --help\n");
		return PXD_CTL_USAGE;
	}
	if (pxd_key_make(key) < 0) {
		fprintf(stderr, "pacxctl: no random numbers are to be had: %s\n", strerror(errno));
		return PXD_CTL_WRONG;
	}
	rc = key_file_put(argv[1], key);
	pxd_key_wipe(key, sizeof key);
	if (rc == 0)
		printf("%s: a new key. Copy it to each site with mode 600, and name it there with key: in "
		       "the "
		       "hostfile.\n",
			argv[1]);
	return rc;
}

static int doorkey(int argc, char **argv)
{
	uint8_t key[PXD_KEY_SIZE], door[PXD_KEY_SIZE];
	char why[PXD_WHY];
	int rc = PXD_CTL_WRONG;

	if (argc != 3 || !argv[1][0] || !argv[2][0]) {
		fprintf(stderr, "pacxctl: doorkey needs a key file and the name of a new file; see pacxctl "
				"--help\n");
		return PXD_CTL_USAGE;
	}
	if (pxd_key_load(argv[1], key, why, sizeof why) < 0)
		fprintf(stderr, "pacxctl: %s\n", why);
	else if (pxd_proof_key(key, door) < 0)
		fprintf(stderr, "pacxctl: cannot derive a key (OpenSSL)\n");
	else
		rc = key_file_put(argv[2], door);
	pxd_key_wipe(key, sizeof key);
	pxd_key_wipe(door, sizeof door);
	if (rc == 0)
		printf("%s: the key of the door for jobs with %s; it opens no link. Copy it to the relay, "
		       "for "
		       "--door.\n",
			argv[2], argv[1]);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = { { "status", pxd_ctl_status }, { "top", pxd_ctl_top }, { "doctor", pxd_ctl_doctor },
		{ "probe", pxd_ctl_probe }, { "answer", pxd_ctl_answer }, { "mpis", pxd_ctl_mpis },
		{ "keygen", keygen }, { "doorkey", doorkey } };
	const char *names[sizeof commands / sizeof commands[0]];
	const int n = (int)(sizeof commands / sizeof commands[0]);
	const char *word = argc > 1 ? argv[1] : "";

	px_log_init("pacxctl", PX_LOG_WARN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (strcmp(word, "--version") == 0) {
		printf("pacxctl %s\n", PX_VERSION_TEXT);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		names[i] = commands[i].name;
		if (strcmp(word, names[i]) == 0)
			return commands[i].run(argc - 1, argv + 1);
	}
	if (*word)
		fprintf(stderr,
			"pacxctl: found '%.40s', expected a command (the nearest is '%s'); see pacxctl "
			"--help\n",
			word, pxd_key_nearest(word, names, n, NULL));
	else
		fputs(usage_text, stderr);
	return PXD_CTL_USAGE;
}
