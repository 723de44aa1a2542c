/* spawn.c: MPI_Comm_spawn and MPI_Comm_spawn_multiple from a communicator that spans sites, and MPI_Comm_get_parent of what they start.
 *
 * Design. The root tells all members what it wants. One of them is the host: the root, or the first one at the site that the info key pacx_site of
 * the first command names. It starts the processes, from a communicator of its own, with what makes them guests (guest.h) in their environment.
 * Rank 0 of the world numbers guests. When every site has made its part of the intercommunicator the host welcomes its guests
 * with the world map, the guests that it knows, and the members; then both sides carry out the same plan (inter_plan.h).
 * Over Open MPI 4, where an info key of the vendor's reaches the environment.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "spawn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "buf.h"
#include "channel.h"
#include "coll.h"
#include "comm.h"
#include "comm_find.h"
#include "comm_make.h"
#include "endian.h"
#include "guest.h"
#include "inter.h"
#include "inter_plan.h"
#include "lock.h"
#include "model.h"
#include "names.h"
#include "raise.h"
#include "state.h"
#include "vendor.h"

#define SITE_KEY "pacx_site"

/* Numbers and strings one after the other, in a buffer; what is read was written by another libpacx. */
static int put(struct px_buf *b, int n)
{
	uint8_t bytes[4];

	px_put32(bytes, (uint32_t)n);
	return px_buf_append(b, bytes, sizeof bytes);
}

static int put_text(struct px_buf *b, const char *text)
{
	return px_buf_append(b, text, strlen(text) + 1);
}

static int take(struct px_buf *b)
{
	int n = (int)px_get32(px_buf_data(b));

	px_buf_consume(b, 4);
	return n;
}

static char *take_text(struct px_buf *b)
{
	char *text = (char *)px_buf_data(b);

	px_buf_consume(b, strlen(text) + 1);
	return text;
}

/* One command. Strings point into the request. */
struct command {
	char *name;
	int nargs; /* -1: MPI_ARGV_NULL */
	char **argv;
	int procs, nkeys;
	char **keys; /* and their values, in turn */
};

/* What the root says. */
static int command_put(struct px_buf *b, const char *name, char **argv, int procs, MPI_Info info)
{
	int n = -1, nkeys = 0, rc = put_text(b, name);

	if (argv != MPI_ARGV_NULL)
		for (n = 0; argv[n];)
			n++;
	rc |= put(b, n);
	for (int i = 0; i < n; i++)
		rc |= put_text(b, argv[i]);
	rc |= put(b, procs);
	if (info != MPI_INFO_NULL && px_n.Info_get_nkeys(info, &nkeys) != MPI_SUCCESS)
		return -1;
	rc |= put(b, nkeys);
	for (int i = 0; i < nkeys; i++) {
		char key[MPI_MAX_INFO_KEY + 1], *value;
		int len = 0, there;

		px_n.Info_get_nthkey(info, i, key);
		px_n.Info_get_valuelen(info, key, &len, &there);
		value = calloc(1, (size_t)len + 1);
		if (!value)
			return -1;
		px_n.Info_get(info, key, len, value, &there);
		rc |= put_text(b, key);
		rc |= put_text(b, value);
		free(value);
	}
	return rc;
}

