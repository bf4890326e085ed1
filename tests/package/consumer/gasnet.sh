#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Programs of GASNet run under each launcher: gasnet.sh bin-directory programs...
bin=$1
shift
export PTL3_HUGEPAGES=off
unset PTL3_DOMAIN # with none, mpirun's ranks would not meet
# Open MPI's mpirun; 4 and before, and 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
status=0

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export OMPI_MCA_orte_tmpdir_base=$dir # as support/starters.sh explains

# libportals may warn on stderr: mpirun leaves it too little room for an allocator.
run() {
	said=$("$@" 2>"$dir/err") && [ "$said" = "gasnet works: 3 nodes" ] && return
	echo "$*: status $?: $said"
	cat "$dir/err"
	status=1
}

[ $# -gt 0 ] || {
	echo "gasnet.sh: no programs"
	exit 1
}
for program; do
	run "$bin/yod" -sz 3 "$program"
	run "$bin/gasnetrun_portals" -n 3 -N 1 -E PATH,HOME "$program"
	if command -v mpirun >/dev/null; then
		run mpirun -n 3 "$program"
	fi
done
exit $status
