#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh tardy.sh program
# A rank calls PtlNIInit 12 s after the others, which say meanwhile that they wait for it: in
# a job of mpirun and in one of yod.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
# pause: rank 5 is late
# shellcheck disable=SC2016 # of the inner shell
late='[ "${OMPI_COMM_WORLD_RANK-$PTL_MY_RID}" != 5 ] || sleep 12; exec "$0"'
for by in mpirun yod; do
	"$here/$by.sh" -x PTL3_HUGEPAGES=off sh -c "$late" "$1" >"$dir/$by" 2>&1 &
	declare $by=$!
done
for by in mpirun yod; do
	wait "${!by}" || failed=1
	cat "$dir/$by"
	grep -q 'waits since 10 s until all 6 ranks' "$dir/$by" || failed=1
done
exit $failed