static int command_take(struct px_buf *b, struct command *k)
{
	k->name = take_text(b);
	k->nargs = take(b);
	k->argv = calloc((size_t)(k->nargs < 0 ? 0 : k->nargs) + 1, sizeof *k->argv);
	for (int i = 0; k->argv && i < k->nargs; i++)
		k->argv[i] = take_text(b);
	if (!k->argv)
		return MPI_ERR_NO_MEM;
	k->procs = take(b);
	k->nkeys = take(b);
	k->keys = calloc(2 * (size_t)k->nkeys + 1, sizeof *k->keys);
	for (int i = 0; k->keys && i < 2 * k->nkeys; i++)
		k->keys[i] = take_text(b);
	return k->keys ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void commands_free(struct command *k, int n)
{
	for (int i = 0; k && i < n; i++) {
		free(k[i].argv);
		free(k[i].keys);
	}
	free(k);
}

static const char *value_of(const struct command *k, const char *key)
{
	for (int i = 0; i < k->nkeys; i++)
		if (strcmp(k->keys[2 * i], key) == 0)
			return k->keys[2 * i + 1];
	return NULL;
}

/* The member of c that starts them; -1: there is none, and all members have been told. */
static int host_of(struct px_comm *c, int root, const struct command *k, int *rc)
{
	const char *site = value_of(k, SITE_KEY);
	int host = site ? -1 : root;

	for (int p = 0; site && p < c->nparts; p++)
		if (c->ranks->part[p].site < px.nsites &&
			strcmp(px.world->site[c->ranks->part[p].site].name, site) == 0)
			host = px_leader(c, p);
	if (host < 0)
		*rc = px_raise(c, MPI_ERR_INFO_VALUE,
			SITE_KEY " is %s: no member of the communicator is there", site);
	else if (px_grank(c, host) >= px.nranks)
		*rc = px_raise(c, MPI_ERR_SPAWN,
			"rank %d was itself started by MPI_Comm_spawn: it cannot start others for members at "
			"other sites",
			host);
	else
		return host;
	return -1;
}

/* What the host tells: how it went, the children, and who they are in the world. */
struct born {
	int rc, n, site, base, ncodes;
	int *codes; /* [ncodes] */
	uint64_t ctx;
	MPI_Comm native, hall; /* at the host */
};

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION == 4

/* What makes a process a guest, in the value of Open MPI's info key "env". */
static char *guest_env(const char *users)
{
	Dl_info self;
	const char *more = getenv("LD_PRELOAD");

	if (!dladdr((void *)(uintptr_t)guest_env, &self))
		return NULL;
	return px_text("LD_PRELOAD=%s%s%s\nPACX_SITE=%s\n" PX_GUEST_VARIABLE "=1%s%s", more ? more : "",
		more && *more ? ":" : "", self.dli_fname, px.world->site[px.site].name, users ? "\n" : "",
		users ? users : "");
}

static int info_make(const struct command *k, MPI_Info *info)
{
	char *env = guest_env(value_of(k, "env"));
	int rc = px_n.Info_create(info);

	if (rc == MPI_SUCCESS && !env)
		rc = MPI_ERR_NO_MEM;
	for (int i = 0; i < k->nkeys && rc == MPI_SUCCESS; i++)
		if (strcmp(k->keys[2 * i], SITE_KEY) != 0)
			rc = px_n.Info_set(*info, k->keys[2 * i], k->keys[2 * i + 1]);
	if (rc == MPI_SUCCESS)
		rc = px_n.Info_set(*info, "env", env);
	free(env);
	return rc;
}

/* The vendor starts them. */
static int start(const struct command *k, int n, struct born *b)
{
	char **names = calloc((size_t)n, sizeof *names), ***argvs = calloc((size_t)n, sizeof *argvs);
	int *procs = calloc((size_t)n, sizeof *procs),
	    rc = names && argvs && procs ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	MPI_Info *infos = calloc((size_t)n, sizeof *infos);
	MPI_Comm self = MPI_COMM_NULL;

	if (!infos)
		rc = MPI_ERR_NO_MEM;
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		names[i] = k[i].name;
		argvs[i] = k[i].nargs < 0 ? MPI_ARGV_NULL : k[i].argv;
		procs[i] = k[i].procs;
		infos[i] = MPI_INFO_NULL;
		rc = info_make(&k[i], &infos[i]);
	}
	if (rc == MPI_SUCCESS)
		rc = px_n.Comm_dup(MPI_COMM_SELF, &self);
	if (rc == MPI_SUCCESS) {
		px_n.Comm_set_errhandler(self, MPI_ERRORS_RETURN);
		if (n == 1)
			px_blocking(rc, px_n.Comm_spawn(names[0], argvs[0], procs[0], infos[0], 0, self,
						&b->native, b->codes));
		else
			px_blocking(rc, px_n.Comm_spawn_multiple(n, names, argvs, procs, infos, 0, self,
						&b->native, b->codes));
		px_n.Comm_free(&self);
	}
	for (int i = 0; infos && i < n; i++)
		if (infos[i] != NULL && infos[i] != MPI_INFO_NULL)
			px_n.Info_free(&infos[i]);
	free(names);
	free(argvs);
	free(procs);
	free(infos);
	return rc;
}

#else

static int start(const struct command *k, int n, struct born *b)
{
	(void)k;
	(void)n;
	(void)b;
	return MPI_ERR_UNSUPPORTED_OPERATION;
}

#endif

