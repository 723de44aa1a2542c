#!/usr/bin/python3
"""mpi4py_basic - pickled objects of odd sizes, numpy buffers, any source, collectives of both kinds, split, requests.

Works with any number of ranks; prints "mpi4py_basic: N checks, M failed" on rank 0, exit status 1 on all if M > 0.
"""
import sys
import traceback

from mpi4py import MPI
import numpy as np

comm = MPI.COMM_WORLD
me, n = comm.Get_rank(), comm.Get_size()
right, left = (me + 1) % n, (me - 1) % n
checks = failed = 0


def check(ok, want=True):
    global checks, failed
    checks += 1
    same = ok == want
    if not (same if isinstance(same, bool) else np.all(same)):
        failed += 1
        line = traceback.extract_stack()[-2].lineno
        if failed < 12:
            print(f"mpi4py_basic: rank {me}: mpi4py_basic.py:{line}: expected {want!r}, got {ok!r}"[:500], file=sys.stderr)


def thing(rank, size):
    return {"rank": rank, "bytes": bytes((rank + i) % 256 for i in range(size)), "list": list(range(rank)), "none": None}


# objects around a ring; sizes odd, short and long
for size in (0, 1, 7, 1967, 4099, 65537, 300001):
    got = comm.sendrecv(thing(me, size), dest=right, sendtag=size % 1000, source=left, recvtag=size % 1000)
    check(got, thing(left, size))

# from everybody, by wildcard; the object says who sent it
reqs = [comm.isend((me, i, "x" * (me * 100 + i)), dest=(me + i) % n, tag=11) for i in range(n)]
seen = set()
for _ in range(n):
    st = MPI.Status()
    src, i, text = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=st)
    check(st.Get_source(), src)
    check(st.Get_tag(), 11)
    check((src + i) % n, me)
    check(len(text), src * 100 + i)
    seen.add(src)
check(seen, set(range(n)))
MPI.Request.waitall(reqs)
comm.Barrier()

# irecv of an object, probe, matched probe
r = comm.irecv(source=left, tag=12)
comm.send([me] * 50, dest=right, tag=12)
check(r.wait(), [left] * 50)
q = comm.isend("a" * 1001, dest=right, tag=13)
m = comm.mprobe(source=MPI.ANY_SOURCE, tag=13)
check(m.recv(), "a" * 1001)
q.wait()

# numpy buffers: several types, sizes, strides
for dtype in (np.int8, np.int32, np.int64, np.float32, np.float64, np.complex128):
    for count in (0, 1, 1000, 70000):
        a = (np.arange(count) % 100 + me % 20).astype(dtype)
        b = np.full(count + 3, 99, dtype)
        rq = comm.Irecv(b, source=left, tag=14)
        comm.Send(a, dest=right, tag=14)
        st = MPI.Status()
        rq.Wait(st)
        check(st.Get_count(MPI._typedict[np.dtype(dtype).char]), count)
        check(bool(np.array_equal(b[:count], (np.arange(count) % 100 + left % 20).astype(dtype))))
        check(bool(np.all(b[count:] == 99)))
column = MPI.DOUBLE.Create_vector(20, 1, 30).Commit()
a = np.arange(600, dtype="d").reshape(20, 30) + me
b = np.zeros(20)
comm.Sendrecv([a, 1, column], dest=right, recvbuf=b, source=left)
check(bool(np.array_equal(b, np.arange(20) * 30.0 + left)))
column.Free()

# persistent and Waitany
b = np.zeros(5, "i")
a = np.zeros(5, "i")
p = [comm.Recv_init(b, source=left, tag=15), comm.Send_init(a, dest=right, tag=15)]
for k in range(3):
    a[:] = me * 10 + k
    MPI.Prequest.Startall(p)
    MPI.Request.Waitall(p)
    check(bool(np.all(b == left * 10 + k)))
for x in p:
    x.Free()

