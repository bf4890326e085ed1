#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh ends.sh program how [resets]
# Let a rank end, and check what the others see: kill, exit, _exit, exec, stop as in
# ends.c; link, whose victim's host is cut off for longer than PTL3_FAR_TIMEOUT; blink, for
# shorter.  With resets, all connections between the hosts break every 0.2 s meanwhile.
set -u
program=$1 how=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=breaks.sh disable=SC1091
. "$here/breaks.sh"
way=$how most=2000 others=5 timeout=30 start=300 limit=50
case $how in
link) way=wait most=6000 timeout=3 ;;
blink) way=pause most=8000 timeout=8 ;;
stop) most=8000 timeout=2 ;;
esac

await() { # file
	until [ -s "$1" ] || ! kill -0 $run 2>/dev/null || [ $SECONDS -ge $limit ]; do
		sleep 0.05
	done
}

cut() { # seconds
	await "$dir/v.end"
	ip -n "${HOST_PREFIX}2" link set eth0 down
	# pause: as long as the network is cut
	sleep "$1"
	ip -n "${HOST_PREFIX}2" link set eth0 up
}

[ "${3:-}" != resets ] || start=4000 # long enough for ten resets on a busy machine
"$here/mpirun.sh" -o "--enable-recovery" -x PTL3_HUGEPAGES=off \
	-x PTL3_FAR_TIMEOUT=$timeout "$program" "$way" "$dir/v" "$most" $start >"$dir/out" 2>&1 &
run=$!
if [ "${3:-}" = resets ]; then
	await "$dir/v.pid"
	break_all $run 6 || touch "$dir/failed"
fi
case $how in
link) cut 7; echo 1 >"$dir/v.over" ;;
blink) cut 3 ;;
esac

ranks() {
	for host in $HOSTS; do
		for pid in $(ip netns pids "$host"); do
			[ "$(readlink "/proc/$pid/exe")" != "$program" ] || echo "$pid"
		done
	done
}

# mpirun --enable-recovery does not end after the death of a rank, so end it when all ranks
# have ended.
await "$dir/v.end"
while kill -0 $run 2>/dev/null && [ -n "$(ranks)" ] && [ $SECONDS -lt $limit ]; do sleep 0.1; done
sleep 0.5
for pid in $(ranks); do
	echo "rank $(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')" \
		"has not ended within $limit s: state $(awk '{ print $3 }' "/proc/$pid/stat")"
	touch "$dir/failed"
	kill -9 "$pid"
done
kill $run 2>/dev/null
wait $run
status=$?
cat "$dir/out"
case $how in
stop | blink) seen=$(grep -c 'nothing has failed' "$dir/out") ;;
*) seen=$(grep -c 'a get failed after' "$dir/out") ;;
esac
[ "$how" != link ] || others=4 # rank 3 is on the host that is cut off
[ "$seen" -ge $others ] || {
	echo "$seen of $others other ranks have seen it; mpirun: $status"
	exit 1
}
[ ! -e "$dir/failed" ] || exit 1
! grep -q 'too late\|has failed though\|lives has failed\|no get has failed' "$dir/out"
