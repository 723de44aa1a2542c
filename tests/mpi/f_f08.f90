! f_f08 - the Fortran 2008 binding: typed handles, optional ierror, callbacks with its interfaces; the same things are
! tried as in f_body.inc.
      module f_f08_callbacks
      use mpi_f08
      implicit none
      integer :: copies, deletes
      contains
         subroutine copyfn(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
            type(MPI_Comm) :: oldcomm
            integer :: comm_keyval, ierror
            integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
            logical :: flag
            if (extra_state == 17 .and. comm_keyval /= MPI_KEYVAL_INVALID .and. oldcomm /= MPI_COMM_NULL) copies = copies + 1
            attribute_val_out = attribute_val_in + 1
            flag = .true.
            ierror = MPI_SUCCESS
         end subroutine
         subroutine deletefn(comm, comm_keyval, attribute_val, extra_state, ierror)
            ! comm is not checked: Open MPI 4.1 hands an undefined value to f08 callbacks
            type(MPI_Comm) :: comm
            integer :: comm_keyval, ierror
            integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
            if (extra_state == 17 .and. attribute_val /= 0 .and. comm_keyval /= MPI_KEYVAL_INVALID) &
     &         deletes = deletes + 1
            ierror = MPI_SUCCESS
         end subroutine
      end module

      program f_f08
      use mpi_f08
      use f_f08_callbacks
      implicit none
      character(len=5), parameter :: testname = 'f_f08'
      integer, parameter :: n = 3000
      integer :: ierr, me, np, right, left, i, k, got, hr, hn, key, cnt, want, idx
      type(MPI_Comm) :: half, dup
      type(MPI_Status) :: st, sts(4)
      type(MPI_Request) :: req(4)
      type(MPI_Group) :: world, grp
      type(MPI_Datatype) :: vec
      integer, asynchronous :: one(4), two(4)
      integer :: checks, failed, sums(2), other(2)
      integer, asynchronous :: a(n), b(n)
      double precision :: x(10), y(10)
      character(len=20) :: text
      character(len=60) :: fname
      integer(kind=MPI_OFFSET_KIND) :: place
      type(MPI_File) :: fh
      character(len=MPI_MAX_PROCESSOR_NAME) :: pname
      integer(kind=MPI_ADDRESS_KIND) :: extra, val, ext
      logical :: flag

      copies = 0
      deletes = 0
      checks = 0
      failed = 0
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, me)
      call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
      right = mod(me + 1, np)
      left = mod(me + np - 1, np)
      call MPI_Get_processor_name(pname, k, ierr)
      call check(k > 0, 1)
      call MPI_Initialized(flag, ierr)
      call check(flag .and. ierr == MPI_SUCCESS, 2)

      ! a ring, blocking on one side
      do i = 1, n
         a(i) = me * 10000 + i
      end do
      b = -1
      call MPI_Irecv(b, n, MPI_INTEGER, left, 5, MPI_COMM_WORLD, req(1))
      call MPI_Send(a, n, MPI_INTEGER, right, 5, MPI_COMM_WORLD, ierr)
      call MPI_Wait(req(1), st, ierr)
      call MPI_Get_count(st, MPI_INTEGER, cnt, ierr)
      call check(cnt == n .and. st%MPI_SOURCE == left .and. st%MPI_TAG == 5, 3)
      call check(b(1) == left * 10000 + 1 .and. b(n) == left * 10000 + n, 4)
      call check(req(1) == MPI_REQUEST_NULL, 5)

      ! four requests and their statuses; any source, any tag
      do k = 1, 2
         call MPI_Irecv(b((k - 1) * 1000 + 1), 1000, MPI_INTEGER, MPI_ANY_SOURCE, 10 + k, MPI_COMM_WORLD, req(k))
         call MPI_Isend(a(k), 10 * k, MPI_INTEGER, right, 10 + k, MPI_COMM_WORLD, req(2 + k), ierr)
      end do
      call MPI_Waitall(4, req, sts)
      do k = 1, 2
         call MPI_Get_count(sts(k), MPI_INTEGER, cnt, ierr)
         call check(cnt == 10 * k .and. sts(k)%MPI_SOURCE == left .and. sts(k)%MPI_TAG == 10 + k, 10 + k)
         call check(b((k - 1) * 1000 + 10 * k) == left * 10000 + 11 * k - 1, 12 + k)
      end do

      ! everybody to everybody, ignored statuses
      do i = 0, np - 1
         call MPI_Isend(me, 1, MPI_INTEGER, i, 20, MPI_COMM_WORLD, req(1), ierr)
         call MPI_Request_free(req(1), ierr)
      end do
      k = 0
      do i = 1, np
         call MPI_Recv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, st, ierr)
         call check(got == st%MPI_SOURCE, 20)
         k = k + got
      end do
      call check(k == np * (np - 1) / 2, 21)
      call MPI_Sendrecv(me, 1, MPI_INTEGER, left, 22, got, 1, MPI_INTEGER, right, 22, MPI_COMM_WORLD, &
     &                  MPI_STATUS_IGNORE, ierr)
      call check(got == right, 22)
      do k = 1, 2
         call MPI_Irecv(one(k), 1, MPI_INTEGER, left, 22 + k, MPI_COMM_WORLD, req(k))
         two(k) = me + k
         call MPI_Issend(two(k), 1, MPI_INTEGER, right, 22 + k, MPI_COMM_WORLD, req(2 + k), ierr)
      end do
      call MPI_Waitany(2, req, idx, MPI_STATUS_IGNORE, ierr)
      call check(idx >= 0 .and. idx <= 2, 23) ! MPICH 4.0.2 forgets to count from 1 here
      call MPI_Waitall(4, req, MPI_STATUSES_IGNORE, ierr)
      call check(one(1) == left + 1 .and. one(2) == left + 2, 24)
      got = -9
      call MPI_Recv(got, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, st, ierr)
      call check(got == -9 .and. st%MPI_SOURCE == MPI_PROC_NULL, 25)

      ! persistent, and Test
      call MPI_Recv_init(b, n, MPI_INTEGER, left, 30, MPI_COMM_WORLD, req(1), ierr)
      call MPI_Send_init(a, n, MPI_INTEGER, right, 30, MPI_COMM_WORLD, req(2), ierr)
      do k = 1, 3
         a(n) = me * 100 + k
         call MPI_Startall(2, req, ierr)
         flag = .false.
         do while (.not. flag)
            call MPI_Test(req(1), flag, st, ierr)
         end do
         call MPI_Wait(req(2), st)
         call check(b(n) == left * 100 + k, 30 + k)
      end do
      call MPI_Request_free(req(1), ierr)
      call MPI_Request_free(req(2), ierr)

      ! characters and a strided type
      write (text, '(a,i6)') 'from rank ', me
      call MPI_Sendrecv_replace(text, 20, MPI_CHARACTER, right, 40, left, 40, MPI_COMM_WORLD, st, ierr)
      read (text(11:16), '(i6)') got
      call check(got == left .and. text(1:9) == 'from rank', 40)
      call MPI_Type_vector(5, 1, 2, MPI_DOUBLE_PRECISION, vec, ierr)
      call MPI_Type_commit(vec, ierr)
      do i = 1, 10
         x(i) = me + i / 16d0
      end do
      y = -1
      call MPI_Sendrecv(x, 1, vec, right, 41, y, 1, vec, left, 41, MPI_COMM_WORLD, st, ierr)
      call MPI_Get_count(st, vec, cnt, ierr)
      call check(cnt == 1 .and. y(9) == left + 9 / 16d0 .and. y(10) == -1, 41)
      call MPI_Type_free(vec, ierr)
      call MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, st, ierr)
      call check(st%MPI_SOURCE == MPI_PROC_NULL, 42)

      ! collectives
      x(1) = me + 1
      x(2) = 1
      call MPI_Allreduce(MPI_IN_PLACE, x, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
      call check(x(1) == np * (np + 1) / 2 .and. x(2) == np, 50)
      one(1) = me
      one(2) = -me
      call MPI_Allreduce(one, two, 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
      call check(two(1) == np - 1 .and. two(2) == 0, 51)
      got = me
      call MPI_Bcast(got, 1, MPI_INTEGER, np - 1, MPI_COMM_WORLD, ierr)
      call check(got == np - 1, 52)
      call MPI_Scan(me, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      call check(got == me * (me + 1) / 2, 53)
      if (np <= n) then
         b = -1
         b(me + 1) = 3 * me
         call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
         do i = 1, np
            call check(b(i) == 3 * (i - 1), 54)
         end do
         if (me == 0) then
            call MPI_Reduce(MPI_IN_PLACE, b, np, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
            call check(b(np) == 3 * (np - 1) * np, 55)
         else
            call MPI_Reduce(b, got, np, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
         end if
         call MPI_Iallreduce(me, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, req(1), ierr)
         call MPI_Wait(req(1), MPI_STATUS_IGNORE, ierr)
         call check(got == np * (np - 1) / 2, 56)
      end if
      call MPI_Barrier(MPI_COMM_WORLD)

      ! split and groups
      call MPI_Comm_split(MPI_COMM_WORLD, mod(me, 2), -me, half, ierr)
      call MPI_Comm_rank(half, hr, ierr)
      call MPI_Comm_size(half, hn)
      want = (np - mod(me, 2) + 1) / 2
      call check(hn == want .and. hr == want - 1 - me / 2, 60)
      call MPI_Allreduce(me, got, 1, MPI_INTEGER, MPI_SUM, half, ierr)
      call check(got == want * (want - 1) + want * mod(me, 2), 61)
      call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
      call MPI_Comm_group(half, grp, ierr)
      one(1) = 0
      call MPI_Group_translate_ranks(grp, 1, one, world, two, ierr)
      call check(two(1) == 2 * (want - 1) + mod(me, 2), 62)
      call MPI_Group_free(world, ierr)
      call MPI_Group_free(grp, ierr)
      call MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, dup, ierr)
      call check(dup == MPI_COMM_NULL, 63)

      ! attributes
      call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, val, flag, ierr)
      call check(flag .and. val >= 32767, 70)
      extra = 17
      call MPI_Comm_create_keyval(copyfn, deletefn, key, extra, ierr)
      val = 1000 + me
      call MPI_Comm_set_attr(MPI_COMM_WORLD, key, val, ierr)
      call MPI_Comm_set_attr(half, key, val + 5)
      val = 0
      call MPI_Comm_get_attr(MPI_COMM_WORLD, key, val, flag)
      call check(flag .and. val == 1000 + me, 71)
      call MPI_Comm_get_attr(half, key, val, flag)
      call check(flag .and. val == 1005 + me, 79)
      call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, val, flag)
      call check(flag .and. val >= 32767, 70)
      call MPI_Comm_get_attr(MPI_COMM_SELF, key, val, flag, ierr)
      call check(.not. flag, 72)
      call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
      call check(copies == 1, 73)
      call MPI_Comm_get_attr(dup, key, ext, flag, ierr)
      call check(flag .and. ext == 1001 + me, 74)
      call MPI_Comm_free(dup, ierr)
      call check(deletes == 1 .and. dup == MPI_COMM_NULL, 75)
      call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
      call check(deletes == 2, 76)
      call MPI_Comm_free(half, ierr)
      call check(deletes == 3, 77)
      call MPI_Comm_free_keyval(key, ierr)
      call check(key == MPI_KEYVAL_INVALID, 78)

      ! errors are returned when asked for
      call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
      call MPI_Send(me, 1, MPI_INTEGER, np, 1, MPI_COMM_WORLD, ierr)
      call MPI_Error_class(ierr, k, i)
      call check(k == MPI_ERR_RANK, 80)
      call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)

      include 'f_files.inc'

      ! the sum
      sums(1) = checks
      sums(2) = failed
      if (me == 0) then
         do i = 1, np - 1
            call MPI_Recv(other, 2, MPI_INTEGER, i, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
            sums = sums + other
         end do
         write (*, '(a,a,i0,a,i0,a)') testname, ': ', sums(1), ' checks, ', sums(2), ' failed'
         do i = 1, np - 1
            call MPI_Send(sums, 2, MPI_INTEGER, i, 101, MPI_COMM_WORLD, ierr)
         end do
      else
         call MPI_Send(sums, 2, MPI_INTEGER, 0, 100, MPI_COMM_WORLD, ierr)
         call MPI_Recv(sums, 2, MPI_INTEGER, 0, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      end if
      call MPI_Finalize(ierr)
      if (sums(2) > 0) stop 1

      contains
         subroutine check(ok, number)
            logical, intent(in) :: ok
            integer, intent(in) :: number
            checks = checks + 1
            if (ok) return
            failed = failed + 1
            write (0, '(a,a,i0,a,i0,a)') testname, ': rank ', me, ': check ', number, ': expected true, got false'
         end subroutine
      end program
