#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job of four that waits, in PtlEQWait or outside of the library, wakes up at most 40 times
# a second, all threads of all its processes together, yod's too; and none of them spins: the
# job runs for less than 5 % of a CPU.  Both are the job's own, whatever else the machine
# does.  A virtual machine may charge a wake-up with the time for which its CPU was stopped, so
# the run time has a wide limit.
#
# usage: idle.sh			both ways in both modes, all at once
#        idle.sh mode wait|sleep	one of them

if [ $# -lt 2 ]; then
	status=0
	for mode in lease park; do
		for what in wait sleep; do
			"$0" $mode $what &
			jobs="$jobs $!"
		done
	done
	for job in $jobs; do
		wait "$job" || status=1
	done
	exit $status
fi
. "$(dirname "$0")/mp.sh"

MOST_WAKES=40   # a second
MOST_PERCENT=5 # of one CPU

ran() { # pids: nanoseconds that they have run
	local p
	for p in "$@"; do
		cat "/proc/$p/task/"*/schedstat 2>/dev/null
	done | awk '{ns += $1} END {printf "%.0f", ns}'
}

woke() { # pids: how often they began to run after a sleep
	local p
	for p in "$@"; do
		cat "/proc/$p/task/"*/status 2>/dev/null
	done | awk '/^voluntary_ctxt/ {n += $2} END {printf "%d", n}'
}

# Measure for five seconds.
is_idle() { # wait or sleep
	local us=${EPOCHREALTIME/[.,]/} job wakes ns
	job=$(marked)
	# shellcheck disable=SC2086
	wakes=$(woke $job) ns=$(ran $job)
	sleep 5
	# shellcheck disable=SC2086
	ns=$(($(ran $job) - ns)) wakes=$(($(woke $job) - wakes))
	us=$((${EPOCHREALTIME/[.,]/} - us))
	awk -v ns=$ns -v us=$us -v wakes=$wakes -v percent=$MOST_PERCENT -v most=$MOST_WAKES \
		-v name="$PTL3_MODE, $1" 'BEGIN {
		rate = wakes * 1e6 / us
		printf "%s: %.3f %% of one CPU, %d wake-ups a second\n", name, ns / us / 10, rate
		exit !(ns > 0 && ns / us / 10 < percent && rate <= most)
	}'
}

measure() { # wait or sleep
	mkfifo "$dir/end"
	# The job reads the fifo, which this script opens and later closes: that ends the job.
	# shellcheck disable=SC2016
	start sh -c 'exec "$@" <"$0"' "$dir/end" \
		"$P3_YOD" -sz 4 --timeout "${P3_LIMIT:-3000}" "$MP_BIN/mp_idle" "$1"
	exec 3>"$dir/end"
	patiently grep -q idle "$dir/out" || fail "$1: the job does not begin"
	sleep 0.5
	is_idle "$1" || fail "$1: not idle"
	exec 3>&-
	wait "$pid" || fail "$1: status $?"
}

export PTL3_MODE=$1
measure "$2"
finish "idle, $1, $2"
