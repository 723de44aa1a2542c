! f_attr.f90 - predefined attributes; the delete callback of an attribute on MPI_COMM_SELF runs inside MPI_Finalize, when
! MPI_COMM_WORLD still answers with the rank (MPI standard 8.7.1); set through Fortran, which reaches no C function.
      module f_attr_state
      implicit none
      ! the MPI tells delete callbacks which communicator it is (Open MPI 4.1 hands an undefined value to those of Fortran)
      logical :: told
      integer :: me = -1, deletes = 0, failed = 0, copies = 0, worlds = 0
      end module

      program f_attr
      use mpi
      use f_attr_state
      implicit none
      integer :: ierr, key, old, dup, n
      logical :: flag, flag2
      integer(kind=MPI_ADDRESS_KIND) :: val
      character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
      external :: deletefn, copyworld, deleteworld, deleteold

      call MPI_Init(ierr)
      call MPI_Get_library_version(version, n, ierr)
      told = index(version, 'Open MPI') == 0
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
      ! callbacks of MPI_COMM_WORLD's attributes are given MPI_COMM_WORLD, by the functions of MPI-2 and of MPI-1
      call MPI_Comm_create_keyval(copyworld, deleteworld, key, 7_MPI_ADDRESS_KIND, ierr)
      call MPI_Comm_set_attr(MPI_COMM_WORLD, key, val, ierr)
      call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
      call MPI_Comm_get_attr(dup, key, val, flag, ierr)
      if (copies /= 1 .or. .not. flag .or. val /= 6) failed = failed + 1
      call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
      if (worlds /= 1) failed = failed + 1
      call MPI_Keyval_create(MPI_NULL_COPY_FN, deleteold, old, 9, ierr)
      call MPI_Attr_put(MPI_COMM_WORLD, old, 11, ierr)
      call MPI_Attr_delete(MPI_COMM_WORLD, old, ierr)
      if (worlds /= 2) failed = failed + 1
      call MPI_Finalize(ierr)
      if (deletes /= 1) failed = failed + 1
      if (me == 0) print '(a, i0, a)', 'f_attr: 7 checks, ', failed, ' failed'
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

      subroutine copyworld(comm, key, extra, in, out, flag, ierr)
      use mpi
      use f_attr_state
      implicit none
      integer :: comm, key, ierr
      integer(kind=MPI_ADDRESS_KIND) :: extra, in, out
      logical :: flag

      if (comm == MPI_COMM_WORLD .and. extra == 7 .and. in == 5) copies = copies + 1
      out = in + 1
      flag = .true.
      ierr = MPI_SUCCESS
      end subroutine

      subroutine deleteworld(comm, key, val, extra, ierr)
      use mpi
      use f_attr_state
      implicit none
      integer :: comm, key, ierr
      integer(kind=MPI_ADDRESS_KIND) :: val, extra

      if ((comm == MPI_COMM_WORLD .or. .not. told) .and. extra == 7 .and. val == 5) worlds = worlds + 1
      ierr = MPI_SUCCESS
      end subroutine

      subroutine deleteold(comm, key, val, extra, ierr)
      use mpi
      use f_attr_state
      implicit none
      integer :: comm, key, val, extra, ierr

      if ((comm == MPI_COMM_WORLD .or. .not. told) .and. extra == 9 .and. val == 11) worlds = worlds + 1
      ierr = MPI_SUCCESS
      end subroutine
