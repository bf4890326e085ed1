#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job of four that waits, in PtlEQWait or outside of the library, uses less than 1 % of one
# CPU: run time of all threads of all its processes, yod's too, as the kernel counts it
# (schedstat: nanoseconds; the load of other processes does not count).  The number of their
# wake-ups is printed beside it.
#
# A guest's kernel also counts the time in which the hypervisor has stopped a CPU or repairs
# page tables: single wake-ups of some 30 us then cost 1 to 50 ms.  A node that computes does
# so in each window of 5 s, so the least of four windows counts.
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

WINDOWS=4

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

# Measure one window.  Return true if the job used less than the limit in it.
is_idle() { # wait or sleep
	local us=${EPOCHREALTIME/[.,]/} wakes ns
	wakes=$(woke) ns=$(ran)
	sleep 5
	ns=$(($(ran) - ns)) wakes=$(($(woke) - wakes)) us=$((${EPOCHREALTIME/[.,]/} - us))
	awk -v ns=$ns -v us=$us -v wakes=$wakes -v limit="$limit" -v name="$PTL3_MODE, $1" 'BEGIN {
		percent = ns / us / 10
		printf "%s: %.3f %% of one CPU, %d wake-ups a second\n", name, percent, wakes * 1e6 / us
		exit !(ns > 0 && percent < limit)
	}'
}

measure() { # wait or sleep
	local window=1
	mkfifo "$dir/end"
	# The job reads the fifo, which this script opens and later closes: that ends the job.
	# shellcheck disable=SC2016
	start sh -c 'exec "$@" <"$0"' "$dir/end" \
		"$P3_YOD" -sz 4 --timeout "${P3_LIMIT:-3000}" "$MP_BIN/mp_idle" "$1"
	exec 3>"$dir/end"
	patiently 5 grep -q idle "$dir/out" || fail "$1: the job does not begin"
	sleep 0.5
	until is_idle "$1"; do
		[ $((window += 1)) -le $WINDOWS ] || {
			fail "$1: $limit % or more in each of $WINDOWS windows"
			break
		}
	done
	exec 3>&-
	wait "$pid" || fail "$1: status $?"
}

export PTL3_MODE=$2
measure "$3"
finish "idle, $2, $3"
