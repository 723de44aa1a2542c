/* overhead.c: what libpacx adds to a 1-byte message inside a site. One rank sends to itself (Isend, Recv; the
 * request is completed natively, MPICH lets nobody Send to himself) through the interposed functions and through the vendor's own, in turns; prints the difference of the medians in ns per message:
 * add_world_ns on MPI_COMM_WORLD (spans sites when run so), add_local_ns on MPI_COMM_SELF, native_ns the message itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 20000
#define TURNS 31

static int (*n_isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
static int (*n_recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
static int (*n_wait)(MPI_Request *, MPI_Status *);

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double batch(int native, MPI_Comm comm, int rank)
{
	double start = MPI_Wtime();
	MPI_Request r;
	char in, out = 1;

	for (int i = 0; i < BATCH; i++) {
		if (native) {
			n_isend(&out, 1, MPI_CHAR, rank, 0, comm, &r);
			n_recv(&in, 1, MPI_CHAR, rank, 0, comm, MPI_STATUS_IGNORE);
			n_wait(&r, MPI_STATUS_IGNORE);
		} else {
			MPI_Isend(&out, 1, MPI_CHAR, rank, 0, comm, &r);
			MPI_Recv(&in, 1, MPI_CHAR, rank, 0, comm, MPI_STATUS_IGNORE);
			n_wait(&r, MPI_STATUS_IGNORE);
		}
	}
	return (MPI_Wtime() - start) / BATCH * 1e9;
}

static double median(double *v)
{
	qsort(v, TURNS, sizeof *v, by_value);
	return v[TURNS / 2];
}

int main(int argc, char **argv)
{
	double native[TURNS], self[TURNS], world[TURNS];
	int rank;
#ifdef OPEN_MPI
	void *h = dlopen("libmpi.so.40", RTLD_NOLOAD | RTLD_LAZY);
#else
	void *h = dlopen("libmpich.so.12", RTLD_NOLOAD | RTLD_LAZY);
#endif
	*(void **)&n_isend = dlsym(h, "PMPI_Isend");
	*(void **)&n_recv = dlsym(h, "PMPI_Recv");
	*(void **)&n_wait = dlsym(h, "PMPI_Wait");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		for (int i = 0; i < TURNS; i++) {
			native[i] = batch(1, MPI_COMM_SELF, 0);
			self[i] = batch(0, MPI_COMM_SELF, 0);
			world[i] = batch(0, MPI_COMM_WORLD, 0);
		}
		printf("native_ns %.1f\nadd_local_ns %.1f\nadd_world_ns %.1f\n", median(native),
			median(self) - median(native), median(world) - median(native));
	}
	MPI_Finalize();
	return 0;
}
