#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes of which some come late, a job for each style, all jobs at the same time:
#	late.sh yod|shell|pmi|mpirun nodes stagger_ms gap_ms style,up|down...
# shell: by hand, with maps; pmi: with the variables of MPICH's mpiexec.  LATE_RUNS is the
# number of runs of each job.
starter=$1 nodes=$2 stagger=$3 gap=$4
shift 4
program=${COMPAT_BIN:?folder of the clients}/compat_late
dir=$(mktemp -d) || exit 1
jobs=()
trap 'kill "${jobs[@]}" 2>/dev/null; rm -rf "$dir"' EXIT

by_yod() {
	"${P3_YOD:?path of yod}" -sz "$nodes" --timeout "${P3_LIMIT:-3000}" "$program" "$@"
}

# one_by_one variable command...: its value is the rank.
one_by_one() {
	local i status=0 variable=$1 started=()
	shift
	trap 'kill "${started[@]}" 2>/dev/null; exit 1' TERM
	for ((i = 0; i < nodes; i++)); do
		env "$variable=$i" "$program" "$@" &
		started+=($!)
	done
	for ((i = 0; i < nodes; i++)); do
		wait "${started[i]}" || status=1
	done
	return $status
}

# Start as the scripts of the reference implementation did.
by_shell() {
	local i
	export PTL3_DOMAIN=late-$job PTL_NIDMAP='' PTL_PIDMAP=''
	for ((i = 0; i < nodes; i++)); do
		PTL_NIDMAP+=${PTL_NIDMAP:+:}$((0x7f000001))
		PTL_PIDMAP+=${PTL_PIDMAP:+:}$((700 + i))
	done
	one_by_one PTL_MY_RID "$@"
}

by_pmi() {
	unset PTL3_DOMAIN
	export PMI_SIZE=$nodes PMI_JOBID=late-$job-$run
	one_by_one PMI_RANK "$@"
}

# Open MPI's, or MPICH's.
by_mpirun() {
	local run=(mpirun -n "$nodes")
	command -v mpirun >/dev/null || {
		echo "skipped: no mpirun"
		exit 77
	}
	unset PTL3_DOMAIN
	mpirun --version | grep -q 'Open MPI' && run+=(--oversubscribe)
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	# As tests/gasnet/mpi.sh explains; the jobs of this script begin at once, too.
	mkdir -p "$said.of" || return 1
	export OMPI_MCA_orte_tmpdir_base=$said.of
	"${run[@]}" "$program" "$@"
}

# One job, LATE_RUNS times.
run_job() { # style direction
	local run status job=$$-$1-$2 said=$dir/$1-$2
	for ((run = 0; run < ${LATE_RUNS:-1}; run++)); do
		by_"$starter" "$1" "$stagger" "$2" "$gap" >"$said.out" 2>"$said.err"
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
exit $status
