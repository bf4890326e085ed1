#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh RESULTS command...: runs it, keeps what it prints on stdout in RESULTS, too, and
# exits as it does.
results=$1
shift
mkdir -p "${results%/*}" || exit 1
rm -f "$results"
"$@" | tee "$results.part"
status=${PIPESTATUS[0]}
mv "$results.part" "$results"
exit "$status"
