#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh run.sh program arguments...
# Run a program of 6 ranks, 2 on each host, and check that frames went between the hosts.
set -u
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
"$(dirname "$0")/mpirun.sh" -x PTL3_HUGEPAGES=off -x PTL3_LOG=info "$@" >"$out" 2>&1
status=$?
grep -v ' info nic: ' "$out"
far=$(grep -c 'frames of other hosts: [1-9][0-9]* out, [1-9][0-9]* in' "$out")
echo "# $far interfaces have exchanged frames with other hosts"
[ $status = 0 ] || exit $status
[ "$far" -ge 2 ] || {
	echo "the hosts have exchanged no frames"
	exit 1
}
