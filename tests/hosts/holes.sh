#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh holes.sh switch settings program
# Verified traffic and barriers (steady.c) go on while a switch forgets all connections of the
# job (switch.c): the ranks make others, long before PTL3_FAR_TIMEOUT, and all arrives.  yod
# starts the job, since its own connections do not go through the switch.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
timeout=20
switch=
trap 'kill $switch 2>/dev/null; rm -rf "$dir"' EXIT
# shellcheck source=switched.sh disable=SC1091
. "$here/switched.sh"
begin_switch "$1" "$2" "$dir/switch"
"$here/run.sh" -b yod -x PTL3_FAR_TIMEOUT=$timeout "$3" 4 "$dir/v" >"$dir/out" 2>&1 &
run=$!
until [ -s "$dir/v.begun" ] || ! kill -0 $run 2>/dev/null; do sleep 0.05; done
sleep 1 # pause: of traffic, as behind the hole
kill -USR1 $switch
sleep 5
echo 1 >"$dir/v.enough"
status=0
wait $run || status=1
kill $switch
wait $switch || status=1
cat "$dir/out" "$dir/switch"
[ "$(grep -c 'events, ' "$dir/out")" = 6 ] || status=1
! grep -q 'warning:\|error:' "$dir/out" || status=1
! grep -q ' 0 swallowed' "$dir/switch" || status=1
exit $status
