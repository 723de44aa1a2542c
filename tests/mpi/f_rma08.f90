! f_rma08 - windows from Fortran, by `use mpi_f08`: the predefined attributes, which reach no C function; ierror left out.
      program f_rma08
      use mpi_f08
      use, intrinsic :: iso_c_binding
      implicit none
      integer :: me, np, ierr, right, left, sums(2)
      integer(kind=MPI_ADDRESS_KIND) :: val, bytes
      type(c_ptr) :: base
      type(MPI_Win) :: win
      type(MPI_Request) :: req
      integer, pointer :: mem(:)
      integer, asynchronous :: v, got
      logical :: flag

      sums = 0
      call MPI_Init()
      call MPI_Comm_rank(MPI_COMM_WORLD, me)
      call MPI_Comm_size(MPI_COMM_WORLD, np)
      right = mod(me + 1, np)
      left = mod(me + np - 1, np)
      bytes = 64
      call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
      call c_f_pointer(base, mem, [16])
      call MPI_Win_get_attr(win, MPI_WIN_BASE, val, flag, ierr)
      call check(flag .and. val == transfer(base, val))
      call MPI_Win_get_attr(win, MPI_WIN_SIZE, val, flag)
      call check(flag .and. val == bytes)
      call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, val, flag)
      call check(flag .and. val == 4)
      call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, val, flag)
      call check(flag .and. val == MPI_WIN_FLAVOR_ALLOCATE)
      mem = -1
      call MPI_Win_fence(0, win)
      v = me
      call MPI_Put(v, 1, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
      call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
      call check(mem(3) == left .and. mem(2) == -1)
      call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win)
      call MPI_Rget(got, 1, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, req)
      call MPI_Wait(req, MPI_STATUS_IGNORE)
      call MPI_Win_unlock(right, win)
      call check(got == me)
      call MPI_Win_free(win)
      call check(win == MPI_WIN_NULL)
      call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      if (me == 0) print '(a, i0, a, i0, a)', 'f_rma08: ', sums(1), ' checks, ', sums(2), ' failed'
      call MPI_Finalize()
      if (sums(2) > 0) stop 1

      contains
         subroutine check(ok)
            logical, intent(in) :: ok
            sums(1) = sums(1) + 1
            if (ok) return
            sums(2) = sums(2) + 1
            write (0, '(a,i0,a,i0)') 'f_rma08: rank ', me, ': failed: check ', sums(1)
         end subroutine
      end program
