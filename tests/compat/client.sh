#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One client: client.sh yod|shell|mpirun kind processes work options-of-job.h...
# A process that yod does not start gets its rank and the others' ids, as the start scripts
# of the reference implementation did, and meets them in a domain.
starter=$1 kind=$2 processes=$3 work=$4
shift 4

[ "$starter" = yod ] || "${P3_YOD:?path of yod}" --help | grep -q -- --domain || {
	echo "skipped: no domains, processes started by hand do not reach each other"
	exit 77
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/../support/starters.sh"
# A process that comes early waits for the others.
nodes=$processes job=compat-$$ pause=0.05

read -ra words <<<"$work"
[ "$kind" = rpc ] && words=("$dir" "${words[@]}")
[ "$kind$starter" = rpcyod ] && set -- "$@" -p 4000 # a server has a fixed address
program=${COMPAT_BIN:?folder of the clients}/compat_$kind
if [ "$starter" = mpirun ]; then
	make_maps
	# Open MPI and MPICH name the rank in different variables.
	# shellcheck disable=SC2016
	before=(sh -c 'PTL_MY_RID=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} exec "$@"' sh)
fi
by_"$starter" "$program" "$@" "${words[@]}"
