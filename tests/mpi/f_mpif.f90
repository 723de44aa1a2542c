! f_mpif - the Fortran binding by include file; see f_body.inc for what is tried.
      program f_mpif
      implicit none
      include 'mpif.h'
      character(len=6), parameter :: testname = 'f_mpif'
      include 'f_body.inc'
