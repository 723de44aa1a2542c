! f_alltoallw - alltoallw from Fortran, blocking, nonblocking and among neighbours of a ring: every rank has types of its own.
program f_alltoallw
  use mpi
  implicit none
  integer :: ierr, rank, n, i, req, failed, checks, total, ring, left, right
  integer, allocatable :: c(:), d(:), t(:), s(:), r(:)
  integer(kind=MPI_ADDRESS_KIND) :: place(2)
  integer :: two(2), types(2), dims(1)
  logical :: periods(1)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  failed = 0
  checks = 0
  allocate(c(n), d(n), t(n), s(n), r(n))
  c = 1
  t = MPI_INTEGER
  d = [(4 * (i - 1), i = 1, n)]

  s = [(100 * rank + i - 1, i = 1, n)]
  r = -1
  call MPI_Alltoallw(s, c, d, t, r, c, d, t, MPI_COMM_WORLD, ierr)
  call good(r)
  r = -1
  call MPI_Ialltoallw(s, c, d, t, r, c, d, t, MPI_COMM_WORLD, req, ierr)
  call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
  call good(r)
  r = s
  call MPI_Alltoallw(MPI_IN_PLACE, c, d, t, r, c, d, t, MPI_COMM_WORLD, ierr)
  call good(r)

  dims(1) = n
  periods(1) = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, .false., ring, ierr)
  call MPI_Cart_shift(ring, 0, 1, left, right, ierr)
  two = 1
  types = MPI_INTEGER
  place(1) = 0
  place(2) = 4
  if (n > 2) then
    r = -1
    s(1) = rank * 10
    s(2) = rank * 10 + 1
    call MPI_Neighbor_alltoallw(s, two, place, types, r, two, place, types, ring, ierr)
    call equal(r(1), left * 10 + 1)
    call equal(r(2), right * 10)
    r = -1
    call MPI_Ineighbor_alltoallw(s, two, place, types, r, two, place, types, ring, req, ierr)
    call MPI_Wait(req, MPI_STATUS_IGNORE, ierr)
    call equal(r(1), left * 10 + 1)
    call equal(r(2), right * 10)
  end if
  call MPI_Comm_free(ring, ierr)

  call MPI_Allreduce(failed, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) write (*, '(A,I0,A,I0,A)') 'f_alltoallw: ', checks, ' checks, ', total, ' failed'
  call MPI_Finalize(ierr)
  if (total > 0) stop 1
contains
  subroutine equal(got, want)
    integer, intent(in) :: got, want

    checks = checks + 1
    if (got /= want) then
      failed = failed + 1
      write (0, '(A,I0,A,I0,A,I0)') 'f_alltoallw: rank ', rank, ': expected ', want, ', got ', got
    end if
  end subroutine

  subroutine good(v)
    integer, intent(in) :: v(:)
    integer :: k

    do k = 1, n
      call equal(v(k), 100 * (k - 1) + rank)
    end do
  end subroutine
end program
