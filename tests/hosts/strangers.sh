#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh strangers.sh program seconds
# While a job verifies its traffic (steady.c), strangers attack the ports of two ranks for some
# seconds: another user on a host of the job, and a host that is not of it.  No stranger gets in,
# the traffic goes on, each kind is named once by a rank, and the ranks have as many descriptors and
# as much memory as before.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
PATH=/usr/sbin:/usr/bin:/sbin:/bin # what another user may run, too
for tool in python3 ss setpriv; do
	command -v $tool >/dev/null || skip "there is no $tool"
done
HOSTS_OPTIONS= "$here/yod.sh" -x PTL3_HUGEPAGES=off "$1" 2 "$dir/v" >"$dir/out" 2>&1 &
run=$!
until_there $run "$dir/v.begun"
sleep 1 # pause: of traffic, as behind the attack
mapfile -t ports < <(ip netns exec "${HOST_PREFIX}1" ss -Hltn "src 10.213.77.1" | awk '{ sub(".*:", "", $4); print $4 }')

program=$(readlink -f "$1")
measure() { # host, process, descriptors and KiB of each rank
	for host in 1 2 3; do
		for pid in $(ip netns pids "$HOST_PREFIX$host"); do
			[ "$(readlink "/proc/$pid/exe")" = "$program" ] || continue
			echo "$host $pid $(ls "/proc/$pid/fd" | wc -l) $(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")"
		done
	done
}
# Ranks that are attacked may use 1 MiB more than those that are not.
are_as_before() {
	measure >"$dir/after"
	paste -d ' ' "$dir/before" "$dir/after" | awk '
		$2 != $6 || $7 > $3 { differs = 1 }
		$1 > 1 && $8 > most { most = $8 }
		$1 == 1 && $8 > attacked { attacked = $8 }
		END { exit differs || attacked > most + 1024 }'
}

[ ${#ports[@]} -eq 2 ] || {
	cat "$dir/out"
	echo "the two ranks of host 1 listen at ${#ports[@]} ports"
	exit 1
}
status=0
measure >"$dir/before"
ip -n "${HOST_PREFIX}3" address add 10.213.77.200/24 dev eth0
cp "$here/stranger.py" "$here/../support/patience.py" "$dir" # which another user may read
chmod 755 "$dir"
attack() { # number of the host, from
	ip netns exec "${HOST_PREFIX}$1" setpriv --reuid 65534 --clear-groups \
		python3 "$dir/stranger.py" "$2" "$3" 10.213.77.1 "${ports[@]}" >"$dir/attack.$1" 2>&1
}
attack 2 "$2" 10.213.77.2 &
inside=$!
attack 3 "$2" 10.213.77.200 &
outside=$!
wait $inside || status=1
wait $outside || status=1
cat "$dir"/attack.*
grep -q ' 0 of them answered' "$dir/attack.2" && status=1
grep -q ' 0 of them answered' "$dir/attack.3" || status=1
patiently are_as_before || status=1
echo "# host, process, descriptors and KiB of the ranks, before and after:"
paste -d ' ' "$dir/before" "$dir/after" | sed 's/^/# /'
echo 1 >"$dir/v.enough"
wait $run || status=1
cat "$dir/out"
[ "$(grep -c 'longest stall' "$dir/out")" = 6 ] || status=1
for line in 'does not know its secret' 'has not said for' 'programs at a time'; do
	n=$(grep -c "$line" "$dir/out")
	[ "$n" -ge 1 ] && [ "$n" -le 2 ] || {
		echo "$n lines tell: $line"
		status=1
	}
done
exit $status
