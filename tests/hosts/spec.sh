#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh spec.sh program
# A program of tests/spec with one rank on each of two hosts.  The ranks share a file for the
# test's own use.
file=$(mktemp) || exit 1
trap 'rm -f "$file"' EXIT
"$(dirname "$0")/run.sh" -n 2 -p 1 -x SPEC_JOB_FILE="$file" "$1"
