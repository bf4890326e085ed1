#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh steady.sh program what seconds [provider]
# Verified traffic and barriers (steady.c) go on for some time while something happens to
# the network, and all arrives:
#
#	resets	all TCP connections between ranks of different hosts are reset every 0.2 s
#	link	the link of host 2 is down for the given time
set -u
program=$1 what=$2 seconds=$3 provider=${4:-auto}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source=breaks.sh disable=SC1091
. "$here/breaks.sh"
command -v ss >/dev/null || {
	echo "skipped: there is no ss"
	exit 77
}
"$here/mpirun.sh" -x PTL3_HUGEPAGES=off -x "PTL3_FABRIC=$provider" "$program" "$seconds" "$dir/v" \
	>"$dir/out" 2>&1 &
run=$!
until [ -s "$dir/v.begun" ] || ! kill -0 $run 2>/dev/null; do sleep 0.05; done

status=0
case $what in
resets) break_all $run "$seconds" "$dir/v.enough" || status=1 ;;
link)
	sleep 1 # pause: of traffic, as behind it
	ip -n "${HOST_PREFIX}2" link set eth0 down
	# pause: as long as the link is down
	sleep "$seconds"
	ip -n "${HOST_PREFIX}2" link set eth0 up
	sleep 2
	echo 1 >"$dir/v.enough"
	;;
esac
wait $run || status=1
cat "$dir/out"
[ "$(grep -c 'events, ' "$dir/out")" = 6 ] || status=1
! grep -q 'warning:\|error:' "$dir/out" || status=1
exit $status
