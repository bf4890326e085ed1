#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kill -9 of a random node of a job that floods itself with active messages: the job ends
# with a message, and leaves no process and nothing in /dev/shm.
#
# usage: kill.sh PROGRAM NODES [RUNS]; PROGRAM is a gn_flood_MODE; P3_SEED repeats a sequence

program=$1 nodes=$2 runs=${3:-10}
MP_BIN=${program%/*}
export MP_BIN
. "$(dirname "$0")/../mp/mp.sh"
RANDOM=${P3_SEED:=$((RANDOM % 32768))}
echo "# tried: $runs kills, P3_SEED=$P3_SEED"

has_begun() {
	grep -q 'begun' "$dir/out"
}

has_ended() {
	! kill -0 "$pid" 2>/dev/null
}

# Set victim to the process of this rank.
find_node() {
	local inner
	victim=
	for inner in $(marked); do
		if tr '\0' '\n' 2>/dev/null <"/proc/$inner/environ" |
			grep -qx "PTL_MY_RID=$1" &&
			[ "$(readlink "/proc/$inner/exe")" = "$(readlink -f "$program")" ]; then
			victim=$inner
		fi
	done
	[ -n "$victim" ]
}

check_run() {
	[ "$status" != 0 ] || fail "run $i: status 0 after the kill of rank $rank"
	[ -s "$dir/err" ] || fail "run $i: no message"
	nothing_left
	shm_is "$shm" || fail "run $i: /dev/shm: $(ours_in_shm)"
}

one_run() {
	rank=$((RANDOM % nodes))
	shm=$(ours_in_shm)
	start "$P3_YOD" -sz "$nodes" --timeout "$P3_LIMIT" "$program" 1000 100000
	patiently has_begun || fail "run $i: the job does not begin"
	# pause: a stagger, so that the node dies in another place each time
	sleep "$(printf '0.%03d' $((RANDOM % 400)))"
	patiently find_node $rank || fail "run $i: there is no rank $rank"
	kill -KILL "$victim"
	if ! patiently has_ended; then
		fail "run $i: not ended after the kill of rank $rank"
		kill -KILL "$pid"
	fi
	wait "$pid" 2>/dev/null
	status=$?
	check_run
}

for ((i = 0; i < runs && failures < 3; i++)); do
	one_run 2>>"$dir/own"
done
grep -v Killed "$dir/own" | head -5
finish kill
