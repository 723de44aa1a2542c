#!/bin/sh
# HPCC with a small input on two and three sites: Success=1 and no failed residual.
set -eu
. tests/apps/lib.sh
need hpcc hpcc
B=$(realpath "$B")
cat >"$tmp/hpccinf.txt" <<'H'
HPLinpack benchmark input file
PACX test
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
200          Ns
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
2            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
0            Number of additional problem sizes for PTRANS
0            values of N
0            number of additional blocking sizes for PTRANS
0            values of NB
H
for sites in 2+2 1+2+1; do
	mkdir "$tmp/$sites"
	cp "$tmp/hpccinf.txt" "$tmp/$sites/"
	(cd "$tmp/$sites" && "$B/bin/pacxrun" -n $sites --mpi openmpi -- hpcc </dev/null) >"$tmp/out" 2>&1 || {
		echo "hpcc on $sites ended with status $?"
		tail -n 30 "$tmp/out"
		exit 1
	}
	cp "$tmp/$sites/hpccoutf.txt" "$tmp/hpcc-$sites"
	expect "hpcc-$sites" "^Success=1"
	refuse "hpcc-$sites" "FAILED"
	expect "hpcc-$sites" "PASSED" 2
done
