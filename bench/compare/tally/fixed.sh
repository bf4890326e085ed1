#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Check tally with samples whose ratios are known: fixed.sh TALLY DIR
# The slots of a round count once, a slot without one of the two counts nowhere, and the
# ratio is the median of the rounds' ratios, not the ratio of the medians.
set -e
tally=$1 out=$2
mkdir -p "$out"
sample() { # round slot who test x value
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@"
}
{
	# Half round trips: 250/100, 600/200 and 150/300 make 2.5, 3 and 0.5.
	sample 1 0 ours latency 8 100
	sample 1 0 openmpi latency 8 250
	sample 2 0 ours latency 8 200
	sample 2 0 openmpi latency 8 600
	sample 3 0 ours latency 8 300
	sample 3 0 openmpi latency 8 150
	# Without a partner in the slot:
	sample 4 0 ours latency 8 7
	sample 5 1 openmpi latency 8 9
	# Rates, two slots a round: medians 30 and 20 in round 1; 10 and 20 in round 2.
	sample 1 0 ours rate 8 20
	sample 1 0 raw_sketch rate 8 10
	sample 1 1 ours rate 8 40
	sample 1 1 raw_sketch rate 8 30
	sample 2 0 ours rate 8 10
	sample 2 0 raw_sketch rate 8 20
} >"$out/samples.tsv"
"$tally" "$out/samples.tsv" "$out" fixed "a peer: gone" >"$out/compare.txt"
rm -f "$out"/*.dat

# line pattern: the table has it, with any blanks
line() {
	tr -s ' ' <"$out/compare.txt" | grep -qE "^$1" || {
		echo "no line: $1"
		cat "$out/compare.txt"
		exit 1
	}
}
line '8 B half round trip / Open MPI 3 2\.50 0\.50 3\.00 200 250 ns$'
line '8 B rate / bare design 2 1\.00 0\.50 1\.50 20 20 M/s$'
line '8 B rate / Open MPI not measured: openmpi, rate 8$'
line 'left out: a peer: gone$'
line 'latency 8 openmpi 4 200 ns 9 600 2\.50 0\.50 3\.00$'
