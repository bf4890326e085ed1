#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run programs many times, with ranks that start at different times:
#	staggered.sh [-n runs] [-s seed] [-j jobs] [-l seconds] [-c] program...
# Each run takes its number of nodes (2, 4, 8), the way in which it is started, the mode,
# the form of the program, the way in which it ends, and the delay of each rank (up to
# 2.5 s, in either order or in none) from the seed and its own number, so that a run can be
# repeated: staggered.sh -r NUMBER -s SEED program.  -c: cycle through the ways to start and
# the modes, and 0.6 s at most, for a few runs.  Prints a count of runs, failures and
# hangs for each program; a run that has not ended after -l seconds (60) is a hang.
here=$(dirname "$(readlink -f "$0")")
runs=6 seed=1 jobs=10 limit=60 only='' few=''
while getopts n:s:j:l:r:c option; do
	case $option in
	n) runs=$OPTARG ;;
	s) seed=$OPTARG ;;
	j) jobs=$OPTARG ;;
	l) limit=$OPTARG ;;
	r) only=$OPTARG ;;
	c) few=1 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
: "${P3_YOD:?path of yod}" "${REF_BIN:?folder of the programs}"

# choose program seed number few: the words of a run, as shell assignments.
choose() {
	awk -v program="$1" -v seed="$2" -v run="$3" -v few="$4" '
	function pick(list, words, n) {
		n = split(list, words, " ")
		return words[1 + int(rand() * n)]
	}
	function cycle(list, at, words, n) {
		n = split(list, words, " ")
		return words[1 + at % n]
	}
	BEGIN {
		forms["handshake"] = "hello ack"
		forms["first"] = "down up ring"
		forms["exact"] = "both ends"
		srand(seed * 100003 + run)
		for (i = 0; i < 5; i++)
			rand()
		starters = "yod shell pmi openmpi"
		modes = "lease dedicated park"
		nodes = few ? cycle("2 4 2 8", run) : pick("2 4 8")
		starter = few ? cycle(starters, run) : pick(starters)
		mode = few ? cycle(modes, run) : pick(modes)
		form = program in forms ? pick(forms[program]) : "-"
		order = pick("up down any")
		stagger = (few ? 0.6 : 2.5) * (rand() < 0.3 ? 1 : rand())
		delays = ""
		for (i = 0; i < nodes; i++) {
			turn = order == "up" ? i : order == "down" ? nodes - 1 - i : -1
			part = turn < 0 ? rand() : turn / (nodes - 1)
			delays = delays sprintf("%.3f ", stagger * part)
		}
		printf "nodes=%d starter=%s mode=%s form=%s end=%s delays=\"%s\"\n",
			nodes, starter, mode, form, pick("fini return _exit"), delays
	}'
}

# The script of each rank: wait for the turn of the rank, then become the program.
# shellcheck disable=SC2016
late='rank=${PTL_MY_RID:-${PMI_RANK:-$OMPI_COMM_WORLD_RANK}}
set -- $rank "$@"
read -ra delay <<<"$REF_DELAYS"
sleep "${delay[rank]}"
shift
exec "$@"'

# One run, in a process group of its own: its processes are all killed at a hang.
if [ "$REF_ROLE" = run ]; then
	nodes=0 starter='' mode='' form='' end='' delays=''
	eval "$(choose "$1" "$seed" "$only" "$few")"
	export PTL3_MODE=$mode PTL3_HUGEPAGES=off REF_DELAYS=$delays REF_END=$end
	. "$here/../support/starters.sh"
	before=(bash -c "$late" late)
	job=ref-$$ limit=$((limit - 5))
	by_"$starter" "$REF_BIN/reference_$1" "$form"
	exit
fi

# tried program number: one run and its verdict.
tried() {
	local log status start=$SECONDS
	log=$(mktemp) || exit 1
	REF_ROLE=run timeout -k 5 "$limit" "$here/staggered.sh" -s "$seed" -r "$2" \
		-l "$limit" ${few:+-c} "$1" >"$log" 2>&1
	status=$?
	if [ $status = 0 ]; then
		echo "fine $1 $((SECONDS - start))"
	else
		[ $status = 124 ] && status=hang
		grep -q 'time is up\|timeout' "$log" && status=hang
		echo "failed $1 run $2: $status: $(choose "$1" "$seed" "$2" "$few")"
		sed 's/^/    /' "$log"
	fi
	rm -f "$log"
}
export -f tried choose
export here seed limit few

if [ -n "$only" ]; then
	tried "$1" "$only"
	exit
fi
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
for program; do
	seq "$runs" | sed "s/^/$program /"
done | sort -k2n -s | xargs -P "$jobs" -L 1 bash -c 'tried "$@"' tried >"$out"
status=0
for program; do
	fine=$(grep -c "^fine $program " "$out")
	slowest=$(sed -n "s/^fine $program //p" "$out" | sort -n | tail -n 1)
	failed=$(grep -c "^failed $program " "$out")
	hung=$(grep -c "^failed $program .*: hang:" "$out")
	echo "reference $program: $((fine + failed)) runs, seed $seed:" \
		"$((failed - hung)) failures, $hung hangs; the slowest took ${slowest:-no} s"
	[ "$fine" = "$runs" ] || status=1
done
grep -v ^fine "$out"
exit $status
