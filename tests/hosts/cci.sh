#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh cci.sh [-f provider] yod|mpirun|recover program statements...
# Statements of CCI, whose processes are ranks on three hosts.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ "$1" != -f ] || { export PTL3_FABRIC=$2; shift 2; }
by=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
export PTL3_HUGEPAGES=off HOSTS_OPTIONS=--keep-going
SUITE_BY=$here/$by.sh SUITE_SHARE=${SUITE_SHARE:-100} "$@" 2>"$log"
status=$?
grep -v ' info nic: ' "$log"
"$here/far.sh" "$log" || exit 1
exit $status