/* Global ranks for n guests: from rank 0. */
static int number(struct born *b)
{
	struct px_answer answer;
	char text[16];
	int rc;

	snprintf(text, sizeof text, "%d", b->n);
	rc = px_ask(0, PX_ASK_GUESTS, text, "", &answer);
	if (rc == MPI_SUCCESS &&
		(answer.error != PX_ANSWER_OK || sscanf(answer.text, "%d %d", &b->site, &b->base) != 2))
		rc = MPI_ERR_SPAWN;
	return rc;
}

/* At the host: start them and give them numbers. */
static int bear(const struct command *k, int n, struct born *b)
{
	int rc = start(k, n, b);

	if (rc == MPI_SUCCESS)
		rc = px_n.Comm_remote_size(b->native, &b->n);
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Intercomm_merge(b->native, 0, &b->hall));
	if (rc == MPI_SUCCESS)
		rc = number(b);
	b->ctx = px_ctx_candidate();
	return rc;
}

/* The world as the guests get it: without guests. */
static int world_put(struct px_buf *b)
{
	struct px_world w = *px.world;
	uint8_t *room;
	long n;

	w.nsites = px.nsites;
	w.nranks = px.nranks;
	n = px_world_put(&w, NULL, 0);
	if (n < 0 || put(b, (int)n) < 0 || px_buf_reserve(b, (size_t)n, &room) < 0)
		return -1;
	px_world_put(&w, room, (size_t)n);
	px_buf_commit(b, (size_t)n);
	return 0;
}

/* One message to all guests of a hall, from their host. */
static int tell(MPI_Comm hall, const struct px_buf *b)
{
	int n = (int)px_buf_len(b), rc;

	px_blocking(rc, px_n.Bcast(&n, 1, MPI_INT, 0, hall));
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Bcast(px_buf_data(b), n, MPI_BYTE, 0, hall));
	return rc;
}

/* Everybody has made their part; the plan has the parents first. */
static int welcome(const struct born *b, const struct px_plan *p)
{
	struct px_buf blob = { 0 };
	int n = 0, bad = world_put(&blob), rc = MPI_ERR_NO_MEM;

	for (struct px_guests *g = px_guests; g; g = g->next)
		n++;
	bad |= put(&blob, n);
	for (struct px_guests *g = px_guests; g; g = g->next)
		bad |= put(&blob, g->site) | put(&blob, g->base) | put(&blob, g->n) | put(&blob, g->host);
	bad |= put(&blob, b->base) | put(&blob, px.tag_ub) | put(&blob, px_model_associative());
	bad |= put(&blob, (int)(b->ctx >> 32)) | put(&blob, (int)(uint32_t)b->ctx) | put(&blob, p->first);
	for (int i = 0; i < p->first; i++)
		bad |= put(&blob, p->grank[i]);
	if (!bad)
		rc = tell(b->hall, &blob);
	px_buf_fini(&blob);
	return rc;
}

/* All members learn what the host has done. */
static int hear(struct px_comm *c, int host, struct born *b)
{
	int v[6] = { b->rc, b->n, b->site, b->base, (int)(b->ctx >> 32), (int)(uint32_t)b->ctx };
	int rc = px_Bcast(v, 6, MPI_INT, host, c);

	if (rc == MPI_SUCCESS)
		rc = px_Bcast(b->codes, b->ncodes, MPI_INT, host, c);
	b->rc = v[0];
	b->n = v[1];
	b->site = v[2];
	b->base = v[3];
	b->ctx = (uint64_t)(uint32_t)v[4] << 32 | (uint32_t)v[5];
	return rc;
}

/* The members of c, then the guests. */
static int plan_make(struct px_plan *p, struct px_comm *c, const struct born *b)
{
	p->n = c->size + b->n;
	p->first = c->size;
	p->ctx = b->ctx;
	p->grank = malloc((size_t)p->n * sizeof *p->grank);
	if (!p->grank)
		return MPI_ERR_NO_MEM;
	px_ranks_write(c->ranks, 0, c->size, p->grank);
	for (int i = 0; i < b->n; i++)
		p->grank[c->size + i] = b->base + i;
	return MPI_SUCCESS;
}

