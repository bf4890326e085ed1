#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh [spawn]: an MPI program (mpi.c) over Open MPI's mtl/ofi and the provider portals.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/shell.sh"
command -v mpicc mpirun >"$dir/has" || skip "no mpicc or mpirun: packages libopenmpi-dev, openmpi-bin"
mpicc -O1 -o "$dir/mpi" "$here/mpi.c" -lpthread || die "mpi.c does not compile"
unset PTL3_DOMAIN FI_PROVIDER
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=false
nodes=3
[ "$*" != spawn ] || nodes=2
run_marked timeout "${P3_LIMIT:-1000}" mpirun -n $nodes --oversubscribe --mca pml cm --mca mtl ofi \
	--mca mtl_ofi_provider_include portals --mca btl self -x FI_PROVIDER_PATH "$dir/mpi" "$@"
# shellcheck disable=SC2154
[ "$status" = 0 ] || die "mpirun ends with $status"
[ "$(cat "$dir/out")" = "all is well" ] || die "it says something else"
nothing_left || exit 1
