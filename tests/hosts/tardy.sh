#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh tardy.sh program
# A rank calls PtlNIInit 12 s after the others, which say meanwhile that they wait for it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
# pause: rank 5 is late
"$here/mpirun.sh" -x PTL3_HUGEPAGES=off sh -c \
	'[ "$OMPI_COMM_WORLD_RANK" != 5 ] || sleep 12; exec "$0"' "$1" >"$out" 2>&1
status=$?
cat "$out"
[ $status = 0 ] && grep -q 'waits since 10 s until all 6 ranks' "$out"
