/*
 * typed.c - every named datatype and random nested derived ones between all pairs of ranks, by value: what is sent as a number arrives
 * as this number, whatever the machines.  Values are such that every machine's type holds them.  Argument: how many random types (24).
 */
#include "typed.h"

#define TAG 3

static void named(int count)
{
	for (int b = 0; b < nbasic; b++) {
		MPI_Aint lb, extent;
		char *out, *in;

		MPI_Type_get_extent(basic[b].type, &lb, &extent);
		out = calloc((size_t)count + 2, (size_t)extent);
		in = malloc(((size_t)count + 2) * (size_t)extent);
		for (int i = 0; i < count; i++)
			basic[b].put(out + i * extent, number(chk_rank, i));
		PARTNERS
		{
			MPI_Status st;
			int n, bad = 0;

			memset(in, 0x5a, ((size_t)count + 2) * (size_t)extent);
			MPI_Sendrecv(out, count, basic[b].type, to, TAG, in, count + 2, basic[b].type, from,
				TAG, MPI_COMM_WORLD, &st);
			MPI_Get_count(&st, basic[b].type, &n);
			for (int i = 0; i < count; i++)
				bad += !basic[b].good(in + i * extent, number(from, i));
			for (size_t i = 0; i < 2 * (size_t)extent; i++)
				bad += in[(size_t)count * (size_t)extent + i] != 0x5a;
			if (n != count || bad)
				chk_report(__FILE__, __LINE__, "%s from rank %d: %d of %d elements, %d wrong",
					basic[b].name, from, n, count, bad);
			CHECK(n == count && bad == 0);
		}
		free(out);
		free(in);
	}
}

/* Does MPI_Get_elements count what is in m as it is counted here? A pair is two elements, and MPICH 4.0.2 dies of parts of grids, of types of
 * Fortran 90 (get_elements_x.c:268) and of structures of unlike types of one size. */
static int countable(const struct made *m)
{
	const char *name = basic[m->place[0].b].name;

	for (int i = 1; i < m->n; i++)
		if (m->place[i].b != m->place[0].b)
			return 0;
	return !m->odd && strncmp(name, "MPI_2", 5) != 0 && !strstr(name + 4, "_INT") &&
	       strncmp(name, "f90", 3) != 0;
}

static void derived(unsigned seed, int depth, int count)
{
	struct made *m = malloc(sizeof *m);
	MPI_Aint lb, size;
	MPI_Request req;
	char *out, *in;

	state = seed;
	make(m, depth, 0);
	MPI_Type_commit(&m->type);
	MPI_Type_get_true_extent(m->type, &lb, &size);
	size += lb + (count + 2) * extent_of(m->type);
	out = calloc(1, (size_t)size);
	in = malloc((size_t)size);
	fill(m, out, count, chk_rank);
	PARTNERS
	{
		MPI_Status st;
		int n, e, bad;

		memset(in, 0x5a, (size_t)size);
		MPI_Isend(out, count, m->type, to, TAG, MPI_COMM_WORLD, &req);
		MPI_Probe(from, TAG, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, m->type, &n);
		CHECK_EQ(n, count);
		MPI_Recv(in, count + 1, m->type, from, TAG, MPI_COMM_WORLD, &st);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Get_count(&st, m->type, &n);
		CHECK_EQ(n, count);
		if (countable(m)) {
			MPI_Get_elements(&st, m->type, &e);
			CHECK_EQ(e, count * m->n);
		}
		bad = wrong(m, in, count, from);
		if (bad)
			chk_report(__FILE__, __LINE__, "seed %u, depth %d: from rank %d: %d of %d wrong",
				seed, depth, from, bad, count * m->n);
		CHECK(bad == 0);
	}
	MPI_Type_free(&m->type);
	free(out);
	free(in);
	free(m);
}

/* A message that ends within an element of the receive. */
static void partial(void)
{
	struct {
		int i;
		long l;
		double d;
	} out[4], in[4];
	MPI_Datatype types[3] = { MPI_INT, MPI_LONG, MPI_DOUBLE }, all, part;
	MPI_Aint at[3] = { (char *)&out->i - (char *)out, (char *)&out->l - (char *)out,
		(char *)&out->d - (char *)out };
	int one[3] = { 1, 1, 1 };

	MPI_Type_create_struct(3, one, at, types, &part);
	MPI_Type_create_resized(part, 0, sizeof *out, &all);
	MPI_Type_commit(&all);
	MPI_Type_free(&part);
	MPI_Type_create_struct(2, one, at, types, &part);
	MPI_Type_commit(&part);
	PARTNERS
	{
		MPI_Request req[2];
		MPI_Status st;
		int n;

		memset(in, 0, sizeof in);
		for (int i = 0; i < 4; i++)
			out[i].i = number(chk_rank, i), out[i].l = -out[i].i, out[i].d = out[i].i / 8.0;
		/* Two whole ones, and int and long of a third. */
		MPI_Type_free(&part);
		{
			MPI_Datatype parts[2];
			int lens[2] = { 2, 1 };
			MPI_Aint where[2] = { 0, 2 * (MPI_Aint)sizeof *out };
			MPI_Datatype third;

			MPI_Type_create_struct(2, one, at, types, &third);
			parts[0] = all;
			parts[1] = third;
			MPI_Type_create_struct(2, lens, where, parts, &part);
			MPI_Type_commit(&part);
			MPI_Type_free(&third);
		}
		MPI_Isend(out, 1, part, to, TAG, MPI_COMM_WORLD, &req[0]);
		MPI_Irecv(in, 4, all, from, TAG, MPI_COMM_WORLD, &req[1]);
		MPI_Wait(&req[1], &st);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		MPI_Get_count(&st, all, &n);
		CHECK_EQ(n, MPI_UNDEFINED);
		MPI_Get_elements(&st, all, &n);
		CHECK_EQ(n, 8);
		for (int i = 0; i < 3; i++)
			CHECK(in[i].i == number(from, i) && in[i].l == -in[i].i &&
				(i == 2 || in[i].d == in[i].i / 8.0));
		CHECK(in[2].d == 0 && in[3].i == 0);
	}
	MPI_Type_free(&part);
	MPI_Type_free(&all);
}

