#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job of four that waits, in PtlEQWait or in sleep(), uses less than 1 % of one CPU
# over 5 s: run time of all threads of all its processes, yod's too, as the kernel
# counts it (schedstat: nanoseconds; the load of other processes does not count).  The
# number of their wake-ups is printed beside it.
#
# usage: idle.sh [limit in percent]	both ways in both modes, all at once
#        idle.sh limit mode wait|sleep	one of them

limit=${1:-1}
if [ $# -lt 2 ]; then
	status=0
	for mode in lease park; do
		for what in wait sleep; do
			"$0" "$limit" $mode $what &
			jobs="$jobs $!"
		done
	done
	for job in $jobs; do
		wait "$job" || status=1
	done
	exit $status
fi
. "$(dirname "$0")/mp.sh"

ran() { # nanoseconds that the marked processes have run
	local p
	for p in $(marked); do
		cat "/proc/$p/task/"*/schedstat 2>/dev/null
	done | awk '{ns += $1} END {printf "%.0f", ns}'
}

woke() { # how often they began to run after a sleep
	local p
	for p in $(marked); do
		cat "/proc/$p/task/"*/status 2>/dev/null
	done | awk '/^voluntary_ctxt/ {n += $2} END {printf "%d", n}'
}

measure() { # wait or sleep
	local before after percent wakes
	start "$P3_YOD" -sz 4 --timeout "${P3_LIMIT:-3000}" "$MP_BIN/mp_idle" "$1" 7
	patiently 5 grep -q idle "$dir/out"
	sleep 0.5
	wakes=$(woke)
	before=$(ran)
	sleep 5
	after=$(ran)
	wakes=$((($(woke) - wakes) / 5))
	percent=$(awk -v ns=$((after - before)) 'BEGIN {printf "%.3f", ns / 5e7}')
	echo "$PTL3_MODE, $1: $percent % of one CPU, $wakes wake-ups a second"
	awk -v p="$percent" -v l="$limit" 'BEGIN {exit !(p < l)}' ||
		fail "$1: $percent %, limit $limit; $wakes wake-ups a second"
	wait "$pid" || fail "$1: status $?"
}

export PTL3_MODE=$2
measure "$3"
finish "idle, $2, $3"
