/*
 * huge - one long message from the first to the last rank and back: contiguous, then strided on the receiving side,
 * then on both.  Argument: bytes (default 40 MB, rounded down to 64 KiB); above 2 GiB it shows 64-bit lengths, because the
 * count is one of 64 KiB items.  Needs three times that much memory on two ranks.
 */
#include "check.h"

enum { ITEM = 65536 };

int main(int argc, char **argv)
{
	MPI_Datatype item, spread;
	MPI_Status st;
	MPI_Count elements;
	int count, got;

	chk_begin(&argc, &argv, "huge", 2);
	count = (int)(chk_arg(argc, argv, 1, 40000000) / ITEM);
	size_t bytes = (size_t)count * ITEM;
	int last = chk_size - 1;
	MPI_Type_contiguous(ITEM, MPI_BYTE, &item);
	MPI_Type_commit(&item);
	MPI_Type_create_resized(item, 0, ITEM + 4096, &spread);
	MPI_Type_commit(&spread);
	for (int way = 0; way < 3 && (chk_rank == 0 || chk_rank == last); way++) {
		int sender = way == 1 ? last : 0, other = last - chk_rank;
		MPI_Datatype out = way == 2 ? spread : item, in = way ? spread : item;
		size_t ostep = way == 2 ? ITEM + 4096 : ITEM, istep = way ? ITEM + 4096 : ITEM;

		if (chk_rank == sender) {
			char *p = chk_alloc((size_t)count * ostep);

			for (int i = 0; i < count; i++)
				chk_fill(p + (size_t)i * ostep, ITEM, chk_seed(i, way, 0, 0));
			MPI_Send(p, count, out, other, way, MPI_COMM_WORLD);
			free(p);
		} else {
			char *p = chk_alloc((size_t)count * istep);
			int bad = 0;

			memset(p, 0x55, (size_t)count * istep);
			MPI_Recv(p, count, in, way == 1 ? MPI_ANY_SOURCE : other, way, MPI_COMM_WORLD, &st);
			CHECK_STATUS(&st, other, way, in, count);
			MPI_Get_elements_x(&st, in, &elements);
			CHECK_EQ(elements, bytes);
			MPI_Get_count(&st, MPI_BYTE, &got);
			CHECK_EQ(got, bytes > 2147483647 ? MPI_UNDEFINED : (long long)bytes);
			for (int i = 0; i < count; i++) {
				CHECK_BYTES(p + (size_t)i * istep, ITEM, chk_seed(i, way, 0, 0));
				for (size_t k = ITEM; k < istep; k++)
					bad += p[(size_t)i * istep + k] != 0x55;
			}
			CHECK_EQ(bad, 0);
			free(p);
		}
	}
	MPI_Type_free(&item);
	MPI_Type_free(&spread);
	return chk_end();
}
