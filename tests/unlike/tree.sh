#!/bin/bash
# tree.sh: a private tree of Debian's packages for a machine unlike this one, to build and run an MPICH site of it here, of arm64 an Open MPI site, too
# (whose ranks this machine's mpirun.openmpi can start; those of another byte order it cannot):
#   i386    32 bits; runs as it is
#   s390x   64 bits, big-endian; runs under qemu-user
#   arm64   64 bits, another long double; runs under qemu-user
# Nothing of this machine's own packages changes, and dpkg hears nothing of foreign architectures (apt would remove a compiler for them).
# usage: tree.sh DIR ARCH     DIR/ARCH becomes the tree, DIR/bin-ARCH has gcc, gfortran, mpicc.mpich, mpif90.mpich (and .openmpi) and pkg-config for it, and `run`, which runs
# a program of it.     Exit status: 0 made or there already, 77 not to be had (a line says why), 1 failed.
set -euo pipefail
DIR=$(mkdir -p "$1" && cd "$1" && pwd)
ARCH=$2
CPU=$ARCH # as GNU names it
TREE=$DIR/$ARCH
BIN=$DIR/bin-$ARCH
STAMP=$TREE/.made-6

skip() {
	echo "unlike: $ARCH: skipped: $*"
	exit 77
}

[ -e "$STAMP" ] && exit 0
GCCV=$(gcc -dumpversion | cut -d. -f1)
packages="libc6 libc6-dev linux-libc-dev libcrypt1 libgcc-s1 libstdc++6 libgfortran5 libudev1 libhwloc15 libmpich12 libmpich-dev
	zlib1g zlib1g-dev libuv1 libuv1-dev libyaml-0-2 libyaml-dev libssl3 libssl-dev liblz4-1 liblz4-dev libzstd1 libzstd-dev libzfp1 libzfp-dev libgomp1"
case $ARCH in
i386)
	[ "$(uname -m)" = x86_64 ] || skip "only on x86-64"
	packages="$packages libgcc-$GCCV-dev libgfortran-$GCCV-dev libquadmath0"
	;;
s390x) ;;
arm64)
	CPU=aarch64
	packages="$packages libnl-3-200 libnl-route-3-200 libibverbs1 libnuma1 librdmacm1 libucx0" # its MPICH is made with UCX
	packages="$packages libopenmpi3 libopenmpi-dev openmpi-common libevent-core-2.1-7 libevent-pthreads-2.1-7 libfabric1 libpmix2 libmunge2
		libhwloc-plugins libpciaccess0 libxml2 libicu72 liblzma5 ibverbs-providers libatomic1"
	;;
*)
	echo "unlike: unknown machine $ARCH" >&2
	exit 1
	;;
esac
if [ $ARCH != i386 ]; then
	for tool in qemu-$CPU $CPU-linux-gnu-gcc $CPU-linux-gnu-gfortran; do
		command -v $tool >/dev/null || skip "no $tool here (scripts/setup unlike installs it)"
	done
fi
for tool in apt-get dpkg mpirun.mpich pkg-config gfortran; do
	command -v $tool >/dev/null || skip "no $tool here"
done

