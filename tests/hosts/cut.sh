#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh cut.sh switch settings program line...
# A switch forgets all connections of a job, and lets no new ones through between host 2 and
# the others, or it never let any through (switch.c).  The ranks of other hosts see the end of
# those of host 2 (ends.c), and lines name a rank and its port, and tell which way is silent.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
timeout=12 # the switch may have no CPU for a shorter time
switch=
trap 'kill $switch 2>/dev/null; rm -rf "$dir"' EXIT
begin_switch "$1" "$2" "$dir/switch"
HOSTS_OPTIONS=--keep-going "$here/yod.sh" -x PTL3_HUGEPAGES=off -x PTL3_FAR_TIMEOUT=$timeout \
	"$3" wait "$dir/v" >"$dir/out" 2>&1 &
run=$!
until_there $run "$dir/v.end"
kill -USR1 $switch
seen() {
	[ "$(grep -c 'a get failed after' "$dir/out")" = 4 ] || ! kill -0 $run 2>/dev/null
}
patiently seen || echo "never: the ends of ranks 2 and 3"
echo 1 >"$dir/v.over"
status=0
wait $run || status=1
kill $switch
wait $switch || status=1
cat "$dir/out" "$dir/switch"
[ "$(grep -c 'a get failed after' "$dir/out")" = 4 ] || status=1
for line in "${@:4}"; do
	grep -Eq "$line" "$dir/out" || {
		echo "no line tells: $line"
		status=1
	}
done
exit $status
