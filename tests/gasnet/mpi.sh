#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh NODES program...: run a job under mpirun, or, where there is none, with the
# environment that Open MPI's mpirun gives to its ranks.  The status is the first bad one.
unset PTL3_DOMAIN
nodes=$1
shift
if command -v mpirun >/dev/null; then
	# A folder of its own: two that begin at once may not agree about who makes the usual one.
	dir=$(mktemp -d) || exit 1
	trap 'rm -rf "$dir"' EXIT
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export OMPI_MCA_orte_tmpdir_base=$dir
	mpirun --oversubscribe -n "$nodes" "$@"
	exit
fi
export OMPI_COMM_WORLD_SIZE=$nodes OMPI_COMM_WORLD_LOCAL_SIZE=$nodes
export PMIX_NAMESPACE=gn-$$
pids=()
for ((i = 0; i < nodes; i++)); do
	OMPI_COMM_WORLD_RANK=$i PMIX_RANK=$i "$@" &
	pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
	wait "$pid" || { s=$? && [ $status -ne 0 ] || status=$s; }
done
exit $status
