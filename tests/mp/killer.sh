#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kill -9 of a random node, of yod or of its launcher process at a random moment of a
# job of four under verified traffic: nothing is left, the status shows it, the
# survivors have ended, and none saw wrong data.  In every second run (--keep-going) the
# survivors must notice by themselves.
#
# usage: killer.sh [runs]; P3_KILLS overrides the number, P3_SEED repeats a sequence

. "$(dirname "$0")/mp.sh"
runs=${P3_KILLS:-${1:-200}}
RANDOM=${P3_SEED:=$((RANDOM % 32768))}
echo "$runs kills, P3_SEED=$P3_SEED"

children() { # of a process
	cat "/proc/$1/task/$1/children" 2>/dev/null
}

pick_victim() { # sets victim and what; nothing if it is not born yet
	local inner nodes
	victim=
	inner=$(children "$pid") || return
	inner=${inner% }
	case $1 in
	4) victim=$pid what=yod ;;
	5) victim=$inner what=launcher ;;
	*)
		read -ra nodes <<<"$(children "$inner")"
		victim=${nodes[$1]}
		what="rank $1"
		;;
	esac
}

# Return true if a node complained.  A node that starts while its launcher dies may.
saw_wrong() {
	local may='^$'
	[ "$what" != yod ] && [ "$what" != launcher ] || may='Ptl(NI)?Init\('
	grep -E 'traffic\.c|mp\.c' "$dir/err" | grep -Evq "$may"
}

check_run() {
	[ "$status" = 137 ] || fail "run $i ($what, $ms ms): status $status"
	nothing_left
	! saw_wrong || fail "run $i ($what, $ms ms): wrong"
	# Memory without a name ends with the processes that map it.
	shm_is "$shm" || fail "run $i ($what): /dev/shm: $(ours_in_shm)"
}

one_run() {
	local keep=
	[ $((i % 2)) = 0 ] || keep=--keep-going
	shm=$(ours_in_shm)
	ms=$((RANDOM % 300))
	which=$((RANDOM % 6))
	# shellcheck disable=SC2086
	start "$P3_YOD" -sz 4 --timeout "${P3_LIMIT:-3000}" $keep "$MP_BIN/mp_traffic"
	sleep "$(printf '0.%03d' "$ms")"
	until pick_victim "$which" && [ -n "$victim" ]; do
		kill -0 "$pid" 2>/dev/null || break
	done
	kill -KILL "$victim"
	wait "$pid" 2>/dev/null
	status=$?
	check_run
}

for ((i = 0; i < runs && failures < 5; i++)); do
	one_run 2>>"$dir/own"
done
grep -v Killed "$dir/own" | head -5
finish killer
