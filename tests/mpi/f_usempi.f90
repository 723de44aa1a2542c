! f_usempi - the Fortran binding by "use mpi"; see f_body.inc for what is tried.
      program f_usempi
      use mpi
      implicit none
      character(len=8), parameter :: testname = 'f_usempi'
      include 'f_body.inc'
