#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh gasnet.sh [-b mpirun|yod] program arguments...
# A job of tests/gasnet of 6 nodes, 2 on each host.  The nodes share a file for the test's
# own use.
by=()
[ "$1" != -b ] || { by=(-b "$2"); shift 2; }
file=$(mktemp) || exit 1
trap 'rm -f "$file"' EXIT
"$(dirname "$0")/run.sh" "${by[@]}" -x GN_JOB_FILE="$file" "$@"
