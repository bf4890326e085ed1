#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hostile.sh lanes|lifeline NODES HONEST SECONDS [SEED]: honest nodes may only notice
# that hostile ones are named.  HONEST is a pattern of their ranks.  For long runs:
# HOSTILE_SECONDS=60; with one attack of attack.c only: HOSTILE_ONLY=6 (none may be
# named).
: "${P3_YOD:?path of yod}" "${STRESS_BIN:?folder of the stress_ programs}"
mode=$1 nodes=$2 honest=$3 seconds=${HOSTILE_SECONDS:-$4} seed=${5:-$RANDOM}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "FAIL (seed $seed) $*"
	cut -c1-300 "$dir/err" | sort | uniq -c | sort -rn | head -20
	cat "$dir/out"
	exit 1
}

ulimit -c 0
"$P3_YOD" -sz "$nodes" --keep-going --timeout $((seconds + ${P3_LIMIT:-600})) \
	"$STRESS_BIN/stress_hostile" "$mode" "$seconds" "$seed" "$dir/over" >"$dir/out" 2>"$dir/err"
status=$?
[ $status = 0 ] || fail "status $status"
grep "^rank $honest:" "$dir/out" | sort
[ "$(grep -c "^rank $honest:" "$dir/out")" = 3 ] || fail "not all honest ones were fine"
awk '/^[0-9]+ (lives|attacks)$/ {n += $1} END {print "# tried: " n + 0 " attacks"}' "$dir/out"

# List the ranks that nodes and yod name.
named=$(sed -nE 's/^(p3\[.*\] (warn|error): node|yod: rank) ([0-9]+)[ :].*/\3/p' "$dir/err" | sort -u)
echo "named: $(echo $named)"
[ -n "$named$HOSTILE_ONLY" ] || fail "nobody was named"
echo "$named" | grep -qx "$honest" && fail "an honest one was named"
exit 0
