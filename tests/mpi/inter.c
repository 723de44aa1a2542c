/*
 * inter.c - intercommunicators: what they are, point-to-point, probes, and everything that is made from them, between groups that lie
 * in all ways over the ranks.
 */
#include "inter.h"

static int copied, deleted;

static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	(void)c;
	(void)key;
	(void)extra;
	*(void **)out = in;
	*flag = 1;
	copied++;
	return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
	(void)c;
	(void)key;
	(void)value;
	(void)extra;
	deleted++;
	return MPI_SUCCESS;
}

/* The world ranks behind a group of an intercommunicator. */
static void group_is(MPI_Group g, const int *want, int n)
{
	MPI_Group world;
	int size, at[1024], got[1024];

	MPI_Group_size(g, &size);
	CHECK_EQ(size, n);
	for (int i = 0; i < n; i++)
		at[i] = i;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	if (size == n) {
		MPI_Group_translate_ranks(g, n, at, world, got);
		for (int i = 0; i < n; i++)
			CHECK_EQ(got[i], want[i]);
	}
	MPI_Group_free(&world);
}

static void what_it_is(MPI_Comm inter, const struct pair *p)
{
	int flag = 0, n;
	MPI_Group g;

	MPI_Comm_test_inter(inter, &flag);
	CHECK(flag);
	MPI_Comm_rank(inter, &n);
	CHECK_EQ(n, p->me);
	MPI_Comm_size(inter, &n);
	CHECK_EQ(n, p->n[p->side]);
	MPI_Comm_remote_size(inter, &n);
	CHECK_EQ(n, p->n[!p->side]);
	MPI_Comm_group(inter, &g);
	group_is(g, p->world[p->side], p->n[p->side]);
	MPI_Group_free(&g);
	MPI_Comm_remote_group(inter, &g);
	group_is(g, p->world[!p->side], p->n[!p->side]);
	MPI_Group_free(&g);
	MPI_Topo_test(inter, &n);
	CHECK_EQ(n, MPI_UNDEFINED);
}

/* Each sends to each of the other group, `bytes` long; even receivers take from any source. */
static void everybody(MPI_Comm inter, const struct pair *p, int bytes)
{
	int far = p->n[!p->side], from[1024] = { 0 };
	char *out = chk_alloc((size_t)far * (size_t)bytes), *in = chk_alloc((size_t)bytes);
	MPI_Request *req = chk_alloc((size_t)far * sizeof *req);
	MPI_Status st;

	for (int r = 0; r < far; r++) {
		chk_fill(out + (size_t)r * (size_t)bytes, (size_t)bytes,
			chk_seed(chk_rank, p->world[!p->side][r], bytes, 0));
		MPI_Isend(out + (size_t)r * (size_t)bytes, bytes, MPI_CHAR, r, bytes, inter, &req[r]);
	}
	for (int r = 0; r < far; r++) {
		MPI_Recv(in, bytes, MPI_CHAR, p->me % 2 ? r : MPI_ANY_SOURCE, bytes, inter, &st);
		CHECK(st.MPI_SOURCE >= 0 && st.MPI_SOURCE < far);
		CHECK_EQ(from[st.MPI_SOURCE]++, 0);
		CHECK_STATUS(&st, st.MPI_SOURCE, bytes, MPI_CHAR, bytes);
		CHECK_BYTES(
			in, (size_t)bytes, chk_seed(p->world[!p->side][st.MPI_SOURCE], chk_rank, bytes, 0));
	}
	MPI_Waitall(far, req, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
	free(req);
}

/* Ranks 0 of both groups: the other ways to send and to receive. */
static void leaders(MPI_Comm inter, const struct pair *p)
{
	int out = chk_rank * 3, in = -1, want = p->world[!p->side][0] * 3, flag = 0;
	MPI_Request req[2];
	MPI_Message m;
	MPI_Status st;

	if (p->me != 0)
		return;
	MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, inter, &st);
	CHECK_EQ(in, want);
	CHECK_STATUS(&st, 0, 1, MPI_INT, 1);
	MPI_Issend(&out, 1, MPI_INT, 0, 2, inter, &req[0]);
	MPI_Probe(MPI_ANY_SOURCE, 2, inter, &st);
	CHECK_STATUS(&st, 0, 2, MPI_INT, 1);
	in = -1;
	MPI_Mprobe(0, MPI_ANY_TAG, inter, &m, &st);
	CHECK_STATUS(&st, 0, 2, MPI_INT, 1);
	MPI_Mrecv(&in, 1, MPI_INT, &m, &st);
	CHECK_EQ(in, want);
	CHECK_STATUS(&st, 0, 2, MPI_INT, 1);
	MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	MPI_Iprobe(MPI_ANY_SOURCE, 77, inter, &flag, &st);
	CHECK(!flag);
	MPI_Send_init(&out, 1, MPI_INT, 0, 3, inter, &req[0]);
	MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter, &req[1]);
	for (int i = 0; i < 2; i++) {
		in = -1;
		MPI_Startall(2, req);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		CHECK_EQ(in, want);
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
	MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 1, inter);
	MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, inter, &st);
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
}

static void merge(const struct pair *p, MPI_Comm inter, int high0, int high1)
{
	MPI_Comm all;
	int n, r, flag = 1, high = p->side ? high1 : high0;

	MPI_Intercomm_merge(inter, high, &all);
	MPI_Comm_test_inter(all, &flag);
	CHECK(!flag);
	MPI_Comm_size(all, &n);
	MPI_Comm_rank(all, &r);
	CHECK_EQ(n, chk_size);
	if (high0 != high1)
		CHECK_EQ(r, high ? p->n[!p->side] + p->me : p->me);
	n = -1;
	MPI_Allreduce(&chk_rank, &n, 1, MPI_INT, MPI_MAX, all);
	CHECK_EQ(n, chk_size - 1);
	MPI_Comm_free(&all);
}

