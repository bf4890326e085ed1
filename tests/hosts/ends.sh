#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh ends.sh program how [resets]
# Let a rank end, and check what the others see: kill, exit, _exit, exec, stop as in
# ends.c; link, whose victim's host is cut off until the others have seen it; blink, for
# less than PTL3_FAR_TIMEOUT.  With resets, all connections between the hosts break every
# 0.2 s before and after the end.
set -u
program=$1 how=$2
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
# Only what ends a rank tells the others, no time-out, but where its host is cut off.
way=$how most=0 others=5 timeout=3000 start=300 line='a get failed after'
case $how in
link) way=wait timeout=3 others=4 ;; # rank 3 is on the host that is cut off
# After 3 s without a network the kernel sends again up to 12.6 s after the first loss.
blink) way=pause most=0 timeout=16 line='nothing has failed' ;;
stop) most=5000 timeout=2 line='nothing has failed' ;;
esac

has_ended() {
	! kill -0 $run 2>/dev/null
}

seen() {
	grep -c "$line" "$dir/out"
}

all_have_seen() {
	[ "$(seen)" -ge $others ] || has_ended
}

is_there() { # file
	[ -s "$1" ] || has_ended
}

await() { # command...
	patiently "$@" || echo "never: $*"
}

cut_off() { # command that ends it
	await is_there "$dir/v.end"
	ip -n "${HOST_PREFIX}2" link set eth0 down
	"$@"
	ip -n "${HOST_PREFIX}2" link set eth0 up
}

ranks() {
	# shellcheck disable=SC2086
	processes_of "$program" $HOSTS
}

no_rank_is_left() {
	[ -z "$(ranks)" ]
}

[ "${3:-}" != resets ] || start=go
"$here/mpirun.sh" -o "--enable-recovery" -x PTL3_HUGEPAGES=off \
	-x PTL3_FAR_TIMEOUT=$timeout "$program" "$way" "$dir/v" "$most" $start >"$dir/out" 2>&1 &
run=$!
if [ "${3:-}" = resets ]; then
	await is_there "$dir/v.pid"
	break_all $run 4 "$dir/v.go" || touch "$dir/failed"
fi
case $how in
link)
	cut_off await all_have_seen
	echo 1 >"$dir/v.over"
	;;
blink)
	# pause: as long as the network is cut
	cut_off sleep 3
	echo 1 >"$dir/v.enough"
	;;
esac

# mpirun --enable-recovery does not end after the death of a rank, so end it when all ranks
# have ended, and it has passed on what they said.
await all_have_seen
await no_rank_is_left
for pid in $(ranks); do
	echo "rank $(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')" \
		"has not ended: state $(awk '{ print $3 }' "/proc/$pid/stat")"
	touch "$dir/failed"
	kill -9 "$pid"
done
kill $run 2>/dev/null
wait $run
status=$?
cat "$dir/out"
[ "$(seen)" -ge $others ] || {
	echo "$(seen) of $others other ranks have seen it; mpirun: $status"
	exit 1
}
[ ! -e "$dir/failed" ] || exit 1
! grep -q 'has failed though\|lives has failed\|no get has failed\|does not come' "$dir/out"
