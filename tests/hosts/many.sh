#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh -n hosts many.sh yod|mpirun ranks-of-a-host program count
# Let all ranks of many hosts send each other short messages, and verify these
# (tests/mp/alltoall.c); print the time of the start, and the ranks' memory and descriptors.
set -u
by=$1 each=$2 program=$3 count=$4
here=$(cd "$(dirname "$0")" && pwd)
n=$(($(wc -w <<<"$HOSTS") * each))
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
"$here/$by.sh" -n "$n" -p "$each" -x PTL3_HUGEPAGES=off "$program" small "$count" figures \
	>"$out" 2>&1
status=$?
grep -v '^rank .* descriptors ' "$out"
awk -v n="$n" '/^rank .* descriptors / {
		ranks++; memory += $7; start = $4 > start ? $4 : start
		most = $7 > most ? $7 : most; fds = $NF > fds ? $NF : fds
	}
	END {
		printf "# %d ranks: start at most %d ms; memory of one at most %.1f MiB, in all " \
			"%.0f MiB; descriptors at most %d\n", ranks, start, most / 1024,
			memory / 1024, fds
		exit ranks != n
	}' "$out" || status=1
exit $status
