/*
 * sendrecv - rings in both directions with MPI_Sendrecv and MPI_Sendrecv_replace, different types and sizes on the two
 * sides, any source, PROC_NULL at the ends of a chain, and to self.
 */
#include "check.h"

/* A chain in a communicator: nobody before the first, nobody after the last; the value of each goes to its right. */
static void chain(MPI_Comm comm)
{
	MPI_Status st;
	long in = -5, token;
	int rank, size, left, right;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	left = rank ? rank - 1 : MPI_PROC_NULL;
	right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
	token = rank + 1000;
	MPI_Sendrecv(&token, 1, MPI_LONG, right, 9, &in, 1, MPI_LONG, left, 9, comm, &st);
	CHECK_EQ(in, rank ? rank + 999 : -5);
	CHECK_EQ(st.MPI_SOURCE, left);
	MPI_Sendrecv_replace(&token, 1, MPI_LONG, right, 11, left, 11, comm, &st);
	CHECK_EQ(token, rank ? rank + 999 : 1000);
	CHECK_EQ(st.MPI_SOURCE, left);
	MPI_Sendrecv_replace(&token, 1, MPI_LONG, MPI_PROC_NULL, 11, MPI_PROC_NULL, 11, comm, &st);
	CHECK_EQ(token, rank ? rank + 999 : 1000);
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
}

int main(int argc, char **argv)
{
	MPI_Status st;
	MPI_Comm half;

	chk_begin(&argc, &argv, "sendrecv", 1);
	int right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size;
	int sizes[] = { 0, 1, 1000, 70000, 300000 };
	long token;

	for (int i = 0; i < 5; i++) {
		size_t most = 300000;
		char *a = chk_alloc(most), *b = chk_alloc(most);
		int mine = sizes[(i + chk_rank) % 5], theirs = sizes[(i + left) % 5];

		chk_fill(a, (size_t)mine, chk_seed(chk_rank, i, 0, 0));
		MPI_Sendrecv(a, mine, MPI_CHAR, right, 5, b, (int)most, MPI_CHAR,
			i % 2 ? MPI_ANY_SOURCE : left, i % 2 ? 5 : MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		CHECK_STATUS(&st, left, 5, MPI_CHAR, theirs);
		CHECK_BYTES(b, (size_t)theirs, chk_seed(left, i, 0, 0));
		/* equal sizes, replaced in place, with two tags */
		chk_fill(b, (size_t)sizes[i], chk_seed(chk_rank, i, 1, 0));
		MPI_Sendrecv_replace(
			b, sizes[i], MPI_CHAR, left, 10 + chk_rank, right, 10 + right, MPI_COMM_WORLD, &st);
		CHECK_STATUS(&st, right, 10 + right, MPI_CHAR, sizes[i]);
		CHECK_BYTES(b, (size_t)sizes[i], chk_seed(right, i, 1, 0));
		/* self */
		MPI_Sendrecv(b, sizes[i], MPI_CHAR, chk_rank, 6, a, (int)most, MPI_CHAR, chk_rank, 6,
			MPI_COMM_WORLD, &st);
		CHECK_STATUS(&st, chk_rank, 6, MPI_CHAR, sizes[i]);
		CHECK_BYTES(a, (size_t)sizes[i], chk_seed(right, i, 1, 0));
		MPI_Sendrecv_replace(
			a, sizes[i], MPI_CHAR, chk_rank, 7, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &st);
		CHECK_BYTES(a, (size_t)sizes[i], chk_seed(right, i, 1, 0));
		free(a);
		free(b);
		chk_barrier(MPI_COMM_WORLD); /* there were any-tag receives */
	}
	/* once around the ring, every rank adds: at the end each has its own token back */
	token = chk_rank;
	for (int i = 0; i < chk_size; i++) {
		MPI_Sendrecv_replace(
			&token, 1, MPI_LONG, right, 8, left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token += 1000 * chk_rank;
	}
	CHECK_EQ(token, chk_rank + 1000L * (chk_size * (chk_size - 1) / 2));
	chain(MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank < chk_size / 2, chk_rank, &half);
	chain(half);
	MPI_Comm_free(&half);
	chain(MPI_COMM_SELF);
	/* strided in place */
	int v[20], bad = 0;
	MPI_Datatype every2;
	MPI_Type_vector(10, 1, 2, MPI_INT, &every2);
	MPI_Type_commit(&every2);
	for (int i = 0; i < 20; i++)
		v[i] = chk_rank * 100 + i;
	MPI_Sendrecv_replace(v, 1, every2, right, 10, left, 10, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, left, 10, every2, 1);
	for (int i = 0; i < 20; i++)
		bad += v[i] != (i % 2 ? chk_rank : left) * 100 + i;
	CHECK_EQ(bad, 0);
	MPI_Type_free(&every2);
	return chk_end();
}
