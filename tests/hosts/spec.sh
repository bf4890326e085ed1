#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh spec.sh ranks ranks-of-a-host program
# A program of tests/spec under mpirun.  The ranks share a file for the test's own use.
file=$(mktemp) || exit 1
trap 'rm -f "$file"' EXIT
"$(dirname "$0")/mpirun.sh" -n "$1" -p "$2" -x SPEC_JOB_FILE="$file" -x PTL3_HUGEPAGES=off \
	-x PTL3_LOG=info "$3"
