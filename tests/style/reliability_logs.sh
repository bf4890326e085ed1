#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/reliability --logs fails, with a line that says why, if a log of ctest lacks a test
# that the table counts: reliability_logs.sh source-tree
root=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0
log=$dir/build/Testing/Temporary/LastTest.log
mkdir -p "${log%/*}"

# Write the list of all tests of hostile processes and their log, each with a count;
# without leaves one out of the log.
write() { # without
	local n=0 name
	for name in hostile_lanes hostile_park hostile_lifeline stranger liar_park; do
		n=$((n + 1))
		echo "set_tests_properties([=[stress_$name]=] PROPERTIES LABELS \"stress\")" \
			>>"$dir/build/CTestTestfile.cmake"
		[ "$name" = "$1" ] && continue
		printf '%s\n' "$n/5 Testing: stress_$name" "$n/5 Test: stress_$name" \
			"# tried: 40 lives" "<end of output>" "Test time =   1.00 sec" \
			"----------" "Test Passed." >>"$log"
	done
}

expect() { # status text
	"$root/tests/reliability" --logs --kinds hostile --builds release --release "$dir/build" \
		>"$dir/out" 2>"$dir/err"
	local is=$?
	[ $is = "$1" ] && grep -qF -- "$2" "$dir/out" "$dir/err" && return
	echo "status $is, not $1, or no line with: $2"
	cat "$dir/out" "$dir/err"
	status=1
}

expect 1 "has no log of a ctest run"
write hostile_park
expect 1 "no result of 1 tests that the table counts, the first is stress_hostile_park"
rm -f "$dir/build/CTestTestfile.cmake" "$log"
write none
expect 0 "80 lives"
touch -d '+1 hour' "$log.tmp12345"
expect 1 "a ctest run goes on or was cut off"
exit $status
