! f_rma - windows from Fortran, by `use mpi`: predefined attributes (which reach no C function), displacements as addresses,
! Win_allocate by a Cray pointer's integer, operations, locks, a dynamic window.
      program f_rma
      use mpi
      use, intrinsic :: iso_c_binding
      implicit none
      integer :: me, np, ierr, win, right, left, i, got, req, checks, failed, sums(2)
      integer(kind=MPI_ADDRESS_KIND) :: val, bytes, zero, addr, there
      type(c_ptr) :: base
      integer, pointer :: mem(:)
      integer, target, asynchronous :: own(16), v(4)
      logical :: flag

      checks = 0
      failed = 0
      zero = 0
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
      right = mod(me + 1, np)
      left = mod(me + np - 1, np)

      bytes = 64
      call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
      call c_f_pointer(base, mem, [16])
      call attributes(transfer(base, val), 4, MPI_WIN_FLAVOR_ALLOCATE)
      mem = me
      call MPI_Win_fence(0, win, ierr)
      v = 100 + me
      call MPI_Put(v, 2, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win, ierr)
      call MPI_Accumulate(v, 1, MPI_INTEGER, 0, 9_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win, ierr)
      call MPI_Get(got, 1, MPI_INTEGER, left, zero, 1, MPI_INTEGER, win, ierr)
      call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
      call check(got == left, 10)
      call check(mem(4) == 100 + left .and. mem(5) == 100 + left .and. mem(6) == me, 11)
      if (me == 0) call check(mem(10) == 100 * np + np * (np - 1) / 2, 12)
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win, ierr)
      v(2) = -1
      call MPI_Fetch_and_op(me, v(2), MPI_INTEGER, right, 12_MPI_ADDRESS_KIND, MPI_SUM, win, ierr)
      call MPI_Rget(v(3), 1, MPI_INTEGER, right, zero, 1, MPI_INTEGER, win, req, ierr)
      call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
      call MPI_Win_unlock(right, win, ierr)
      call check(v(2) == right .and. v(3) == right, 13)
      call MPI_Win_free(win, ierr)
      call check(win == MPI_WIN_NULL, 14)

      call MPI_Win_create(own, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
      call MPI_Get_address(own, addr, ierr)
      call attributes(addr, 1, MPI_WIN_FLAVOR_CREATE)
      call MPI_Win_free(win, ierr)

      call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
      call MPI_Win_attach(win, own, bytes, ierr)
      own = -1
      call MPI_Sendrecv(addr, 1, MPI_AINT, left, 1, there, 1, MPI_AINT, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Win_lock_all(0, win, ierr)
      call MPI_Put(me, 1, MPI_INTEGER, right, there, 1, MPI_INTEGER, win, ierr)
      call MPI_Win_unlock_all(win, ierr)
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      call check(own(1) == left .and. own(2) == -1, 20)
      call MPI_Win_detach(win, own, ierr)
      call MPI_Win_free(win, ierr)

      sums = [checks, failed]
      call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
      if (me == 0) print '(a, i0, a, i0, a)', 'f_rma: ', sums(1), ' checks, ', sums(2), ' failed'
      call MPI_Finalize(ierr)
      if (sums(2) > 0) stop 1

      contains
         subroutine attributes(where, unit, kind)
            integer(kind=MPI_ADDRESS_KIND), intent(in) :: where
            integer, intent(in) :: unit, kind
            call MPI_Win_get_attr(win, MPI_WIN_BASE, val, flag, ierr)
            call check(flag .and. val == where, 1)
            call MPI_Win_get_attr(win, MPI_WIN_SIZE, val, flag, ierr)
            call check(flag .and. val == bytes, 2)
            call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, val, flag, ierr)
            call check(flag .and. val == unit, 3)
            call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, val, flag, ierr)
            call check(flag .and. val == kind, 4)
         end subroutine
         subroutine check(ok, number)
            logical, intent(in) :: ok
            integer, intent(in) :: number
            checks = checks + 1
            if (ok) return
            failed = failed + 1
            write (0, '(a,i0,a,i0)') 'f_rma: rank ', me, ': failed: check ', number
         end subroutine
      end program
