#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# meet.sh: processes that each starter begins meet over the provider: mpirun and srun, where
# they are installed, else the environment that they give; mpiexec of MPICH; yod; by hand.
set -u
. "$(dirname "$0")/../support/starters.sh"
nodes=3 job=ofi-$$
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
program=${P3_OFI_MEET:?the program that meets}
status=0

meet() { # way...: each process finds the others' names in a folder of the way
	mkdir "$dir/$1"
	(unset PTL3_DOMAIN; "$@" "$program" "$dir/$1" "$nodes") >"$dir/out" 2>&1 && return
	echo "by $1:"
	cat "$dir/out"
	status=1
}

by_hand() {
	export PTL3_DOMAIN=$job-hand
	one_by_one OFI_RANK "$@"
}

meet by_yod
meet by_openmpi
meet by_pmi
meet by_hand
! command -v mpirun >/dev/null || meet by_mpirun
exit $status
