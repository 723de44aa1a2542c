/*
 * file_ways.h - every form of data access by which a rank writes its own block of a file, and reads another's.
 */
#ifndef FILE_WAYS_H
#define FILE_WAYS_H

#include "check.h"

#define BLOCK 1000 /* bytes of a rank */

static MPI_Offset mine(void)
{
	return (MPI_Offset)chk_rank * BLOCK;
}

static void count_is(const MPI_Status *st, MPI_Datatype t, int n)
{
	int got = -1;

	MPI_Get_count(st, t, &got);
	CHECK_EQ(got, n);
}

/* The ways to write one's own block, by number. */
enum { AT, AT_ALL, OWN, ALL, IAT, IAT_ALL, IOWN, IALL, SPLIT, SPLIT_AT, WAYS };

static void write_way(MPI_File f, int way, const void *b)
{
	MPI_Request q = MPI_REQUEST_NULL;
	MPI_Status st;

	memset(&st, 0, sizeof st);
	CHECK_EQ(MPI_File_seek(f, mine(), MPI_SEEK_SET), MPI_SUCCESS);
	switch (way) {
	case AT:
		MPI_File_write_at(f, mine(), b, BLOCK, MPI_BYTE, &st);
		break;
	case AT_ALL:
		MPI_File_write_at_all(f, mine(), b, BLOCK, MPI_BYTE, &st);
		break;
	case OWN:
		MPI_File_write(f, b, BLOCK, MPI_BYTE, &st);
		break;
	case ALL:
		MPI_File_write_all(f, b, BLOCK, MPI_BYTE, &st);
		break;
	case IAT:
		MPI_File_iwrite_at(f, mine(), b, BLOCK, MPI_BYTE, &q);
		break;
	case IAT_ALL:
		MPI_File_iwrite_at_all(f, mine(), b, BLOCK, MPI_BYTE, &q);
		break;
	case IOWN:
		MPI_File_iwrite(f, b, BLOCK, MPI_BYTE, &q);
		break;
	case IALL:
		MPI_File_iwrite_all(f, b, BLOCK, MPI_BYTE, &q);
		break;
	case SPLIT:
		MPI_File_write_all_begin(f, b, BLOCK, MPI_BYTE);
		MPI_File_write_all_end(f, b, &st);
		break;
	case SPLIT_AT:
		MPI_File_write_at_all_begin(f, mine(), b, BLOCK, MPI_BYTE);
		MPI_File_write_at_all_end(f, b, &st);
		break;
	}
	if (way >= IAT && way <= IALL) {
		CHECK(q != MPI_REQUEST_NULL);
		CHECK_EQ(MPI_Wait(&q, &st), MPI_SUCCESS);
		CHECK(q == MPI_REQUEST_NULL);
	}
	count_is(&st, MPI_BYTE, BLOCK);
}

/* The same for reading, of the block of rank r. */
static void read_way(MPI_File f, int way, int r, void *b)
{
	MPI_Offset off = (MPI_Offset)r * BLOCK;
	MPI_Request q = MPI_REQUEST_NULL;
	MPI_Status st;
	int flag = 0;

	memset(&st, 0, sizeof st);
	memset(b, 0, BLOCK);
	CHECK_EQ(MPI_File_seek(f, off, MPI_SEEK_SET), MPI_SUCCESS);
	switch (way) {
	case AT:
		MPI_File_read_at(f, off, b, BLOCK, MPI_BYTE, &st);
		break;
	case AT_ALL:
		MPI_File_read_at_all(f, off, b, BLOCK, MPI_BYTE, &st);
		break;
	case OWN:
		MPI_File_read(f, b, BLOCK, MPI_BYTE, &st);
		break;
	case ALL:
		MPI_File_read_all(f, b, BLOCK, MPI_BYTE, &st);
		break;
	case IAT:
		MPI_File_iread_at(f, off, b, BLOCK, MPI_BYTE, &q);
		break;
	case IAT_ALL:
		MPI_File_iread_at_all(f, off, b, BLOCK, MPI_BYTE, &q);
		break;
	case IOWN:
		MPI_File_iread(f, b, BLOCK, MPI_BYTE, &q);
		break;
	case IALL:
		MPI_File_iread_all(f, b, BLOCK, MPI_BYTE, &q);
		break;
	case SPLIT:
		MPI_File_read_all_begin(f, b, BLOCK, MPI_BYTE);
		MPI_File_read_all_end(f, b, &st);
		break;
	case SPLIT_AT:
		MPI_File_read_at_all_begin(f, off, b, BLOCK, MPI_BYTE);
		MPI_File_read_at_all_end(f, b, &st);
		break;
	}
	while (way >= IAT && way <= IALL && !flag)
		if (MPI_Test(&q, &flag, &st) != MPI_SUCCESS)
			CHECK(!(flag = 1));
	count_is(&st, MPI_BYTE, BLOCK);
}

#endif
