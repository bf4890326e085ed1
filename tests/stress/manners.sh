#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# manners.sh ends|builds|alarms: the cases that manners.c cannot run alone.
. "$(dirname "$0")/../mp/mp.sh"
: "${STRESS_BIN:?folder of the stress_ programs}"

tried=0

# Each way to leave, with the kernel's movers, and without.
case_ends() {
	for set in ${P3_QUICK:-PTL3_MOVER=auto} PTL3_MOVER=window; do
		[ "$set" = 1 ] && continue
		for how in nifini fini return exit _exit thread atexit destructor; do
			run env $set timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 3 --timeout "${P3_LIMIT:-3000}" \
				"$STRESS_BIN/stress_ends" $how
			[ $status = 0 ] && grep -qx fine "$dir/out" ||
				fail "$how, $set: status $status"
			nothing_left
			tried=$((tried + 1))
		done
	done
	echo "# tried: $tried ends"
}

# Two builds in a job: the one that is not yod's is refused although it comes first, the
# others work.  Both layouts are named, by yod and by the node.
case_builds() {
	# shellcheck disable=SC2016
	run timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 3 --keep-going --timeout "${P3_LIMIT:-3000}" sh -c \
		'[ $PTL_MY_RID = 0 ] || until [ -e "$2" ]; do sleep 0.01; done
		[ $PTL_MY_RID = 0 ] || { "$0" alone && echo "rank $PTL_MY_RID is fine"; exit; }
		"$1" self; status=$?; touch "$2"; exit $status' \
		"$MP_BIN/mp_life" "$STRESS_BIN/stress_other_build" "$dir/refused"
	[ $status != 0 ] || fail "another build was taken"
	[ "$(grep -c "is fine" "$dir/out")" = 2 ] || fail "honest ranks failed: $(cat "$dir/out")"
	ours=$(sed -nE 's/.*is not ([0-9a-f]{16}), that of this yod.*/\1/p' "$dir/err")
	other=$(sed -nE 's/.*rank 0: layout ([0-9a-f]{16}) of its.*/\1/p' "$dir/err")
	[ -n "$ours" ] && [ -n "$other" ] && [ "$ours" != "$other" ] || fail "yod names no layouts"
	grep -Eq "this library has layout 0x0*${other##*(0)}, the launcher's 0x0*${ours##*(0)};" \
		"$dir/err" || fail "the node names no layouts"
	nothing_left
	echo "# tried: 1 job"
}

# Signals to yod, those that it takes and others.  A job may end while this shell has no CPU,
# so there are several.
case_alarms() {
	local k all=0
	for job in 1 2 3 4 5; do
		start "$P3_YOD" -sz 3 --timeout "${P3_LIMIT:-3000}" "$STRESS_BIN/stress_manners" storm
		for ((k = 0; k < 400; k++)); do
			kill -CHLD "$pid" 2>/dev/null && kill -CONT "$pid" && kill -WINCH "$pid" &&
				kill -URG "$pid" || break
		done
		wait "$pid"
		status=$?
		[ $status = 0 ] || fail "status $status after $k rounds of signals"
		nothing_left
		all=$((all + k))
		[ $all -le 50 ] || break
	done
	[ $all -gt 50 ] || fail "only $all rounds of signals to $job jobs"
	echo "# tried: $((4 * all)) signals"
}

shopt -s extglob
"case_$1"
finish "$1"
