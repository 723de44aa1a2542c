/*
 * inter_ibcast.c - MPI_Ibcast on intercommunicators, from each process to the other group, short and long, several at a time.
 */
#include "inter.h"

static struct pair p;

static void from(int side, int root, int n)
{
	size_t bytes = (size_t)n;
	char *buf[3];
	MPI_Request req[3];

	for (int i = 0; i < 3; i++) {
		buf[i] = chk_alloc(bytes);
		if (p.side == side)
			chk_fill(buf[i], bytes, chk_seed(side, root, n, i));
		else
			memset(buf[i], 0, bytes);
		MPI_Ibcast(buf[i], n, MPI_CHAR,
			p.side != side ? root
			: p.me == root ? MPI_ROOT
				       : MPI_PROC_NULL,
			p.inter, &req[i]);
	}
	MPI_Waitall(3, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3; i++) {
		CHECK_BYTES(buf[i], bytes, chk_seed(side, root, n, i));
		free(buf[i]);
	}
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "inter_ibcast", 2);
	for (int way = 0; way < INTER_WAYS; way++) {
		inter_make(&p, way);
		for (int side = 0; side < 2; side++) {
			for (int root = 0; root < p.n[side]; root++) {
				from(side, root, 1);
				from(side, root, 100000);
			}
		}
		inter_free(&p);
	}
	return chk_end();
}
