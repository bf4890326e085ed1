#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Beginnings and ends of processes: without yod, forked, executed, wrapped, absent.

. "$(dirname "$0")/mp.sh"
life=$MP_BIN/mp_life absent=$MP_BIN/mp_absent

fine() { # what, how many times, command...
	local what=$1 times=$2
	shift 2
	succeeds "$what" "$@"
	[ "$(grep -cx fine "$dir/out")" = "$times" ] || fail "$what: not all were fine"
	nothing_left
}

fine "a job of one without yod" 1 "$life" self
fine "a job of one" 1 "$P3_YOD" -sz 1 "$life" self
fine "two and four" 2 "$P3_YOD" -sz 2 "$life" self
fine "four" 4 "$P3_YOD" -sz 4 "$life" self
for what in fork child exec again; do
	fine "$what without yod" 1 "$life" $what
	fine $what 3 "$P3_YOD" -sz 3 "$life" $what
done
for what in leave crash; do
	succeeds "$what without yod" "$life" $what
	succeeds $what "$P3_YOD" -sz 3 "$life" $what
	nothing_left
done
# shellcheck disable=SC2016
fine "a wrapper that executes" 2 "$P3_YOD" -sz 2 sh -c 'exec "$0" self' "$life"
# shellcheck disable=SC2016
fine "a wrapper that waits" 2 "$P3_YOD" -sz 2 sh -c '"$0" self; exit $?' "$life"
# shellcheck disable=SC2016
fine "one program after another" 4 "$P3_YOD" -sz 2 sh -c '"$0" self && "$0" self' "$life"
for what in never ended; do
	succeeds "partner $what" "$P3_YOD" -sz 2 "$absent" $what
	says "partner $what" '^all fail$'
done
succeeds "partner stays away" "$P3_YOD" -sz 2 -x PTL3_ABSENT=hold:1 "$absent" bound
says "partner stays away" '^all fail$'
succeeds "partner late" "$P3_YOD" -sz 2 "$absent" late
says "partner late" '^answered$'
succeeds "partner lost" "$P3_YOD" -sz 2 -x PTL3_ABSENT=drop "$absent" lost
says "partner lost" '^answered$'
finish life
