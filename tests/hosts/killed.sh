#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh killed.sh program what
# End mpirun, kill it, its daemon on another host, or all processes of a host; nothing may be
# left of the job (hosts.sh looks for processes) 10 s after the end of mpirun.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
"$here/mpirun.sh" -x PTL3_HUGEPAGES=off "$1" idle "$dir/v" >"$dir/out" 2>&1 &
run=$!
until_there $run "$dir/v.end"
[ -s "$dir/v.end" ] || {
	cat "$dir/out"
	echo "the job has ended before it was killed"
	exit 1
}
of_host() { # number, name of a program
	for pid in $(ip netns pids "$HOST_PREFIX$1"); do
		[ "$(cat "/proc/$pid/comm")" != "$2" ] || echo "$pid"
	done | head -1
}
case $2 in
host)
	# shellcheck disable=SC2046
	kill -9 $(ip netns pids "${HOST_PREFIX}2")
	;;
mpirun) kill -TERM $run ;;
killed_mpirun) kill -9 "$(of_host 1 mpirun)" ;;
orted) kill -9 "$(of_host 2 orted)" ;;
esac
wait $run
left() {
	for host in $HOSTS; do ip netns pids "$host"; done
}
none_is_left() {
	[ -z "$(left)" ]
}
patiently none_is_left || {
	cat "$dir/out"
	ps -o pid,args -p "$(left | paste -sd,)"
	exit 1
}