/* The first `given` basic elements of two of a random type are sent alone: what arrives ends within an element, or before it. */
static void prefix(unsigned seed, int depth)
{
	struct made *m = malloc(sizeof *m);
	MPI_Datatype part, *types;
	MPI_Aint ex, lb, size, *at;
	char *out, *in;
	int *one, given;

	state = seed;
	make(m, depth, 0);
	MPI_Type_commit(&m->type);
	given = 1 + pick(2 * m->n);
	ex = extent_of(m->type);
	MPI_Type_get_true_extent(m->type, &lb, &size);
	size += lb + ex + (MPI_Aint)sizeof(struct ldouble_int); /* a pair is filled with its gap */
	types = malloc((size_t)given * sizeof(*types));
	at = malloc((size_t)given * sizeof *at);
	one = malloc((size_t)given * sizeof *one);
	for (int i = 0; i < given; i++) {
		one[i] = 1;
		at[i] = m->place[i % m->n].at + (i / m->n) * ex;
		types[i] = basic[m->place[i % m->n].b].type;
	}
	MPI_Type_create_struct(given, one, at, types, &part);
	MPI_Type_commit(&part);
	out = calloc(1, (size_t)size);
	in = malloc((size_t)size);
	fill(m, out, 2, chk_rank);
	PARTNERS
	{
		MPI_Status st;
		int n, e, bad = 0;

		memset(in, 0x5a, (size_t)size);
		MPI_Sendrecv(out, 1, part, to, TAG, in, 2, m->type, from, TAG, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, m->type, &n);
		CHECK_EQ(n, given % m->n == 0 ? given / m->n : MPI_UNDEFINED);
		if (countable(m)) {
			MPI_Get_elements(&st, m->type, &e);
			CHECK_EQ(e, given);
		}
		for (int i = 0; i < 2 * m->n; i++) {
			const struct place *p = &m->place[i % m->n];
			const char *here = in + p->at + (i / m->n) * ex;

			bad += i < given ? !basic[p->b].good(here, number(from, i)) : *here != 0x5a;
		}
		if (bad)
			chk_report(__FILE__, __LINE__,
				"seed %u, depth %d: %d of %d elements from rank %d: %d wrong", seed, depth,
				given, 2 * m->n, from, bad);
		CHECK(bad == 0);
	}
	MPI_Type_free(&part);
	MPI_Type_free(&m->type);
	free(types);
	free(at);
	free(one);
	free(out);
	free(in);
	free(m);
}

static void replaced(void)
{
	PARTNERS
	{
		long v[5];
		MPI_Datatype column;

		MPI_Type_vector(2, 1, 3, MPI_LONG, &column);
		MPI_Type_commit(&column);
		for (int i = 0; i < 5; i++)
			v[i] = number(chk_rank, i);
		MPI_Sendrecv_replace(v, 1, column, to, TAG, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(v[i], number(i % 3 == 0 ? from : chk_rank, i));
		MPI_Type_free(&column);
	}
}

/* Many types alive at once: MPICH 4.0.2's MPI_Pack does not pack some of those beyond some 500. */
static void many(void)
{
	enum { MANY = 1200 };
	static MPI_Datatype made[MANY];
	MPI_Datatype first[] = { MPI_CHAR, MPI_DOUBLE, MPI_LONG_LONG };
	int one[] = { 1, 1 };
	MPI_Aint at[] = { 0, 16 };

	for (int k = 0; k < MANY; k++) {
		MPI_Datatype of[] = { first[k % 3], MPI_CHAR };

		MPI_Type_create_struct(1 + k % 2, one, at, of, &made[k]);
		MPI_Type_commit(&made[k]);
	}
	PARTNERS
	{
		for (int k = 0; k < MANY; k += 7) {
			unsigned char out[24], in[24] = { 0 }, want[24];
			size_t n = k % 3 == 0 ? 1 : 8;

			chk_fill(out, sizeof out, chk_seed(chk_rank, k, 0, 0));
			chk_fill(want, sizeof want, chk_seed(from, k, 0, 0));
			MPI_Sendrecv(out, 1, made[k], to, TAG, in, 1, made[k], from, TAG, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
			CHECK(memcmp(in, want, n) == 0 && (k % 2 == 0 || in[16] == want[16]));
		}
	}
	for (int k = 0; k < MANY; k++)
		MPI_Type_free(&made[k]);
}

int main(int argc, char **argv)
{
	unsigned types;

	chk_begin(&argc, &argv, "typed", 2);
	types = (unsigned)chk_arg(argc, argv, 1, 24);
	basics();
	named(1);
	named(300);
	named(9000);
	for (unsigned seed = 1; seed <= types; seed++)
		derived(seed, 1 + (int)(seed % 3), seed % 4 == 0 ? 3000 : seed % 2 ? 1 : 40);
	for (unsigned seed = 10001; seed <= 10000 + types; seed++)
		prefix(seed, (int)(seed % 4));
	partial();
	replaced();
	many();
	return chk_end();
}
