#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# No system call per message: 110,000 round trips cost about as many system calls as
# 10,000.  strace counts those of all processes and threads of the job.
#
# The remaining calls depend on time, not on messages: the ticks of the NIC threads
# (futex, 2 each 2 ms at most), and a yield or a sleep when the partner's CPU was taken
# away for longer than a thread spins.  So the growth, per 100,000 round trips, may be
# 5,000 calls (one in twenty messages), and 2,000 calls for each second that the longer
# run took longer.  Ranks are pinned to different CPUs; on a machine with one CPU each
# round trip needs a switch, and the test is skipped.

. "$(dirname "$0")/mp.sh"

skip() {
	echo "skipped: $1"
	exit 77
}

command -v strace >/dev/null || skip "strace is not installed"
[ "$(nproc)" -ge 2 ] || skip "one CPU"
strace -f -o /dev/null true 2>/dev/null || skip "strace does not work here"

count() { # round trips; calls in $calls, milliseconds in $ms
	local before
	before=$(date +%s%N)
	succeeds "$1 round trips" strace -f -c -o "$dir/trace" "$P3_YOD" -sz 2 \
		"$MP_BIN/mp_pingpong" "$1" pin
	ms=$((($(date +%s%N) - before) / 1000000))
	awk '$1 ~ /^[0-9.]+$/ && $NF != "total" {print $4, $NF}' "$dir/trace" |
		sort -rn >"$dir/calls"
	calls=$(awk '{n += $1} END {print n + 0}' "$dir/calls")
	top=$(head -4 "$dir/calls" | paste -sd,)
	echo "$1 round trips: $calls system calls in $ms ms ($top)"
}

try() {
	count 10000
	short=$calls short_ms=$ms
	count 110000
	extra_ms=$((ms > short_ms ? ms - short_ms : 0))
	allowed=$((5000 + 2 * extra_ms))
	echo "growth: $((calls - short)), allowed: $allowed"
	[ $((calls - short)) -le $allowed ]
}

# A machine with other load takes CPUs away: best of three.
for attempt in 1 2 3; do
	try && finish "strace (attempt $attempt)"
done
fail "system calls grow with the number of messages"
finish strace
