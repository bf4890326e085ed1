#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Finds Portals as the configure scripts of old programs do: configure.sh
# --with-portals=DIR [--with-portals-libs=LIBS] [--static]; makes ./conftest.
dir= libs= static=
for option in "$@"; do
	case $option in
	--with-portals=*) dir=${option#*=} ;;
	--with-portals-libs=*) libs=${option#*=} ;;
	--static) static=yes ;;
	*) echo "configure.sh: '$option' is no option of it" && exit 1 ;;
	esac
done

check() { # what it is called, flags of the compiler
	printf 'checking %s... ' "$1"
	shift
	"${CC:-cc}" "$@" 2>conftest.err && echo yes && return
	echo no
	cat conftest.err
	exit 1
}

for header in portals3.h portals/portals3.h p3nal_utcp.h p3rt/p3rt.h p3api/debug.h \
	catamount/cnos_mpi_os.h; do
	echo "#include <$header>" >conftest.c
	check "for $header" -I"$dir/include" -c conftest.c -o conftest.o
done
cat >conftest.c <<'END'
#include <portals3.h>
#include <p3nal_utcp.h>
int main(void)
{
	int most;
	ptl_handle_ni_t ni;
	return PtlInit(&most) || PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
}
END
flags="-I$dir/include conftest.c -o conftest -L$dir/lib $libs"
if [ "$static" ]; then
	check "for PtlInit in libportals.a" -fno-lto $flags "$dir/lib/libportals.a" -lnuma -lurcu-bp \
		-ldl -pthread
else
	check "for PtlInit in -lportals" $flags -lportals -Wl,-rpath,"$dir/lib"
fi
