#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One client, its processes started by hand: by_hand.sh kind processes work options...
# Each is told who it is, and who the others are, as the reference implementation's
# start scripts did it.
kind=$1 processes=$2 work=$3
shift 3
unset PTL3_JOB
dir=$(mktemp -d) || exit 1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$dir"' EXIT

read -ra words <<<"$work"
[ "$kind" = rpc ] && words=("$dir" "${words[@]}")
nid=$((0x7f000001)) first=$((5000 + $$ % 20000))
for ((i = 0; i < processes; i++)); do
	nids+=${nids:+:}$nid
	ids+=${ids:+:}$((first + i))
done

# The last one first: who comes early waits for the others.
for ((i = processes - 1; i >= 0; i--)); do
	PTL_MY_RID=$i PTL_NIDMAP=$nids PTL_PIDMAP=$ids \
		"${COMPAT_BIN:?folder of the clients}/compat_$kind" "$@" "${words[@]}" &
	pids+=($!)
	[ $((i % 2)) = 0 ] || sleep 0.1
done
status=0
for pid in "${pids[@]}"; do
	wait "$pid" || status=1
done
pids=()
exit $status
