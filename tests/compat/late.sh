#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes of which some come late: late.sh yod|shell|pmi|mpirun nodes style stagger_ms
# up|down gap_ms.  shell: by hand, with maps; pmi: with the variables of MPICH's
# mpiexec.  LATE_RUNS is the number of runs.
starter=$1 nodes=$2
shift 2
program=${COMPAT_BIN:?folder of the clients}/compat_late
dir=$(mktemp -d) || exit 1
started=()
trap 'kill "${started[@]}" 2>/dev/null; rm -rf "$dir"' EXIT

by_yod() {
	"${P3_YOD:?path of yod}" -sz "$nodes" --timeout "${P3_LIMIT:-3000}" "$program" "$@"
}

# one_by_one variable command...: its value is the rank.
one_by_one() {
	local i status=0 variable=$1
	shift
	started=()
	for ((i = 0; i < nodes; i++)); do
		env "$variable=$i" "$program" "$@" &
		started+=($!)
	done
	for ((i = 0; i < nodes; i++)); do
		wait "${started[i]}" || status=1
	done
	started=()
	return $status
}

# Start as the scripts of the reference implementation did.
by_shell() {
	local i
	export PTL3_DOMAIN=late-$$ PTL_NIDMAP='' PTL_PIDMAP=''
	for ((i = 0; i < nodes; i++)); do
		PTL_NIDMAP+=${PTL_NIDMAP:+:}$((0x7f000001))
		PTL_PIDMAP+=${PTL_PIDMAP:+:}$((700 + i))
	done
	one_by_one PTL_MY_RID "$@"
}

by_pmi() {
	unset PTL3_DOMAIN
	export PMI_SIZE=$nodes PMI_JOBID=late-$$-$run
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
	export OMPI_MCA_orte_tmpdir_base=$dir # as tests/gasnet/mpi.sh explains
	"${run[@]}" "$program" "$@"
}

for ((run = 0; run < ${LATE_RUNS:-1}; run++)); do
	by_"$starter" "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ $status = 77 ] && exit 77
	[ $status = 0 ] && [ "$(grep -cx fine "$dir/out")" = "$nodes" ] && continue
	echo "run $run: status $status"
	cat "$dir/out" "$dir/err"
	exit 1
done
