#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh NODES program...: run a job under mpirun, or, where there is none, with the
# environment that Open MPI's mpirun gives to its ranks.  The status is the first bad one.
. "$(dirname "$0")/../support/starters.sh"
unset PTL3_DOMAIN
nodes=$1 job=gn-$$
shift
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
if command -v mpirun >/dev/null; then
	by_mpirun "$@"
else
	by_openmpi "$@"
fi
