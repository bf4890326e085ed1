#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# No system call per message: 110,000 round trips cost about as many system calls as
# 10,000.  strace counts those of all processes and threads of the job.
#
# The remaining calls depend on time, not on messages: a thread yields or sleeps when its
# partner's CPU was taken away for longer than it spins, and NIC threads tick.  These are
# sched_yield, futex and membarrier, not counted here: mp_idle and mp_yielding count what
# sleeps cost.  Of all others there may be one in twenty messages.  Ranks are pinned to
# different CPUs; on a machine with one CPU each round trip needs a switch, and the test
# is skipped.

. "$(dirname "$0")/mp.sh"

skip() {
	echo "skipped: $1"
	exit 77
}

command -v strace >/dev/null || skip "strace is not installed"
[ "$(nproc)" -ge 2 ] || skip "one CPU"
strace -f -o /dev/null true 2>/dev/null || skip "strace does not work here"

count() { # round trips; calls in $calls
	succeeds "$1 round trips" strace -f -c -o "$dir/trace" "$P3_YOD" -sz 2 \
		"$MP_BIN/mp_pingpong" "$1" pin
	awk '$1 ~ /^[0-9.]+$/ && $NF !~ /^(total|futex|membarrier|sched_yield)$/ {print $4, $NF}' "$dir/trace" |
		sort -rn >"$dir/calls"
	calls=$(awk '{n += $1} END {print n + 0}' "$dir/calls")
	echo "$1 round trips: $calls system calls ($(head -4 "$dir/calls" | paste -sd,))"
}

count 10000
few=$calls
count 110000
[ $((calls - few)) -le 5000 ] || fail "system calls grow with the number of messages"
finish strace
