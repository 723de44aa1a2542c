/*
 * ports.c - processes of one job that meet through ports and published names: every division into servers and clients, one server
 * and many clients one after the other, names that are there and names that are not.
 */
#include "inter.h"

static void name_of(char *to, int n)
{
	sprintf(to, "ports test, number %d", n);
}

static void names(void)
{
	char name[64], port[MPI_MAX_PORT_NAME], got[MPI_MAX_PORT_NAME];

	name_of(name, chk_rank);
	sprintf(port, "a text of rank %d:%d", chk_rank, 122);
	CHECK_EQ(MPI_Publish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
	chk_barrier(MPI_COMM_WORLD);
	for (int r = 0; r < chk_size; r++) {
		name_of(name, r);
		sprintf(port, "a text of rank %d:%d", r, 122);
		CHECK_EQ(MPI_Lookup_name(name, MPI_INFO_NULL, got), MPI_SUCCESS);
		CHECK(strcmp(got, port) == 0);
	}
	chk_barrier(MPI_COMM_WORLD);
	name_of(name, chk_rank);
	sprintf(port, "a text of rank %d:%d", chk_rank, 122);
	CHECK_EQ(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
	chk_barrier(MPI_COMM_WORLD);
	name_of(name, (chk_rank + 1) % chk_size);
	CHECK_EQ(chk_class(MPI_Lookup_name(name, MPI_INFO_NULL, got)), MPI_ERR_NAME);
}

/* Everybody of one side with everybody of the other, a broadcast, a sum, and the merged communicator. */
static void use(MPI_Comm inter, int side, int near, int far, const int *remote)
{
	int me, n, root, sum, one;
	MPI_Comm both;

	MPI_Comm_rank(inter, &me);
	MPI_Comm_remote_size(inter, &n);
	CHECK_EQ(n, far);
	for (int i = 0; i < far; i++) {
		int out = 1000 * chk_rank + remote[i], in = -1;
		MPI_Status st;

		MPI_Sendrecv(&out, 1, MPI_INT, i, 5, &in, 1, MPI_INT, i, 5, inter, &st);
		CHECK_EQ(in, 1000 * remote[i] + chk_rank);
		CHECK_STATUS(&st, i, 5, MPI_INT, 1);
	}
	root = side == 0 ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
	one = side == 0 ? 4711 : 0;
	MPI_Bcast(&one, 1, MPI_INT, root, inter);
	CHECK_EQ(one, 4711);
	one = chk_rank + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	n = 0;
	for (int i = 0; i < far; i++)
		n += remote[i] + 1;
	CHECK_EQ(sum, n);
	MPI_Intercomm_merge(inter, side, &both);
	MPI_Comm_size(both, &n);
	CHECK_EQ(n, near + far);
	MPI_Comm_rank(both, &n);
	CHECK_EQ(n, side == 0 ? me : far + me);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
	CHECK_EQ(sum, chk_size * (chk_size + 1) / 2);
	MPI_Comm_free(&both);
}

/* Servers and clients; the roots are the last of each. The same port serves twice. */
static void divided(int way)
{
	char port[MPI_MAX_PORT_NAME] = "", name[64];
	MPI_Comm inter;
	struct pair p;
	int root;

	name_of(name, 100 + way);
	inter_make(&p, way);
	MPI_Comm_free(&p.inter);
	root = p.n[p.side] - 1;
	if (p.side == 0 && p.me == root) {
		CHECK_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
		CHECK_EQ(MPI_Publish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
	}
	chk_barrier(MPI_COMM_WORLD);
	if (p.side == 1 && p.me == root)
		CHECK_EQ(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
	for (int i = 0; i < 2; i++) {
		if (p.side == 0)
			CHECK_EQ(MPI_Comm_accept(port, MPI_INFO_NULL, root, p.local, &inter), MPI_SUCCESS);
		else
			CHECK_EQ(MPI_Comm_connect(port, MPI_INFO_NULL, root, p.local, &inter), MPI_SUCCESS);
		use(inter, p.side, p.n[p.side], p.n[!p.side], p.world[!p.side]);
		CHECK_EQ(MPI_Comm_disconnect(&inter), MPI_SUCCESS);
		CHECK(inter == MPI_COMM_NULL);
	}
	if (p.side == 0 && p.me == root) {
		CHECK_EQ(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_SUCCESS);
		CHECK_EQ(MPI_Close_port(port), MPI_SUCCESS);
	}
	MPI_Comm_free(&p.local);
	chk_barrier(MPI_COMM_WORLD);
}

/* The last rank serves all others, each by itself; they know the port by message. In turn: Open MPI 4.1 does not come to an end when they
 * call at the same time. */
static void one_by_one(void)
{
	char port[MPI_MAX_PORT_NAME] = "";
	int server = chk_size - 1, sum = 0;
	MPI_Comm inter;

	if (chk_rank == server)
		CHECK_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
	MPI_Bcast(port, sizeof port < 256 ? (int)sizeof port : 256, MPI_CHAR, server, MPI_COMM_WORLD);
	if (chk_rank != server) {
		int answer = 0;

		MPI_Recv(NULL, 0, MPI_INT, server, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_EQ(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_SUCCESS);
		MPI_Send(&chk_rank, 1, MPI_INT, 0, 1, inter);
		MPI_Recv(&answer, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE);
		CHECK_EQ(answer, chk_rank * chk_rank);
		CHECK_EQ(MPI_Comm_disconnect(&inter), MPI_SUCCESS);
		return;
	}
	for (int i = 0; i < chk_size - 1; i++) {
		int r = -1;

		MPI_Send(NULL, 0, MPI_INT, i, 9, MPI_COMM_WORLD);
		CHECK_EQ(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_SUCCESS);
		MPI_Recv(&r, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
		sum += r;
		r *= r;
		MPI_Send(&r, 1, MPI_INT, 0, 2, inter);
		CHECK_EQ(MPI_Comm_disconnect(&inter), MPI_SUCCESS);
	}
	CHECK_EQ(sum, server * (server - 1) / 2);
	CHECK_EQ(MPI_Close_port(port), MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME];
	int rc;

	chk_begin(&argc, &argv, "ports", 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	rc = MPI_Open_port(MPI_INFO_NULL, port);
	if (rc != MPI_SUCCESS) {
		if (chk_rank == 0) {
			printf("skipped: this MPI has no ports (MPICH 4.0 over UCX)\n");
			fflush(stdout);
		}
		MPI_Finalize();
		return 0;
	}
	CHECK_EQ(MPI_Close_port(port), MPI_SUCCESS);
	names();
	for (int way = 0; way < INTER_WAYS; way++)
		divided(way);
	one_by_one();
	return chk_end();
}