# An apt of its own: lists, cache, and an empty dpkg status.
A=$DIR/apt-$ARCH
mkdir -p "$TREE" "$BIN" "$A/lists/partial" "$A/cache/archives/partial" "$A/debs"
: >"$A/status"
uri=$(apt-get indextargets --format '$(URI)' 2>/dev/null | grep -oE '^https?://.*/dists/' | grep -v security | head -1 || true)
[ -n "$uri" ] || skip "apt here knows no mirror"
. /etc/os-release
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${uri%/dists/} ${VERSION_CODENAME:-bookworm} main" >"$A/sources.list"
cat >"$A/apt.conf" <<EOF
APT::Architecture "$ARCH"; APT::Architectures { "$ARCH"; };
Dir::State "$A"; Dir::State::lists "$A/lists"; Dir::State::status "$A/status"; Dir::Cache "$A/cache";
Dir::Etc::sourcelist "$A/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "root"; Acquire::Languages "none"; Acquire::Retries "3";
EOF
export APT_CONFIG=$A/apt.conf
apt-get -qq update >"$A/log" 2>&1 || skip "no package index (see $A/log)"
# shellcheck disable=SC2086
(cd "$A/debs" && rm -f ./*.deb && apt-get -qq download $packages) >>"$A/log" 2>&1 || skip "cannot download (see $A/log)"
unset APT_CONFIG
for deb in "$A"/debs/*.deb; do dpkg -x "$deb" "$TREE"; done
rm -rf "$TREE"/usr/share/{doc,man,locale,lintian,bug} "$A"
# Absolute links (libm.so, libz.so) would lead to this machine's own libraries.
find "$TREE" -type l -lname '/*' | while read -r link; do
	to=$(readlink "$link")
	[ ! -e "$TREE$to" ] || ln -srfn "$TREE$to" "$link"
done

made() {
	cat >"$BIN/$1"
	chmod +x "$BIN/$1"
}
LIB=$CPU-linux-gnu
case $ARCH in
i386)
	G=$TREE/usr/lib/gcc/i686-linux-gnu/$GCCV
	for compiler in gcc gfortran; do
		made $compiler <<EOF
#!/bin/sh
exec /usr/bin/$compiler -m32 --sysroot=$TREE -B$G/ -B$TREE/usr/lib/$LIB/ -isystem $TREE/usr/include/$LIB -L$G -L$TREE/usr/lib/$LIB \\
	-L$TREE/lib/$LIB "\$@" -Wl,--dynamic-linker=$TREE/lib/$LIB/ld-linux.so.2 \\
	-Wl,--disable-new-dtags,-rpath,$TREE/usr/lib/$LIB:$TREE/lib/$LIB
EOF
	done
	made run <<'EOF'
#!/bin/sh
exec "$@"
EOF
	;;
*)
	for compiler in gcc gfortran; do
		made $compiler <<EOF
#!/bin/sh
exec $CPU-linux-gnu-$compiler --sysroot=$TREE -B$TREE/usr/lib/$LIB/ -isystem $TREE/usr/include/$LIB -L$TREE/usr/lib/$LIB -L$TREE/lib/$LIB "\$@"
EOF
	done
	# [env] NAME=VALUE... PROGRAM ARGUMENT... : LD_PRELOAD is for the guest only, the others are harmless here. The program pacxd would
	# run another one, which qemu does not do: run that.
	made run <<EOF
#!/bin/sh
export UCX_TLS=self,sysv # qemu has no cross-memory attach, and over UCX's TCP MPICH's own MPI_Finalize hangs (VENDORS.md)
[ "\$1" != env ] || shift
preload=
while :; do
	case \$1 in
	LD_PRELOAD=*) preload=\${1#LD_PRELOAD=} ;;
	[A-Za-z_]*=*) export "\$1" ;;
	*) break ;;
	esac
	shift
done
case \$1 in
*/bin/pacxd)
	program=\${1%/bin/pacxd}/lib/pacx/pacxd-\${OMPI_COMM_WORLD_SIZE:+openmpi}
	[ -n "\$OMPI_COMM_WORLD_SIZE" ] || program=\${program}mpich
	shift
	set -- "\$program" "\$@"
	;;
esac
[ -z "\$preload" ] || set -- -E LD_PRELOAD="\$preload" "\$@"
exec qemu-$CPU -L $TREE "\$@"
EOF
	;;
esac
made mpicc.mpich <<EOF
#!/bin/sh
exec $BIN/gcc -I$TREE/usr/include/$LIB/mpich "\$@" -lmpich
EOF
made mpif90.mpich <<EOF
#!/bin/sh
exec $BIN/gfortran -I$TREE/usr/include/$LIB/mpich "\$@" -lmpichfort -lmpich
EOF
if [ -d "$TREE/usr/lib/$LIB/openmpi/include" ]; then
	libs="-L$TREE/usr/lib/$LIB/openmpi/lib -Wl,-rpath-link,$TREE/usr/lib/$LIB:$TREE/usr/lib/$LIB/openmpi/lib"
	made mpicc.openmpi <<EOF
#!/bin/sh
exec $BIN/gcc -I$TREE/usr/lib/$LIB/openmpi/include "\$@" $libs -lmpi
EOF
	made mpif90.openmpi <<EOF
#!/bin/sh
exec $BIN/gfortran -I$TREE/usr/lib/$LIB/openmpi/include -I$TREE/usr/lib/$LIB/fortran/gfortran-mod-15/openmpi "\$@" $libs -lmpi_mpifh -lmpi
EOF
fi
made pkg-config <<EOF
#!/bin/sh
export PKG_CONFIG_SYSROOT_DIR=$TREE PKG_CONFIG_LIBDIR=$TREE/usr/lib/$LIB/pkgconfig:$TREE/usr/share/pkgconfig
exec /usr/bin/pkg-config "\$@"
EOF
touch "$STAMP"
echo "unlike: $ARCH: $(du -sm "$TREE" | cut -f1) MiB in $TREE"
