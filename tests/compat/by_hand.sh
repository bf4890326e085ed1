#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One client, whose processes yod does not start: by_hand.sh shell|mpirun kind processes
# work options-of-job.h...  Each gets its rank and the others' ids, as the start scripts
# of the reference implementation did, and meets them in a domain.
starter=$1 kind=$2 processes=$3 work=$4
shift 4

"${P3_YOD:?path of yod}" --help | grep -q -- --domain || {
	echo "skipped: no domains, processes started by hand do not reach each other"
	exit 77
}
dir=$(mktemp -d) || exit 1
started=()
trap 'kill "${started[@]}" 2>/dev/null; rm -rf "$dir"' EXIT

read -ra words <<<"$work"
[ "$kind" = rpc ] && words=("$dir" "${words[@]}")
export program=${COMPAT_BIN:?folder of the clients}/compat_$kind
export PTL3_DOMAIN=compat-$$ PTL_NIDMAP PTL_PIDMAP
for ((i = 0; i < processes; i++)); do
	PTL_NIDMAP+=${PTL_NIDMAP:+:}$((0x7f000001))
	PTL_PIDMAP+=${PTL_PIDMAP:+:}$((700 + i))
done

# The last one first: a process that comes early waits for the others.
by_shell() {
	local i
	for ((i = processes - 1; i >= 0; i--)); do
		PTL_MY_RID=$i "$program" "$@" &
		started+=($!)
		[ $((i % 2)) = 0 ] || sleep 0.1
	done
	for ((i = 0; i < processes; i++)); do
		wait -n && continue
		[ $? = 127 ] && break # bash has seen the ends of all the others already
		return 1 # the others would wait for the one that failed
	done
	for ((i = 0; i < processes; i++)); do
		wait "${started[i]}" || return 1
	done
	started=()
}

# Open MPI's and MPICH's mpirun, which name the rank in different variables. shellcheck
# disable=SC2016
by_mpirun() {
	local run=(mpirun -n "$processes") rank='${OMPI_COMM_WORLD_RANK:-$PMI_RANK}'
	command -v mpirun >/dev/null || {
		echo "skipped: no mpirun"
		return 77
	}
	mpirun --version | grep -q 'Open MPI' && run+=(--oversubscribe)
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export OMPI_MCA_orte_tmpdir_base=$dir # as tests/gasnet/mpi.sh explains
	"${run[@]}" sh -c "PTL_MY_RID=$rank exec \"\$program\" \"\$@\"" sh "$@"
}

by_"$starter" "$@" "${words[@]}"
