# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
# The ways in which a job begins, to be sourced:
#
#	by_yod, by_mpirun	by that program
#	by_shell		one by one, with maps, as the scripts of the reference
#				implementation did
#	by_pmi, by_openmpi	one by one, with the variables of MPICH's mpiexec, of Open MPI
#
# Each runs a command as $nodes processes, and returns 0 or the first bad status.
#
#	job	a name that no other job has
#	dir	a folder of the job
#	before	words before the command of each rank, or none
#	pause	seconds between two starts one by one, the last rank first, or none

before=()
pause=

by_yod() {
	"${P3_YOD:?path of yod}" -sz "$nodes" --timeout "${limit:-${P3_LIMIT:-3000}}" "${before[@]}" "$@"
}

# one_by_one variable command...: its value is the rank; PMIX_RANK is for Open MPI.
one_by_one() {
	local i rank variable=$1 status=0 one started=()
	shift
	trap 'kill "${started[@]}" 2>/dev/null; exit 1' TERM
	for ((i = 0; i < nodes; i++)); do
		rank=$i
		[ -z "$pause" ] || rank=$((nodes - 1 - i))
		env "$variable=$rank" ${PMIX_NAMESPACE:+PMIX_RANK=$rank} "${before[@]}" "$@" &
		started+=($!)
		[ -z "$pause" ] || sleep "$pause"
	done
	for ((i = 0; i < nodes; i++)); do
		wait -n && continue
		[ $? = 127 ] && break # all have been waited for
		kill "${started[@]}" 2>/dev/null # they would wait for the one that failed
	done
	for ((i = 0; i < nodes; i++)); do
		wait "${started[i]}" || { one=$? && [ $status != 0 ] || status=$one; }
	done
	return "$status"
}

make_maps() {
	local i
	export PTL3_DOMAIN=$job PTL_NIDMAP='' PTL_PIDMAP=''
	for ((i = 0; i < nodes; i++)); do
		PTL_NIDMAP+=${PTL_NIDMAP:+:}$((0x7f000001))
		PTL_PIDMAP+=${PTL_PIDMAP:+:}$((700 + i))
	done
}

by_shell() {
	make_maps
	one_by_one PTL_MY_RID "$@"
}

by_pmi() {
	unset PTL3_DOMAIN
	export PMI_SIZE=$nodes PMI_JOBID=$job
	one_by_one PMI_RANK "$@"
}

by_openmpi() {
	unset PTL3_DOMAIN
	export OMPI_COMM_WORLD_SIZE=$nodes OMPI_COMM_WORLD_LOCAL_SIZE=$nodes PMIX_NAMESPACE=$job
	one_by_one OMPI_COMM_WORLD_RANK "$@"
}

# Open MPI's, or MPICH's.
by_mpirun() {
	local run=(mpirun -n "$nodes")
	command -v mpirun >/dev/null || {
		echo "skipped: no mpirun"
		return 77
	}
	mpirun --version | grep -q 'Open MPI' && run+=(--oversubscribe)
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	# A folder of its own: two that begin at once may not agree about who makes the usual one.
	export OMPI_MCA_orte_tmpdir_base=$dir
	"${run[@]}" "${before[@]}" "$@"
}
