#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh run.sh [-b mpirun|yod] [options of mpirun.sh] program arguments...
# Run a program of 6 ranks, 2 on each host, by mpirun or yod, and check that frames went
# between the hosts.  The ranks share a file for the use of a suite (support/suite.h).
set -u
here=$(dirname "$0")
by=mpirun
[ "$1" != -b ] || { by=$2; shift 2; }
out=$(mktemp) && file=$(mktemp) || exit 1
trap 'rm -f "$out" "$file"' EXIT
"$here/$by.sh" -x PTL3_HUGEPAGES=off -x PTL3_LOG=info -x P3_SUITE_FILE="$file" "$@" >"$out" 2>&1
status=$?
grep -v ' info nic: ' "$out"
"$here/far.sh" "$out" || exit 1
exit $status
