! f_attr.f90 - predefined attributes; the delete callback of an attribute on MPI_COMM_SELF runs inside MPI_Finalize, when
! MPI_COMM_WORLD still answers with the rank (MPI standard 8.7.1); set through Fortran, which reaches no C function.
      module f_attr_state
      implicit none
      integer :: me = -1, deletes = 0, failed = 0
      end module

      program f_attr
      use mpi
      use f_attr_state
      implicit none
      integer :: ierr, key, old
      logical :: flag, flag2
      integer(kind=MPI_ADDRESS_KIND) :: val
      external :: deletefn

      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
      ! predefined attributes, by both functions (on a duplicate Open MPI's Fortran gives an address)
      call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, val, flag, ierr)
      call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, old, flag2, ierr)
      if (.not. (flag .and. flag2) .or. val < 32767 .or. old /= val) failed = failed + 1
      call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, val, flag, ierr)
      call MPI_Attr_get(MPI_COMM_WORLD, MPI_APPNUM, old, flag2, ierr)
      if (.not. (flag .and. flag2) .or. val /= 0 .or. old /= 0) failed = failed + 1
      call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletefn, key, 0_MPI_ADDRESS_KIND, ierr)
      val = 5
      call MPI_Comm_set_attr(MPI_COMM_SELF, key, val, ierr)
      call MPI_Finalize(ierr)
      if (deletes /= 1) failed = failed + 1
      if (me == 0) print '(a, i0, a)', 'f_attr: 4 checks, ', failed, ' failed'
      if (failed > 0) stop 1
      end program

      subroutine deletefn(comm, key, val, extra, ierr)
      use mpi
      use f_attr_state
      implicit none
      integer :: comm, key, ierr, rank
      integer(kind=MPI_ADDRESS_KIND) :: val, extra

      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      deletes = deletes + 1
      if (rank /= me .or. val /= 5) failed = failed + 1
      ierr = MPI_SUCCESS
      end subroutine
