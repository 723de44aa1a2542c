! tooled_f.f90 - five reductions and an attribute for tool.c to see.
      program tooled_f
      use mpi
      implicit none
      integer :: rank, total, i, key, ierr
      integer(kind=MPI_ADDRESS_KIND) :: value
      logical :: flag
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      do i = 1, 5
         call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
      end do
      call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
      value = 40 + rank
      call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
      value = 0
      call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierr)
      if (.not. flag .or. value /= 40 + rank) total = -1
      write (*, '(a,i0,a,i0)') 'rank ', rank, ' sum ', total
      flush (6)
      call MPI_Finalize(ierr)
      end program