static void duplicates(const struct pair *p)
{
	MPI_Comm d, e;
	MPI_Request req;
	int key, value = 7, flag = 0, result = -1, *got;
	char name[MPI_MAX_OBJECT_NAME] = "";

	copied = deleted = 0;
	MPI_Comm_create_keyval(copy_fn, delete_fn, &key, NULL);
	MPI_Comm_set_attr(p->inter, key, &value);
	MPI_Comm_set_name(p->inter, "between");
	MPI_Comm_get_name(p->inter, name, &result);
	CHECK(!strcmp(name, "between"));
	MPI_Comm_dup(p->inter, &d);
	CHECK_EQ(copied, 1);
	MPI_Comm_get_attr(d, key, &got, &flag);
	CHECK(flag && got == &value);
	what_it_is(d, p);
	MPI_Comm_compare(p->inter, d, &result);
	CHECK_EQ(result, MPI_CONGRUENT);
	MPI_Comm_compare(d, d, &result);
	CHECK_EQ(result, MPI_IDENT);
	MPI_Comm_compare(d, MPI_COMM_WORLD, &result);
	CHECK_EQ(result, MPI_UNEQUAL);
	everybody(d, p, 9);
	MPI_Comm_idup(d, &e, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	what_it_is(e, p);
	everybody(e, p, 10);
	leaders(e, p);
	MPI_Comm_free(&e);
	chk_idup(d, &e, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	what_it_is(e, p);
	everybody(e, p, 11);
	MPI_Comm_free(&e);
	MPI_Comm_disconnect(&d);
	CHECK_EQ(deleted, copied);
	MPI_Comm_delete_attr(p->inter, key);
	MPI_Comm_free_keyval(&key);
}

/* Two colours in each group; what has members on one side only is none. */
static void splits(const struct pair *p)
{
	MPI_Comm s;
	struct pair q;
	int color = chk_rank / 2 % 2;

	memset(&q, 0, sizeof q);
	q.side = p->side;
	for (int g = 0; g < 2; g++) {
		for (int i = p->n[g] - 1; i >= 0; i--) { /* backwards */
			int w = p->world[g][i];

			if (w / 2 % 2 != color)
				continue;
			if (w == chk_rank)
				q.me = q.n[g];
			q.world[g][q.n[g]++] = w;
		}
	}
	MPI_Comm_split(p->inter, color, -p->me, &s);
	CHECK_EQ(s == MPI_COMM_NULL, q.n[0] == 0 || q.n[1] == 0);
	if (s != MPI_COMM_NULL) {
		what_it_is(s, &q);
		everybody(s, &q, 100);
		MPI_Comm_free(&s);
	}
	MPI_Comm_split(p->inter, p->me == 0 ? 3 : MPI_UNDEFINED, 0, &s);
	CHECK_EQ(s == MPI_COMM_NULL, p->me != 0);
	if (s != MPI_COMM_NULL) {
		leaders(s, p);
		MPI_Comm_free(&s);
	}
}

/* MPI_Comm_create: the first and the last of each group. */
static void creates(const struct pair *p)
{
	MPI_Group g, sub;
	MPI_Comm s;
	struct pair q;
	int pick[2], n;

	memset(&q, 0, sizeof q);
	q.side = p->side;
	q.me = p->me > 0;
	for (int k = 0; k < 2; k++) {
		q.n[k] = p->n[k] > 1 ? 2 : 1;
		q.world[k][0] = p->world[k][0];
		q.world[k][1] = p->world[k][p->n[k] - 1];
	}
	pick[0] = 0;
	pick[1] = p->n[p->side] - 1;
	n = q.n[p->side];
	MPI_Comm_group(p->inter, &g);
	MPI_Group_incl(g, n, pick, &sub);
	MPI_Comm_create(p->inter, sub, &s);
	CHECK_EQ(s == MPI_COMM_NULL, p->me != 0 && p->me != p->n[p->side] - 1);
	if (s != MPI_COMM_NULL) {
		what_it_is(s, &q);
		everybody(s, &q, 33);
		MPI_Comm_free(&s);
	}
	MPI_Group_free(&sub);
	MPI_Group_free(&g);
}

static void errors(const struct pair *p)
{
	int buf = 0, n = 0;

	MPI_Comm_set_errhandler(p->inter, MPI_ERRORS_RETURN);
	CHECK_EQ(chk_class(MPI_Send(&buf, 1, MPI_INT, p->n[!p->side], 1, p->inter)), MPI_ERR_RANK);
	CHECK_EQ(chk_class(MPI_Bcast(&buf, 1, MPI_INT, p->n[!p->side] + 5, p->inter)), MPI_ERR_ROOT);
	CHECK(MPI_Scan(&buf, &n, 1, MPI_INT, MPI_SUM, p->inter) != MPI_SUCCESS);
	CHECK(MPI_Bcast(&buf, -1, MPI_INT, MPI_ROOT, p->inter) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	static struct pair p;

	chk_begin(&argc, &argv, "inter", 2);
	for (int way = 0; way < INTER_WAYS; way++) {
		inter_make(&p, way);
		what_it_is(p.inter, &p);
		everybody(p.inter, &p, 4);
		everybody(p.inter, &p, 200000);
		leaders(p.inter, &p);
		merge(&p, p.inter, 0, 1);
		merge(&p, p.inter, 1, 0);
		merge(&p, p.inter, 1, 1);
		duplicates(&p);
		splits(&p);
		creates(&p);
		errors(&p);
		inter_free(&p);
	}
	return chk_end();
}
