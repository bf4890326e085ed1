#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh killed.sh program what
# Kill mpirun, or all processes of a host; nothing may be left of the job (hosts.sh looks for
# processes), and its end takes 10 s at most.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
"$here/mpirun.sh" -x PTL3_HUGEPAGES=off "$1" pause "$dir/v" 60000 >"$dir/out" 2>&1 &
run=$!
until [ -s "$dir/v.end" ] || ! kill -0 $run 2>/dev/null; do sleep 0.05; done
[ -s "$dir/v.end" ] || {
	cat "$dir/out"
	echo "the job has ended before it was killed"
	exit 1
}
case $2 in
host)
	# shellcheck disable=SC2046
	kill -9 $(ip netns pids "${HOST_PREFIX}2")
	;;
mpirun) kill -TERM $run ;;
esac
start=$SECONDS
wait $run
left() {
	for host in $HOSTS; do ip netns pids "$host"; done
}
while [ -n "$(left)" ] && [ $((SECONDS - start)) -lt 10 ]; do sleep 0.1; done
[ -z "$(left)" ] || {
	cat "$dir/out"
	ps -o pid,args -p "$(left | paste -sd,)"
	exit 1
}
! grep -q 'nothing has failed' "$dir/out"
