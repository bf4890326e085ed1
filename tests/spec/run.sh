#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh RESULTS command...: runs it, copies its standard output to RESULTS, and exits
# with its status.
results=$1
shift
mkdir -p "${results%/*}" || exit 1
rm -f "$results"
"$@" | tee "$results.part"
status=${PIPESTATUS[0]}
mv "$results.part" "$results"
exit "$status"
