/* descend.c: see descend.h. */
#include "descend.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
	pid_t pid, parent, group;
	bool zombie;
	bool below; /* descends from the root */
};

static bool process_read(const char *pid, struct process *p)
{
	char path[64], text[512], *end, state;
	int fd, parent, group;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')'); /* the name in parentheses may itself contain anything */
	if (!end || sscanf(end + 1, " %c %d %d", &state, &parent, &group) != 3)
		return false;
	*p = (struct process){ (pid_t)atol(pid), parent, group, state == 'Z' || state == 'X', false };
	return true;
}

/* process_all: all processes. New memory, NULL on failure. */
static struct process *process_all(int *count)
{
	struct process *list = NULL;
	int n = 0, cap = 0;
	struct dirent *e;
	DIR *d = opendir("/proc");

	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (n == cap) {
			struct process *bigger =
				realloc(list, (size_t)(cap = cap ? 2 * cap : 256) * sizeof *list);

			if (!bigger)
				break;
			list = bigger;
		}
		n += process_read(e->d_name, &list[n]);
	}
	if (d)
		closedir(d);
	*count = n;
	return list;
}

/* process_list: the same; those below root are marked. */
static struct process *process_list(pid_t root, int *count)
{
	struct process *list = process_all(count);
	bool more = true;
	int n = *count;

	while (more) { /* children may come before their parents */
		more = false;
		for (int i = 0; i < n; i++) {
			for (int k = 0; k < n && !list[i].below; k++)
				if (list[i].parent == root ||
					(list[k].below && list[k].pid == list[i].parent))
					list[i].below = more = true;
		}
	}
	return list;
}

int pxd_descend_signal(pid_t root, int sig, enum pxd_descend which)
{
	int n = 0, sent = 0;
	struct process *list = process_list(root, &n);
	pid_t group = getpgid(root);

	for (int i = 0; i < n; i++)
		if (list[i].below && !list[i].zombie && (which == PXD_DESCEND_ALL || list[i].group == group))
			sent += kill(list[i].pid, sig) == 0;
	free(list);
	return sent;
}

int pxd_descend_orphans(pid_t root, const pid_t *keep, int nkeep, int sig)
{
	int n = 0, alive = 0;
	struct process *list = process_list(root, &n);

	for (int i = 0; i < n; i++) {
		bool kept = list[i].parent != root;

		for (int k = 0; k < nkeep; k++)
			kept |= list[i].pid == keep[k];
		if (kept)
			continue;
		if (list[i].zombie) {
			if (root == getpid())
				waitpid(list[i].pid, NULL, WNOHANG);
			continue;
		}
		alive++;
		if (sig) {
			pxd_descend_signal(list[i].pid, sig, PXD_DESCEND_ALL);
			kill(list[i].pid, sig);
		}
	}
	free(list);
	return alive;
}

/* catches: has the process a handler for this signal? */
static bool catches(pid_t pid, int sig)
{
	unsigned long long mask = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "SigCgt: %llx", &mask) == 1)
			break;
	if (f)
		fclose(f);
	return mask >> (sig - 1) & 1;
}

static int pass_below(const struct process *list, int n, pid_t root, int sig)
{
	int sent = 0;

	for (int i = 0; i < n; i++) {
		if (list[i].parent != root || list[i].zombie)
			continue;
		if (catches(list[i].pid, sig))
			sent += kill(list[i].pid, sig) == 0;
		else
			sent += pass_below(list, n, list[i].pid, sig);
	}
	return sent;
}

int pxd_descend_pass(pid_t root, int sig)
{
	int n = 0, sent;
	struct process *list = process_all(&n);

	sent = pass_below(list, n, root, sig);
	free(list);
	return sent;
}

int pxd_descend_children(pid_t parent)
{
	int n = 0, alive = 0;
	struct process *list = process_all(&n);

	for (int i = 0; i < n; i++)
		alive += list[i].parent == parent && !list[i].zombie;
	free(list);
	return alive;
}
