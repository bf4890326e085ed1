#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# counted.sh command... - runs a job on a wire with faults, adds up the nodes' counts of
# them, and fails if there were none.  The mode is lease if the environment names none
# (tests/everywhere).
export PTL3_MODE=${PTL3_MODE:-lease}

sum() { # of the nodes' lines, each number by itself
	awk '/^# wire:/ {
		for (i = 1; i <= NF; i++)
			n[i] = $i ~ /^[0-9]/ ? n[i] + $i : $i
		fields = NF
	}
	END {
		for (i = 1; i <= fields; i++)
			printf "%s%s", n[i], n[i] ~ /^[0-9]+$/ && i == 11 ? "; " : " "
		print ""
		exit n[4] + n[6] + n[8] + n[10] + n[12] == 0
	}'
}

out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
"$@" >"$out"
status=$?
grep -v '^# wire:' "$out"
sum <"$out" || {
	echo "no faults on the wire"
	exit 1
}
exit $status
