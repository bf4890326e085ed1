#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh recover.sh options of mpirun.sh...
# As mpirun.sh, but when a rank is killed, the others go on.  mpirun does not end after that
# (docs/many-hosts.md), so this script ends it when no rank is left.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
"$here/mpirun.sh" -o --enable-recovery "$@" &
run=$!
trap 'kill -9 $run 2>/dev/null; rm -rf "$dir"' EXIT

# Print the processes of Open MPI's ranks, which have its variables.
ranks() {
	for host in $HOSTS; do
		for pid in $(ip netns pids "$host"); do
			! grep -qz '^OMPI_COMM_WORLD_RANK=' "/proc/$pid/environ" 2>/dev/null || echo "$pid"
		done
	done
}

begun=
while kill -0 $run 2>/dev/null; do
	left=$(ranks)
	[ -z "$left" ] || begun=1
	[ -z "$begun" ] || [ -n "$left" ] || break
	# pause: between two looks
	sleep 0.1
done
# mpirun may be about to pass on the last words of the ranks, and to end.  It may also stay after
# the death of a rank: then it and its daemons sleep for good.
asleep=0
has_ended() {
	! kill -0 $run 2>/dev/null && return
	for host in $HOSTS; do
		for pid in $(ip netns pids "$host"); do cat /proc/"$pid"/task/*/stat; done
	done 2>/dev/null | grep -q ') [RD]' && asleep=0 || asleep=$((asleep + 1))
	[ $asleep -ge 20 ]
}
patiently has_ended
kill $run 2>/dev/null
wait $run
