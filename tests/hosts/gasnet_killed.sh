#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh gasnet_killed.sh program arguments...
# Kill a node of a GASNet job on another host than node 0, while the launcher does nothing
# about it: all other nodes end.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
timeout=3
touch "$dir/job"
"$here/recover.sh" -x PTL3_HUGEPAGES=off -x PTL3_FAR_TIMEOUT=$timeout -x P3_SUITE_FILE="$dir/job" \
	"$@" >"$dir/out" 2>&1 &
run=$!
nodes() { # hosts
	processes_of "$program" "$@"
}
program=$1
second=${HOST_PREFIX}2
has_ended() {
	! kill -0 $run 2>/dev/null
}
all_are_there() {
	# shellcheck disable=SC2086
	[ "$(nodes $HOSTS | wc -l)" -ge 6 ] || has_ended
}
none_is_left() {
	# shellcheck disable=SC2086
	[ -z "$(nodes $HOSTS)" ]
}
bytes() { # that have come to the victim's host
	ip netns exec "$second" cat /sys/class/net/eth0/statistics/rx_bytes
}
messages_come() { # more than the start takes
	[ "$(bytes)" -gt $((before + 4000000)) ] || has_ended
}
patiently all_are_there || echo "not all nodes have started"
before=$(bytes)
patiently messages_come || echo "no messages have come"
victim=$(nodes "$second" | head -1)
[ -n "$victim" ] || {
	cat "$dir/out"
	echo "the job has ended before a node was killed"
	exit 1
}
kill -9 "$victim"
patiently none_is_left
status=$?
wait $run
cat "$dir/out"
exit $status
