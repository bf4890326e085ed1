#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# busy.sh LOOPS command... - runs a job while this number of loops use the CPUs beside
# it, and exits with its status.

loops=()
trap 'kill "${loops[@]}" 2>/dev/null' EXIT
for ((i = 0; i < $1; i++)); do
	while :; do :; done &
	loops+=($!)
done
shift
"$@"
