#!/bin/sh
# ScaLAPACK's factorisation, solver and eigenvalue tests of both flavours, all precisions that Debian ships. But for xslu: PSLACON decides by what
# it has not set (valgrind, natively), so the ranks may part ways, as they do with plain Open MPI when calls of MPI leave other bytes on the stack.
PROGRAMS="xcdblu xddblu xsdblu xzdblu xcdtlu xddtlu xcgblu xdgblu xclu xdlu xzlu xcpbllt xdpbllt xspbllt xzpbllt xcptllt xdptllt xcqr xdqr xsqr xzqr xdbrd xsbrd xdhrd xdtrd xdinv"
export PROGRAMS
exec tests/apps/scalapack_test.sh