# collectives on objects
for root in range(n):
    check(comm.bcast(thing(me, 333) if me == root else None, root), thing(root, 333))
    got = comm.gather((me, "g" * me), root)
    check(got, [(i, "g" * i) for i in range(n)] if me == root else None)
    got = comm.scatter([f"{root}->{i}" for i in range(n)] if me == root else None, root)
    check(got, f"{root}->{me}")
check(comm.allgather("r" * me), ["r" * i for i in range(n)])
check(comm.alltoall([(me, i) for i in range(n)]), [(i, me) for i in range(n)])
check(comm.allreduce([me]), list(range(n)))
check(comm.allreduce(me, op=MPI.MAX), n - 1)
check(comm.scan(me), me * (me + 1) // 2)
got = comm.exscan(str(me))
check(got, None if me == 0 else "".join(str(i) for i in range(me)))

# collectives on buffers
a = np.arange(1000, dtype="d") + me
b = np.empty_like(a)
comm.Allreduce(a, b)
check(bool(np.array_equal(b, np.arange(1000) * float(n) + n * (n - 1) // 2)))
comm.Allreduce(MPI.IN_PLACE, a, op=MPI.MIN)
check(bool(np.array_equal(a, np.arange(1000.0))))
g = np.empty((n, 3), "i")
comm.Allgather(np.full(3, me, "i"), g)
check(bool(np.array_equal(g, np.repeat(np.arange(n), 3).reshape(n, 3))))
counts = [i % 3 for i in range(n)]
v = np.empty(sum(counts), "i")
comm.Gatherv(np.full(counts[me], me, "i"), [v, counts] if me == n - 1 else None, root=n - 1)
if me == n - 1:
    check(v.tolist(), [i for i in range(n) for _ in range(counts[i])])
s, t = np.arange(n, dtype="i") + 100 * me, np.empty(n, "i")
comm.Alltoall(s, t)
check(t.tolist(), [100 * i + me for i in range(n)])
x = np.full(10, me, "i")
comm.Ibcast(x, root=0).Wait()
check(bool(np.all(x == 0)))
product = MPI.Op.Create(lambda p, q, dt: np.frombuffer(q, "i").__setitem__(slice(None), np.frombuffer(q, "i") * np.frombuffer(p, "i")), commute=True)
x = np.array([2, 1 + me % 2], "i")
comm.Allreduce(MPI.IN_PLACE, x, op=product)
check(x.tolist(), [2 ** n, 2 ** (n // 2)])
product.Free()

# communicators, groups, attributes, errors
half = comm.Split(me % 2, -me)
check(half.Get_size(), (n - me % 2 + 1) // 2)
check(half.allgather(me), [i for i in range(n - 1, -1, -1) if i % 2 == me % 2])
check(MPI.Comm.Compare(comm, half), MPI.UNEQUAL if n > 1 else MPI.CONGRUENT)
half.Free()
group = comm.Get_group().Incl(list(range(n - 1, -1, -1)))
rev = comm.Create(group)
check(rev.Get_rank(), n - 1 - me)
check(MPI.Group.Translate_ranks(group, [0], comm.Get_group()), [n - 1])
rev.Free()
dup = comm.Dup()
key = MPI.Comm.Create_keyval()
dup.Set_attr(key, {"mine": me})
check(dup.Get_attr(key), {"mine": me})
dup.Delete_attr(key)
dup.Free()
check(comm.Get_attr(MPI.TAG_UB) >= 32767)
try:
    comm.send(1, dest=n + 1)
    check(False)
except MPI.Exception as e:
    check(e.Get_error_class(), MPI.ERR_RANK)
node = comm.Split_type(MPI.COMM_TYPE_SHARED)
check(1 <= node.Get_size() <= n)
node.Free()

if me:
    comm.send((checks, failed), 0, 100)
    total = comm.recv(source=0, tag=101)
else:
    parts = [(checks, failed)] + [comm.recv(source=i, tag=100) for i in range(1, n)]
    total = sum(p[1] for p in parts)
    print(f"mpi4py_basic: {sum(p[0] for p in parts)} checks, {total} failed", flush=True)
    for i in range(1, n):
        comm.send(total, i, 101)
sys.exit(1 if total else 0)
