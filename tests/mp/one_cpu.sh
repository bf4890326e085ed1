#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A whole job of two on one CPU: hosts, NIC threads and yod.  A waiting thread must give
# the CPU to a thread that can go on, in every mode: one that spins until the kernel takes
# its CPU away uses milliseconds of CPU time for each round trip, in place of 4 to 20 us.
# CPU time is the job's own, whatever else the machine does.
#
# usage: one_cpu.sh [round trips]

. "$(dirname "$0")/mp.sh"
command -v taskset >/dev/null || skip "taskset is not installed"
cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[,-].*//')
trips=${1:-20000}
most_us=600 # of CPU time for each round trip
TIMEFORMAT='%U %S'

for mode in auto lease dedicated park; do
	used=$({ time run taskset -c "$cpu" "$P3_YOD" -sz 2 --timeout "$P3_LIMIT" --mode $mode \
		"$MP_BIN/mp_pingpong" "$trips" >/dev/null && echo "$status" >"$dir/status"; } 2>&1)
	status=$(cat "$dir/status") out=$(cat "$dir/out")
	[ "$status" = 0 ] || fail "$mode: status $status"
	awk -v used="$used" -v trips="$trips" -v most=$most_us -v name="$mode: $out" 'BEGIN {
		split(used, s, " ")
		us = (s[1] + s[2]) * 1e6 / trips
		printf "%s; %.1f us of CPU time each, %d expected at most\n", name, us, most
		exit us > most
	}' || fail "$mode: CPU time"
done
finish one_cpu
