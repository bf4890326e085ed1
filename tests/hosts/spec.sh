#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh spec.sh [-b mpirun|yod] [options of mpirun.sh] program
# A program of tests/spec with one rank on each of two hosts.  The ranks share a file for the
# test's own use.
by=()
[ "$1" != -b ] || { by=(-b "$2"); shift 2; }
file=$(mktemp) || exit 1
trap 'rm -f "$file"' EXIT
"$(dirname "$0")/run.sh" "${by[@]}" -n 2 -p 1 -x SPEC_JOB_FILE="$file" "$@"
