#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh holes.sh switch settings program
# Verified traffic and barriers (steady.c) go on while a switch forgets all connections of the
# job (switch.c), and lets new ones through in one direction only, or never let others through
# but those to one port, that of host 2: the ranks make others, long before PTL3_FAR_TIMEOUT, and
# all arrives.  yod starts the job, since its own connections do not go through the switch.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
timeout=20
switch=
trap 'kill $switch 2>/dev/null; rm -rf "$dir"' EXIT
each=2
for host in $HOSTS; do
	[[ $2 = *ports=402* ]] || break
	each=1 port=40${host##*-}
	ip netns exec "$host" sh -c "echo ${port}00 ${port}99 >/proc/sys/net/ipv4/ip_local_port_range"
done
n=$(($(wc -w <<<"$HOSTS") * each))
begin_switch "$1" "$2" "$dir/switch"
"$here/run.sh" -b yod -n $n -p $each -x PTL3_FAR_TIMEOUT=$timeout "$3" 3 "$dir/v" >"$dir/out" 2>&1 &
run=$!
until_there $run "$dir/v.begun"
sleep 1 # pause: of traffic, as behind the hole
kill -USR1 $switch
sleep 2 # pause: of traffic, as before
echo 1 >"$dir/v.enough"
status=0
wait $run || status=1
kill $switch
wait $switch || status=1
cat "$dir/out" "$dir/switch"
[ "$(grep -c 'events, ' "$dir/out")" = $n ] || status=1
! grep -q 'warning:\|error:' "$dir/out" || status=1
! grep -q ' 0 swallowed' "$dir/switch" || status=1
exit $status
