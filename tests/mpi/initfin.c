/*
 * initfin - MPI_Init_thread (argument: 0 to 3, the level wanted; default MPI_Init), what may be asked before and after,
 * processor name, version, time.
 */
#include "check.h"

int main(int argc, char **argv)
{
	static const int level[] = { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
		MPI_THREAD_MULTIPLE };
	int before[4] = { 7, 7, 7, 7 }, flag, provided = -1, len = -1, main_thread = 0, after = 1;
	long want = argc > 1 ? strtol(argv[1], NULL, 0) & 3 : -1;
	char name[MPI_MAX_PROCESSOR_NAME], lib[MPI_MAX_LIBRARY_VERSION_STRING];

	MPI_Initialized(&before[0]);
	MPI_Finalized(&before[1]);
	MPI_Get_version(&before[2], &before[3]);
	MPI_Get_library_version(lib, &len);
	if (want < 0)
		MPI_Init(&argc, &argv);
	else
		MPI_Init_thread(&argc, &argv, level[want], &provided);
	chk_start("initfin", 1);
	CHECK(before[0] == 0 && before[1] == 0);
	CHECK(before[2] == MPI_VERSION && before[3] == MPI_SUBVERSION);
	CHECK(len > 0 && len < MPI_MAX_LIBRARY_VERSION_STRING && (int)strlen(lib) >= len - 1);
	MPI_Initialized(&flag);
	CHECK_EQ(flag, 1);
	MPI_Finalized(&flag);
	CHECK_EQ(flag, 0);
	MPI_Query_thread(&flag);
	CHECK(flag >= MPI_THREAD_SINGLE && flag <= MPI_THREAD_MULTIPLE);
	if (want >= 0)
		CHECK_EQ(flag, provided);
	MPI_Is_thread_main(&main_thread);
	CHECK_EQ(main_thread, 1);
	MPI_Get_processor_name(name, &len);
	CHECK(len > 0 && (int)strlen(name) == len);
	double t = MPI_Wtime(), t2;
	CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 0.1);
	do
		t2 = MPI_Wtime();
	while (t2 - t < 0.005);
	CHECK(t2 > t && t2 - t < 60);
	CHECK(chk_rank >= 0 && chk_rank < chk_size);
	int rc = chk_end();
	MPI_Finalized(&after);
	MPI_Initialized(&flag);
	if (!after || !flag) {
		fprintf(stderr,
			"initfin: rank %d: after MPI_Finalize: finalized %d, initialized %d, expected 1, 1\n",
			chk_rank, after, flag);
		rc = 1;
	}
	return rc;
}
