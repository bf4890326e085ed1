#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job of four that waits, in PtlEQWait or outside of the library, uses less than 1 % of one
# CPU: run time of all threads of all its processes, yod's too, as the kernel counts it
# (schedstat: nanoseconds; the load of other processes does not count).  The number of their
# wake-ups is printed beside it.
#
# A guest's kernel also counts the time in which the hypervisor has stopped a CPU or repairs
# page tables: on some machines each wake-up costs 0.3 to 1 ms in place of 30 us, on others
# single ones cost 50 ms.  So four shells that do nothing but wake up run beside the job; the
# job may use the limit besides the time of as many wake-ups as theirs, and may not wake up
# more than 40 times a second.  A node that computes does so in each window of 5 s, so the
# least of four windows counts.
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
MOST_WAKES=40 # a second

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

wake_up() { # about three times a second, until the script has ended
	exec 4<>"$dir/never"
	while kill -0 $$ 2>/dev/null; do
		read -rt 0.3 -u 4
	done
}

start_wakers() { # their pids in $wakers
	local i
	mkfifo "$dir/never"
	wakers=
	for i in 1 2 3 4; do
		wake_up &
		wakers="$wakers $!"
	done
}

# Measure one window.  Return true if the job used less than the limit in it.
is_idle() { # wait or sleep
	local us=${EPOCHREALTIME/[.,]/} job wakes ns empty_wakes empty_ns
	job=$(marked)
	# shellcheck disable=SC2086
	wakes=$(woke $job) ns=$(ran $job) empty_wakes=$(woke $wakers) empty_ns=$(ran $wakers)
	sleep 5
	# shellcheck disable=SC2086
	ns=$(($(ran $job) - ns)) wakes=$(($(woke $job) - wakes)) \
		empty_ns=$(($(ran $wakers) - empty_ns)) empty_wakes=$(($(woke $wakers) - empty_wakes))
	us=$((${EPOCHREALTIME/[.,]/} - us))
	awk -v ns=$ns -v us=$us -v wakes=$wakes -v empty_ns=$empty_ns -v empty_wakes=$empty_wakes \
		-v limit="$limit" -v most=$MOST_WAKES -v name="$PTL3_MODE, $1" 'BEGIN {
		each = empty_wakes ? empty_ns / empty_wakes : 0
		rate = wakes * 1e6 / us
		printf "%s: %.3f %% of one CPU, %d wake-ups a second; %d us for an empty wake-up\n",
			name, ns / us / 10, rate, each / 1000
		exit !(ns > 0 && (ns - wakes * each) / us / 10 < limit && rate <= most)
	}'
}

measure() { # wait or sleep
	local window=1
	mkfifo "$dir/end"
	start_wakers
	# The job reads the fifo, which this script opens and later closes: that ends the job.
	# shellcheck disable=SC2016
	start sh -c 'exec "$@" <"$0"' "$dir/end" \
		"$P3_YOD" -sz 4 --timeout "${P3_LIMIT:-3000}" "$MP_BIN/mp_idle" "$1"
	exec 3>"$dir/end"
	patiently 5 grep -q idle "$dir/out" || fail "$1: the job does not begin"
	sleep 0.5
	until is_idle "$1"; do
		[ $((window += 1)) -le $WINDOWS ] || {
			fail "$1: not idle in any of $WINDOWS windows"
			break
		}
	done
	# shellcheck disable=SC2086
	kill $wakers
	exec 3>&-
	wait "$pid" || fail "$1: status $?"
}

export PTL3_MODE=$2
measure "$3"
finish "idle, $2, $3"
