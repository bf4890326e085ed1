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
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
command -v ss >/dev/null || skip "there is no ss"
"$here/mpirun.sh" -x PTL3_HUGEPAGES=off -x "PTL3_FABRIC=$provider" "$program" "$seconds" "$dir/v" \
	>"$dir/out" 2>&1 &
run=$!
until_there $run "$dir/v.begun"

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
