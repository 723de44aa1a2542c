"""h5py_rows.py FILE: ranks write rows of a dataset each, collectively and on their own, and each reads what the others have written."""
import sys

import h5py
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
rows, width = 8, 1000
wrong = 0


def row(i):
    return np.arange(width) * 0.5 + 1000.0 * i


with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as f:
    dealt = f.create_dataset("dealt", (rows * size, width), dtype="f8")  # rows to the ranks in turn
    blocks = f.create_dataset("blocks", (size, rows, width), dtype="f4", chunks=(1, rows, width // 4))
    f.attrs["ranks"] = size
    for i in range(rank, rows * size, size):
        dealt[i] = row(i)  # independent
    with blocks.collective:
        blocks[rank] = np.stack([row(rank * rows + i) for i in range(rows)]).astype("f4")

with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as f:
    wrong += int(f.attrs["ranks"] != size)
    with f["dealt"].collective:
        wrong += int((f["dealt"][:] != np.stack([row(i) for i in range(rows * size)])).sum())
    other = (rank + 1) % size
    wrong += int((f["blocks"][other] != np.stack([row(other * rows + i) for i in range(rows)]).astype("f4")).sum())

all_wrong = comm.allreduce(wrong)
if rank == 0:
    print(f"{size} ranks, {all_wrong} values wrong")
sys.exit(1 if all_wrong else 0)
