! f_typed - Fortran's types between machines: every rank with every other one, a structure, broadcasts and reductions. The values are exact everywhere.
program f_typed
  implicit none
  include 'mpif.h'
  integer, parameter :: m = 50
  integer :: ierr, rank, n, k, to, from, checks, failed, total, i

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  checks = 0
  failed = 0
  do k = 1, n - 1
    to = mod(rank + k, n)
    from = mod(rank - k + n, n)
    call numbers
    call others
    call structure
  end do
  call together
  call MPI_Reduce(failed, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) write (*, '(a,i0,a,i0,a)') 'f_typed: ', checks, ' checks, ', total, ' failed'
  call MPI_Finalize(ierr)
  if (failed > 0) stop 1

contains
  subroutine check(ok, which)
    logical, intent(in) :: ok
    integer, intent(in) :: which
    checks = checks + 1
    if (.not. ok) then
      failed = failed + 1
      write (*, '(a,i0,a,i0)') 'f_typed: rank ', rank, ' fails at ', which
    end if
  end subroutine

  subroutine came(st, t)
    integer :: st(MPI_STATUS_SIZE), t, got
    call MPI_Get_count(st, t, got, ierr)
    call check(got == m .and. st(MPI_SOURCE) == from, 1)
  end subroutine

  integer function number(r, i)
    integer :: r, i
    number = mod(r * 131 + i * 7919, 30011) - 15000
  end function

  subroutine numbers
    integer :: a(m), b(m), pair(2, m), pairs(2, m), st(MPI_STATUS_SIZE)
    integer(kind=2) :: a2(m), b2(m)
    integer(kind=8) :: a8(m), b8(m)
    real :: r(m), s(m)
    double precision :: d(m), e(m)
    complex :: c(m), f(m)
    double complex :: z(m), y(m)
    a = [(number(rank, i), i = 1, m)]
    call MPI_Sendrecv(a, m, MPI_INTEGER, to, 1, b, m, MPI_INTEGER, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_INTEGER)
    call check(all(b == [(number(from, i), i = 1, m)]), 2)
    a2 = int(a, 2)
    call MPI_Sendrecv(a2, m, MPI_INTEGER2, to, 1, b2, m, MPI_INTEGER2, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_INTEGER2)
    call check(all(b2 == b), 3)
    a8 = int(a, 8) * 2_8**33
    call MPI_Sendrecv(a8, m, MPI_INTEGER8, to, 1, b8, m, MPI_INTEGER8, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_INTEGER8)
    call check(all(b8 == int(b, 8) * 2_8**33), 4)
    r = real(a) / 8
    call MPI_Sendrecv(r, m, MPI_REAL, to, 1, s, m, MPI_REAL, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_REAL)
    call check(all(s == real(b) / 8), 5)
    d = dble(a) * 2d0**600
    call MPI_Sendrecv(d, m, MPI_DOUBLE_PRECISION, to, 1, e, m, MPI_DOUBLE_PRECISION, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_DOUBLE_PRECISION)
    call check(all(e == dble(b) * 2d0**600), 6)
    c = cmplx(real(a), -real(a) / 2)
    call MPI_Sendrecv(c, m, MPI_COMPLEX, to, 1, f, m, MPI_COMPLEX, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_COMPLEX)
    call check(all(f == cmplx(real(b), -real(b) / 2)), 7)
    z = dcmplx(dble(a) / 64, dble(a))
    call MPI_Sendrecv(z, m, MPI_DOUBLE_COMPLEX, to, 1, y, m, MPI_DOUBLE_COMPLEX, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_DOUBLE_COMPLEX)
    call check(all(y == dcmplx(dble(b) / 64, dble(b))), 8)
    pair(1, :) = a
    pair(2, :) = -a
    call MPI_Sendrecv(pair, m, MPI_2INTEGER, to, 1, pairs, m, MPI_2INTEGER, from, 1, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_2INTEGER)
    call check(all(pairs(1, :) == b) .and. all(pairs(2, :) == -b), 9)
  end subroutine

  subroutine others
    logical :: p(m), q(m)
    integer :: st(MPI_STATUS_SIZE)
    character(len=20) :: text, read
    p = [(mod(i + rank, 3) == 0, i = 1, m)]
    call MPI_Sendrecv(p, m, MPI_LOGICAL, to, 2, q, m, MPI_LOGICAL, from, 2, MPI_COMM_WORLD, st, ierr)
    call came(st, MPI_LOGICAL)
    call check(all(q .eqv. [(mod(i + from, 3) == 0, i = 1, m)]), 10)
    write (text, '(a,i0)') 'from rank ', rank
    read = ' '
    call MPI_Sendrecv(text, 20, MPI_CHARACTER, to, 3, read, 20, MPI_CHARACTER, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    write (text, '(a,i0)') 'from rank ', from
    call check(read == text, 11)
  end subroutine

  ! Every second column of a matrix, and a structure in which they are; fewer arrive than there is room for.
  subroutine structure
    double precision :: a(4, 6), b(4, 6)
    integer :: columns, whole, st(MPI_STATUS_SIZE), got
    call MPI_Type_vector(3, 4, 8, MPI_DOUBLE_PRECISION, columns, ierr)
    call MPI_Type_commit(columns, ierr)
    call MPI_Type_contiguous(8, MPI_DOUBLE_PRECISION, whole, ierr)
    call MPI_Type_commit(whole, ierr)
    a = rank + 0.25d0
    a(2, 3) = -rank
    b = -1
    call MPI_Sendrecv(a, 1, columns, to, 4, b, 24, MPI_DOUBLE_PRECISION, from, 4, MPI_COMM_WORLD, st, ierr)
    call MPI_Get_count(st, MPI_DOUBLE_PRECISION, got, ierr)
    call check(got == 12 .and. b(1, 1) == from + 0.25d0 .and. b(2, 2) == -from .and. b(1, 4) == -1, 12)
    call MPI_Get_count(st, whole, got, ierr)
    call check(got == MPI_UNDEFINED, 13)
    call MPI_Get_elements(st, whole, got, ierr)
    call check(got == 12, 14)
    call MPI_Type_free(columns, ierr)
    call MPI_Type_free(whole, ierr)
  end subroutine

  subroutine together
    logical :: p, q
    double precision :: d(2), e(2)
    integer :: a(2), b(2), root
    complex :: c, f
    do root = 0, n - 1
      p = rank == root .and. mod(root, 2) == 0
      call MPI_Bcast(p, 1, MPI_LOGICAL, root, MPI_COMM_WORLD, ierr)
      call check(p .eqv. mod(root, 2) == 0, 15)
      d = rank * 0.5d0
      call MPI_Bcast(d, 2, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD, ierr)
      call check(all(d == root * 0.5d0), 16)
    end do
    call MPI_Allreduce(rank == n - 1, q, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
    call check(q, 17)
    call MPI_Allreduce(rank /= n - 1, q, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    call check(.not. q, 18)
    c = cmplx(real(rank), 1.0)
    call MPI_Allreduce(c, f, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(f == cmplx(real(n * (n - 1) / 2), real(n)), 19)
    a = [mod(rank * 7, n + 3), rank]
    call MPI_Allreduce(a, b, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call check(b(1) == maxval([(mod(i * 7, n + 3), i = 0, n - 1)]) .and. mod(b(2) * 7, n + 3) == b(1), 20)
    d = [-dble(rank), dble(rank)]
    call MPI_Allreduce(d, e, 1, MPI_2DOUBLE_PRECISION, MPI_MINLOC, MPI_COMM_WORLD, ierr)
    call check(e(1) == -(n - 1) .and. e(2) == n - 1, 21)
  end subroutine
end program
