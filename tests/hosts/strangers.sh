#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh strangers.sh program
# While a job runs, strangers call its beacons, from a host of the job and from outside of it.
# No stranger gets in, and the job ends well.  Each rank has one port.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null && command -v ss >/dev/null || {
	echo "skipped: there is no python3 or ss"
	exit 77
}
"$here/mpirun.sh" -x PTL3_HUGEPAGES=off "$1" pause "$dir/v" 0 >"$dir/out" 2>&1 &
run=$!
until [ -s "$dir/v.end" ] || ! kill -0 $run 2>/dev/null; do sleep 0.05; done

# The ports of the beacons on the first host.
mapfile -t ports < <(ip netns exec "${HOST_PREFIX}1" ss -Hltn "src 10.213.77.1" | awk '{ sub(".*:", "", $4); print $4 }')
[ ${#ports[@]} -eq 2 ] || {
	cat "$dir/out"
	echo "the ranks of host 1 listen at ${#ports[@]} ports"
	exit 1
}
status=0 turned=0
for port in "${ports[@]}"; do
	said=$(timeout "${P3_LIMIT:-60}" ip netns exec "${HOST_PREFIX}2" python3 "$here/stranger.py" 10.213.77.1 "$port" 2>&1) || {
		echo "stranger.py fails at port $port with status $?"
		status=1
	}
	echo "$said" | tail -3
	turned=$((turned + $(grep -c 'turned the stranger away' <<<"$said")))
done
[ $turned -ge 2 ] || {
	echo "$turned beacons have turned a stranger away, not 2"
	status=1
}
echo 1 >"$dir/v.enough"
wait $run || status=1
cat "$dir/out"
[ "$(grep -c 'nothing has failed' "$dir/out")" = 5 ] || status=1
grep -q 'does not know its secret' "$dir/out" || {
	echo "no line tells of the strangers"
	status=1
}
exit $status
