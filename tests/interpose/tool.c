/* tool.c - a profiler: wraps some functions of C and Fortran and reports the calls of the whole world at the end. With -DNEXT it finds
 * what it calls by dlsym(RTLD_NEXT), as Darshan does, else it calls PMPI_X, as mpiP, Score-P and Extrae do. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static long calls[3];
static int depth; /* MPICH's Fortran calls C's MPI_X: one call of the program */

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
#ifdef NEXT
	int (*real)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) = (int (*)(const void *,
		void *, int, MPI_Datatype, MPI_Op, MPI_Comm))(uintptr_t)dlsym(RTLD_NEXT, "MPI_Allreduce");
#else
#define real PMPI_Allreduce
#endif
	calls[0] += !depth;
	return real(in, out, n, type, op, comm);
}

void pmpi_allreduce_(void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
#pragma weak pmpi_allreduce_
void pmpi_comm_get_attr_(MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *);
#pragma weak pmpi_comm_get_attr_

void mpi_allreduce_(
	void *in, void *out, MPI_Fint *n, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierr)
{
	calls[1]++;
	depth++;
	pmpi_allreduce_(in, out, n, type, op, comm, ierr);
	depth--;
}

void mpi_comm_get_attr_(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr)
{
	calls[2]++;
	pmpi_comm_get_attr_(comm, keyval, value, flag, ierr);
}

static void report(void)
{
	static int once;
	long sum[3];
	int rank, size;

	if (once++)
		return;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	PMPI_Reduce(calls, sum, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("tool: %d ranks, allreduce %ld C %ld Fortran, get_attr %ld\n", size, sum[0], sum[1],
			sum[2]);
	fflush(stdout);
}

int MPI_Finalize(void)
{
	report();
	return PMPI_Finalize();
}

void mpi_finalize_(MPI_Fint *ierr)
{
	report();
	*ierr = PMPI_Finalize();
}
