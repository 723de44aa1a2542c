#!/bin/sh
# ScaLAPACK's factorisation, solver and eigenvalue tests of both flavours, all precisions that Debian ships.
PROGRAMS="xcdblu xddblu xsdblu xzdblu xcdtlu xddtlu xcgblu xdgblu xclu xdlu xslu xzlu xcpbllt xdpbllt xspbllt xzpbllt xcptllt xdptllt xcqr xdqr xsqr xzqr xdbrd xsbrd xdhrd xdtrd xdinv"
export PROGRAMS
exec tests/apps/scalapack_test.sh
