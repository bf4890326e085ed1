#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each call of libportals for memory, descriptors or threads fails once, and once with
# all that follow it, in a job of two: no signal, no hang, no loss; a call returns its
# documented code, with a line that tells the reason, and succeeds later. usage:
# runout.sh [step]; P3_STEP overrides it: 1 is every call of three lives
#	 runout.sh at N|N+ repeats one

bin=${STRESS_BIN:?where the programs are} yod=${P3_YOD:?}
step=${P3_STEP:-${1:-1}}
failures=0 tried=0 told=0 idle=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

run() { # [what fails]
	P3_SHIM_FAIL=$1 P3_SHIM_RANK=0 timeout -k 1 "${P3_LIMIT:-3000}" "$yod" -sz 2 \
		env LD_PRELOAD="$bin/libstress_shim.so" "$bin/stress_lives" >"$out" 2>&1
}

complain() {
	echo "P3_SHIM_FAIL=$1: $2"
	sed 's/^/    /' "$out" | head -20
	failures=$((failures + 1))
}

try() {
	run "$1"
	local status=$? fine
	tried=$((tried + 1))
	fine=$(grep -c '^fine' "$out")
	[ $status = 0 ] || complain "$1" "status $status"
	[ $status != 0 ] || [ "$fine" = 2 ] || complain "$1" "not both ranks came to the end"
	# A failed start of a node is reported.
	if grep -q '^refused' "$out" && ! grep -q '^p3.* error: ' "$out"; then
		complain "$1" "no line says why"
	fi
	if grep -q '^fine 0: .* [1-9][0-9]* told' "$out"; then
		told=$((told + 1))
	fi
	# The last calls of a job may happen or not.
	grep -q '^fine 0: .* 0 failed' "$out" && idle=$((idle + 1))
}

if [ "$1" = at ]; then
	try "$2"
	cat "$out"
	exit $((failures > 0))
fi
run 0
calls=$(sed -n 's/^fine 0: \([0-9]*\) calls.*/\1/p' "$out")
[ -n "$calls" ] || { cat "$out"; exit 1; }
for ((n = 1; n <= calls; n += step)); do
	try "$n"
	try "$n+"
done
[ $((idle * 10)) -le "$tried" ] || complain - "nothing failed in $idle jobs of $tried"
echo "$calls calls, $tried jobs, a call was refused in $told, $failures failures"
exit $((failures > 0))
