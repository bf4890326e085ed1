#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh gasnet_killed.sh program arguments...
# Kill a node of a GASNet job on another host than node 0, while the launcher does nothing
# about it: all other nodes end within PTL3_FAR_TIMEOUT and two seconds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
timeout=3
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
touch "$dir/job"
"$here/recover.sh" -x PTL3_HUGEPAGES=off -x PTL3_FAR_TIMEOUT=$timeout -x GN_JOB_FILE="$dir/job" \
	"$@" >"$dir/out" 2>&1 &
run=$!
nodes() { # hosts
	for host in "$@"; do
		for pid in $(ip netns pids "$host"); do
			[ "$(readlink "/proc/$pid/exe")" != "$program" ] || echo "$pid"
		done
	done
}
program=$1
# shellcheck disable=SC2086
while kill -0 $run 2>/dev/null && [ "$(nodes $HOSTS | wc -l)" -lt 6 ]; do sleep 0.1; done
sleep 3 # they send each other messages
victim=$(nodes "${HOST_PREFIX}2" | head -1)
[ -n "$victim" ] || {
	cat "$dir/out"
	echo "the job has ended before a node was killed"
	exit 1
}
kill -9 "$victim"
start=$(date +%s%N)
# shellcheck disable=SC2086
while [ -n "$(nodes $HOSTS)" ] && [ $((($(date +%s%N) - start) / 1000000)) -lt 30000 ]; do
	sleep 0.05
done
ms=$((($(date +%s%N) - start) / 1000000))
wait $run
cat "$dir/out"
echo "# all nodes have ended after $ms ms"
[ $ms -le $(((timeout + 2) * 1000)) ]