/* The children are there: the intercommunicator, at their parents. */
static int parents(struct px_comm *c, int host, struct born *b, MPI_Comm *out)
{
	struct px_guests *g = px_guests_learn(b->site, b->base, b->n, px_grank(c, host));
	uint64_t unused;
	struct px_plan p;
	int rc, made;

	px_plan_init(&p);
	made = g ? plan_make(&p, c, b) : MPI_ERR_NO_MEM;
	if (g && c->rank == host)
		px_guests_hall(g, b->hall, b->native); /* other members may go ahead */
	rc = px_comm_turn(c);
	if (rc == MPI_SUCCESS && made == MPI_SUCCESS)
		px_blocking(made, px_n.Comm_dup(c->native, &p.native));
	if (rc == MPI_SUCCESS && made == MPI_SUCCESS)
		made = px_plan_face(&p);
	rc = px_comm_confirm(c, rc != MPI_SUCCESS ? rc : made, 0, &unused);
	if (rc != MPI_SUCCESS)
		return px_plan_drop(&p, rc);
	if (c->rank == host && welcome(b, &p) != MPI_SUCCESS)
		px_channel_abort(1, "processes that were started cannot be reached");
	return px_plan_carry_out(&p, c, c->native, out);
}

/* What the root wants, at all members. MPI error code, raised. */
static int spread(struct px_comm *c, int root, struct px_buf *request, int bad)
{
	int n = c->rank == root && !bad ? (int)px_buf_len(request) : -1,
	    rc = px_Bcast(&n, 1, MPI_INT, root, c);
	uint8_t *room = NULL;

	if (rc != MPI_SUCCESS)
		return rc;
	if (n < 0)
		return px_raise(c, MPI_ERR_SPAWN, "the root's commands cannot be read");
	if (c->rank != root) {
		if (px_buf_reserve(request, (size_t)n, &room) < 0)
			return px_raise_memory(c);
		px_buf_commit(request, (size_t)n);
	}
	return px_Bcast(px_buf_data(request), n, MPI_BYTE, root, c);
}

/* The request is here. */
static int carry_out(struct px_comm *c, int root, struct px_buf *request, MPI_Comm *out, int *codes)
{
	int n = take(request), host = -1, rc = MPI_SUCCESS;
	struct command *k = calloc((size_t)n, sizeof *k);
	struct born b = { .native = MPI_COMM_NULL, .hall = MPI_COMM_NULL };

	for (int i = 0; i < n; i++) {
		if (!k || command_take(request, &k[i]) != MPI_SUCCESS)
			px_channel_abort(1, "out of memory");
		b.ncodes += k[i].procs;
	}
	b.codes = malloc(((size_t)b.ncodes + 1) * sizeof *b.codes);
	if (!b.codes)
		px_channel_abort(1, "out of memory");
	for (int i = 0; i < b.ncodes; i++)
		b.codes[i] = MPI_ERR_SPAWN;
	host = host_of(c, root, &k[0], &rc);
	if (rc == MPI_SUCCESS) {
		if (c->rank == host)
			px_n.Error_class(bear(k, n, &b), &b.rc);
		rc = hear(c, host, &b);
		for (int i = 0; i < b.ncodes && codes != MPI_ERRCODES_IGNORE; i++)
			codes[i] = b.codes[i];
	}
	if (host >= 0 && rc == MPI_SUCCESS)
		rc = b.rc != MPI_SUCCESS
			     ? px_raise(c, MPI_ERR_SPAWN, "the MPI of site %s has started no processes",
				       px.world->site[px_world_site(px.world, px_grank(c, host))].name)
			     : parents(c, host, &b, out);
	commands_free(k, n);
	free(b.codes);
	return rc;
}

int px_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int maxprocs[],
	const MPI_Info infos[], int root, struct px_comm *c, MPI_Comm *out, int codes[])
{
	struct px_buf request = { 0 };
	int bad = 0, rc;

	if (root < 0 || root >= c->size)
		return px_raise(c, MPI_ERR_ROOT, "root %d, the communicator has %d", root, c->size);
	if (c->rank == root) {
		bad = count < 1 || put(&request, count) < 0;
		for (int i = 0; i < count && !bad; i++)
			bad = !commands[i] || maxprocs[i] < 0 ||
			      command_put(&request, commands[i],
				      argvs == MPI_ARGVS_NULL ? MPI_ARGV_NULL : argvs[i], maxprocs[i],
				      infos[i]) < 0;
	}
	rc = spread(c, root, &request, bad);
	if (rc == MPI_SUCCESS)
		rc = carry_out(c, root, &request, out, codes);
	px_buf_fini(&request);
	return rc;
}

int px_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, struct px_comm *c,
	MPI_Comm *out, int codes[])
{
	char *name;

	memcpy(&name, &command, sizeof name); /* it is only read */
	return px_Comm_spawn_multiple(1, &name, &argv, &maxprocs, &info, root, c, out, codes);
}

