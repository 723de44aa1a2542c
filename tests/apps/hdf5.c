/*
 * hdf5.c - parallel HDF5: a matrix whose columns are dealt out to the ranks, written collectively; a chunked one that the ranks
 * write by rows, independently; an attribute. The file is closed and opened again, and every rank reads what the others
 * wrote. usage: hdf5 FILE
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 60
#define EACH 7 /* columns of a rank */

static int rank, size;

static void must(long long id, const char *what)
{
	if (id >= 0)
		return;
	fprintf(stderr, "hdf5: rank %d: %s failed\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static hid_t open_file(const char *path, int create)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), f;

	must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
	f = create ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
		   : H5Fopen(path, H5F_ACC_RDONLY, access);
	must(f, create ? "H5Fcreate" : "H5Fopen");
	H5Pclose(access);
	return f;
}

/* Columns owner, owner + size, ... of the matrix. */
static hid_t columns(hid_t space, int owner)
{
	hsize_t start[2] = { 0, (hsize_t)owner }, stride[2] = { 1, (hsize_t)size }, count[2] = { ROWS, EACH };

	must(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL), "H5Sselect_hyperslab");
	return space;
}

static hid_t transfer(H5FD_mpio_xfer_t how)
{
	hid_t p = H5Pcreate(H5P_DATASET_XFER);

	must(H5Pset_dxpl_mpio(p, how), "H5Pset_dxpl_mpio");
	return p;
}

static void write_all(const char *path)
{
	hsize_t dims[2] = { ROWS, (hsize_t)(EACH * size) }, mem[2] = { ROWS, EACH }, chunk[2] = { 8, 16 };
	hid_t f = open_file(path, 1), space = H5Screate_simple(2, dims, NULL),
	      own = H5Screate_simple(2, mem, NULL);
	hid_t plain = H5Pcreate(H5P_DATASET_CREATE), collective = transfer(H5FD_MPIO_COLLECTIVE);
	hid_t alone = transfer(H5FD_MPIO_INDEPENDENT), d, a, one = H5Screate(H5S_SCALAR);
	double v[ROWS][EACH];
	int *row = calloc((size_t)dims[1], sizeof *row);

	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < EACH; j++)
			v[i][j] = i * 1000.0 + rank + j * size;
	must(H5Pset_obj_track_times(plain, 0),
		"H5Pset_obj_track_times"); /* two runs then give the same bytes */
	d = H5Dcreate2(f, "columns", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, plain, H5P_DEFAULT);
	must(d, "H5Dcreate2");
	must(H5Dwrite(d, H5T_NATIVE_DOUBLE, own, columns(space, rank), collective, v), "collective H5Dwrite");
	H5Dclose(d);
	H5Pset_chunk(plain, 2, chunk);
	d = H5Dcreate2(f, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, plain, H5P_DEFAULT);
	must(d, "H5Dcreate2");
	for (int r = rank; r < ROWS && row; r += size) {
		hsize_t start[2] = { (hsize_t)r, 0 }, count[2] = { 1, dims[1] };
		hid_t line = H5Screate_simple(2, count, NULL);

		for (hsize_t j = 0; j < dims[1]; j++)
			row[j] = r * 10000 + (int)j;
		must(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL),
			"H5Sselect_hyperslab");
		must(H5Dwrite(d, H5T_NATIVE_INT, line, space, alone, row), "independent H5Dwrite");
		H5Sclose(line);
	}
	a = H5Acreate2(d, "ranks", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT);
	must(H5Awrite(a, H5T_NATIVE_INT, &size), "H5Awrite");
	H5Aclose(a);
	H5Dclose(d);
	must(H5Fclose(f), "H5Fclose");
	free(row);
}

/* Returns how many values are wrong. */
static int read_all(const char *path)
{
	hsize_t mem[2] = { ROWS, EACH };
	hid_t f = open_file(path, 0), d = H5Dopen2(f, "columns", H5P_DEFAULT), space = H5Dget_space(d);
	hid_t own = H5Screate_simple(2, mem, NULL), collective = transfer(H5FD_MPIO_COLLECTIVE), a;
	int from = (rank + 1) % size, bad = 0, ranks = 0,
	    *all = calloc((size_t)(ROWS * EACH * size), sizeof *all);
	double v[ROWS][EACH];

	must(H5Dread(d, H5T_NATIVE_DOUBLE, own, columns(space, from), collective, v), "collective H5Dread");
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < EACH; j++)
			bad += v[i][j] != i * 1000.0 + from + j * size;
	H5Dclose(d);
	d = H5Dopen2(f, "rows", H5P_DEFAULT);
	must(all ? H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) : -1, "H5Dread");
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < EACH * size; j++)
			bad += all[i * EACH * size + j] != i * 10000 + j;
	a = H5Aopen(d, "ranks", H5P_DEFAULT);
	must(H5Aread(a, H5T_NATIVE_INT, &ranks), "H5Aread");
	bad += ranks != size;
	H5Aclose(a);
	H5Dclose(d);
	must(H5Fclose(f), "H5Fclose");
	free(all);
	return bad;
}

int main(int argc, char **argv)
{
	int bad, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	write_all(argv[1]);
	bad = read_all(argv[1]);
	MPI_Allreduce(&bad, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("hdf5: %d ranks, %d values wrong\n", size, sum);
	MPI_Finalize();
	return sum != 0;
}
