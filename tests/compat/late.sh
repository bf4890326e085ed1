#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes of which some come late, a job for each style, all jobs at the same time:
#	late.sh yod|shell|pmi|openmpi|mpirun nodes stagger_ms gap_ms style,up|down...
# shell: by hand, with maps; pmi, openmpi: with the variables of MPICH's or Open MPI's mpiexec.  LATE_RUNS is the
# number of runs of each job.
starter=$1 nodes=$2 stagger=$3 gap=$4
shift 4
program=${COMPAT_BIN:?folder of the clients}/compat_late
. "$(dirname "$0")/../support/starters.sh"
all=$(mktemp -d) || exit 1
jobs=()
trap 'kill "${jobs[@]}" 2>/dev/null; rm -rf "$all"' EXIT

# One job, LATE_RUNS times.
run_job() { # style direction
	local run status job dir said=$all/$1-$2
	for ((run = 0; run < ${LATE_RUNS:-1}; run++)); do
		job=late-$$-$1-$2-$run dir=$said.of
		mkdir -p "$dir"
		[ "$starter" != mpirun ] || unset PTL3_DOMAIN
		by_"$starter" "$program" "$1" "$stagger" "$2" "$gap" >"$said.out" 2>"$said.err"
		status=$?
		[ $status = 77 ] && cat "$said.out" && return 77
		[ $status = 0 ] && [ "$(grep -cx fine "$said.out")" = "$nodes" ] && continue
		echo "$1 $2, run $run: status $status"
		cat "$said.out" "$said.err"
		return 1
	done
}

for style; do
	run_job "${style%,*}" "${style#*,}" &
	jobs+=($!)
done
status=0
for job in "${jobs[@]}"; do
	wait "$job" || status=$?
done
[ $status != 0 ] || echo "# tried: $(($# * ${LATE_RUNS:-1})) jobs"
exit $status
