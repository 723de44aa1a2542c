/*
 * pacxh - a program that includes pacx.h: sites, the site of each rank, MPI_COMM_LOCAL, agreeing at all ranks.  Without PACX there is
 * one site.
 */
#include "../../include/pacx.h"

#include "check.h"

int main(int argc, char **argv)
{
	int sites, site, n, r, sum = 0, size, *of, mine[2], low[2];
	MPI_Comm local, dup;
	const char *name;

	CHECK_EQ(pacx_sites(), 1); /* not before MPI_Init */
	CHECK_EQ(pacx_site_of(0), -1);
	chk_begin(&argc, &argv, "pacxh", 2);
	sites = pacx_sites();
	CHECK(sites >= 1 && sites <= chk_size);
	CHECK_EQ(pacx_site_of(-1), -1);
	CHECK_EQ(pacx_site_of(chk_size), -1);
	of = malloc((size_t)chk_size * sizeof *of);
	site = pacx_site_of(chk_rank);
	MPI_Allgather(&site, 1, MPI_INT, of, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < chk_size; i++) {
		CHECK_EQ(pacx_site_of(i), of[i]);
		CHECK(of[i] >= 0 && of[i] < sites &&
			(i == 0 || of[i] == of[i - 1] || of[i] == of[i - 1] + 1));
		sum += of[i] == site;
	}
	CHECK_EQ(of[0], 0);
	CHECK_EQ(of[chk_size - 1], sites - 1);
	for (int i = 0; i < sites; i++) {
		name = pacx_site_name(i);
		CHECK(name && *name);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(name, pacx_site_name(k)) != 0);
	}
	CHECK(!pacx_site_name(-1));
	CHECK(!pacx_site_name(sites));
	CHECK(sites == 1 || (pacx_version() && strchr(pacx_version(), '.')));

	local = MPI_COMM_LOCAL;
	MPI_Comm_size(local, &n);
	MPI_Comm_rank(local, &r);
	CHECK_EQ(n, sum);
	for (int i = 0, k = 0; i <= chk_rank; i++)
		if (of[i] == site && i == chk_rank)
			CHECK_EQ(r, k);
		else
			k += of[i] == site;
	mine[0] = site;
	mine[1] = -site;
	MPI_Allreduce(mine, low, 2, MPI_INT, MPI_MIN, local);
	CHECK_EQ(low[0], site);
	CHECK_EQ(low[1], -site);
	MPI_Comm_dup(local, &dup);
	MPI_Comm_size(dup, &size);
	CHECK_EQ(size, n);
	MPI_Comm_free(&dup);

	CHECK_EQ(pacx_set_associative(MPI_COMM_WORLD, 1), MPI_SUCCESS);
	n = 1;
	MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK_EQ(n, chk_size);
	CHECK_EQ(pacx_set_associative(MPI_COMM_WORLD, 0), MPI_SUCCESS);
	free(of);
	return chk_end();
}