/* The other side: a process that has been started. */

static struct px_plan plan;
static MPI_Comm parent = MPI_COMM_NULL;
static uint64_t parent_ctx;

/* What the host tells. */
static int listen_to(MPI_Comm hall, struct px_buf *b)
{
	uint8_t *room;
	int n = 0, rc = px_n.Bcast(&n, 1, MPI_INT, 0, hall);

	if (rc != MPI_SUCCESS || px_buf_reserve(b, (size_t)n, &room) < 0)
		return rc != MPI_SUCCESS ? rc : MPI_ERR_NO_MEM;
	px_buf_commit(b, (size_t)n);
	return px_n.Bcast(room, n, MPI_BYTE, 0, hall);
}

/* The guests that the host knows, ourselves among them. */
static int guests_take(struct px_buf *b)
{
	int n = take(b);

	for (int i = 0; i < n; i++) {
		int site = take(b), base = take(b), size = take(b), host = take(b);

		if (!px_guests_learn(site, base, size, host))
			return MPI_ERR_NO_MEM;
	}
	return MPI_SUCCESS;
}

static int welcome_take(struct px_buf *b, bool *associative)
{
	int n = take(b), rank, size, base;

	px_n.Comm_rank(MPI_COMM_WORLD, &rank);
	px_n.Comm_size(MPI_COMM_WORLD, &size);
	if (px_world_get(px_buf_data(b), (size_t)n, &px.world) < 0)
		return MPI_ERR_NO_MEM;
	px_buf_consume(b, (size_t)n);
	px.nsites = px.world->nsites;
	px.nranks = px.world->nranks;
	if (guests_take(b) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	base = take(b);
	px.tag_ub = take(b);
	*associative = take(b) != 0;
	px.grank = base + rank;
	px.lrank = rank;
	px.site = px_world_site(px.world, px.grank);
	px_plan_init(&plan);
	plan.ctx = (uint64_t)(uint32_t)take(b) << 32;
	plan.ctx |= (uint32_t)take(b);
	plan.first = take(b);
	plan.n = plan.first + size;
	plan.grank = malloc((size_t)plan.n * sizeof *plan.grank);
	for (int i = 0; plan.grank && i < plan.first; i++)
		plan.grank[i] = take(b);
	for (int i = 0; plan.grank && i < size; i++)
		plan.grank[plan.first + i] = base + i;
	return plan.grank ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static MPI_Comm hall = MPI_COMM_NULL, born = MPI_COMM_NULL; /* until there are guests to keep them */

int px_welcome(bool *associative)
{
	struct px_buf blob = { 0 };
	int rc = px_n.Comm_get_parent(&born);

	if (rc == MPI_SUCCESS && born == MPI_COMM_NULL)
		return MPI_ERR_COMM;
	if (rc == MPI_SUCCESS)
		rc = px_n.Intercomm_merge(born, 1, &hall);
	if (rc == MPI_SUCCESS)
		rc = listen_to(hall, &blob);
	if (rc == MPI_SUCCESS)
		rc = welcome_take(&blob, associative);
	px_guest_self = true;
	px_buf_fini(&blob);
	return rc;
}

int px_welcome_parent(void)
{
	struct px_guests *g = px_guests;
	struct px_comm stub = { .native = MPI_COMM_WORLD, .face = MPI_COMM_WORLD };
	int rc;

	while (g->base > px.grank || px.grank >= g->base + g->n)
		g = g->next;
	px_guests_hall(g, hall, born);
	rc = px_n.Comm_dup(MPI_COMM_WORLD, &plan.native);
	if (rc == MPI_SUCCESS)
		rc = px_plan_face(&plan);
	if (rc == MPI_SUCCESS) {
		parent_ctx = plan.ctx | 2;
		rc = px_plan_carry_out(&plan, &stub, MPI_COMM_WORLD, &parent);
	}
	atomic_fetch_add(&px_find_live, 1); /* px_spanning for good, at all of us */
	return rc;
}

int px_Comm_get_parent(MPI_Comm *out)
{
	struct px_comm *c;

	if (!px_guest_self)
		return px_n.Comm_get_parent(out);
	c = px_comm_find(parent);
	*out = c && c->ctx == parent_ctx ? parent : MPI_COMM_NULL;
	return MPI_SUCCESS;
}
