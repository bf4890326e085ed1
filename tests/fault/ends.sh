#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A peer is stopped inside each mover while the other side ends the use of the memory:
# see ends.c.
# usage: ends.sh [times]; settings of the library are those of the environment
# With FAULT_QUICK each point ends the use in one way only.

: "${FAULT_BIN:?folder of fault_ends}"
MP_BIN=$FAULT_BIN
. "$(dirname "$0")/../mp/mp.sh"
times=${1:-1}
RANDOM=${P3_SEED:-1}

mapfile -t points < <(PTL3_FAULT=list "$FAULT_BIN/fault_ends" x |
	grep -E '^(transfer|serve|window|cma|heap|reading|pull|release|request|response)\.')
[ ${#points[@]} -gt 0 ] || {
	echo "skipped: a build without points (P3_FAULTS)"
	exit 77
}

stops=0
for ((i = 0; i < times; i++)); do
	for point in "${points[@]}"; do
		ways=(fini unlink exec)
		[ -z "$FAULT_QUICK" ] || ways=("${ways[RANDOM % 3]}")
		for how in "${ways[@]}"; do
			[ $failures -lt 5 ] || break
			rule="$point:$((RANDOM % 6 + 1)):stop@1"
			# Give the next program the same addresses, if possible.
			setarch -R true 2>/dev/null && same="setarch -R" || same=
			# shellcheck disable=SC2086
			start env "PTL3_FAULT=$rule" $same timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 2 --timeout "${P3_LIMIT:-3000}" \
				"$FAULT_BIN/fault_ends" $how
			wait "$pid"
			status=$?
			[ "$status" = 0 ] || fail "$how, PTL3_FAULT=$rule: status $status"
			! grep -q '^fault: stop' "$dir/err" || stops=$((stops + 1))
			nothing_left
		done
	done
done
echo "$stops stops at ${#points[@]} points"
finish ends
