#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh strangers.sh program seconds
# While a job verifies its traffic (steady.c), strangers attack the ports of two ranks for some
# seconds: another user on a host of the job, a host that is not of it, and one who sends packets on
# the network.  They have recorded what another job says.  No stranger gets in, the traffic goes on
# without a wait of more than half a second, each kind is named once by a rank, and the ranks have as
# many descriptors and as much memory as before.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
PATH=/usr/sbin:/usr/bin:/sbin:/bin # what another user may run, too
for tool in python3 ss setpriv; do
	command -v $tool >/dev/null || skip "there is no $tool"
done
cp "$here/stranger.py" "$here/../support/patience.py" "$dir" # which another user may read
chmod 755 "$dir"
ip netns exec "${HOST_PREFIX}sw" python3 "$here/wiretap.py" p1 "$dir" "$2" >"$dir/attack.1" 2>&1 &
tap=$!
until_there $tap "$dir/tapped"
echo 1 >"$dir/other.enough"
HOSTS_OPTIONS= "$here/yod.sh" -n 2 -p 1 -x PTL3_HUGEPAGES=off "$1" 0 "$dir/other" >"$dir/other.out" 2>&1 &
other=$!
HOSTS_OPTIONS= "$here/yod.sh" -x PTL3_HUGEPAGES=off "$1" 2 "$dir/v" >"$dir/out" 2>&1 &
run=$!
until_there $run "$dir/v.begun"
wait $other || {
	cat "$dir/other.out"
	exit 1
}
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
echo "${ports[@]}" >"$dir/ports.new" && mv "$dir/ports.new" "$dir/ports"
until_there $tap "$dir/recorded"
attack() { # number of the host, from
	ip netns exec "${HOST_PREFIX}$1" setpriv --reuid 65534 --clear-groups \
		python3 "$dir/stranger.py" "$2" "$dir/recorded" "$3" 10.213.77.1 "${ports[@]}" >"$dir/attack.$1" 2>&1
}
attack 2 "$2" 10.213.77.2 &
inside=$!
attack 3 "$2" 10.213.77.200 &
outside=$!
for pid in $inside $outside $tap; do
	wait "$pid" || status=1
done
cat "$dir"/attack.*
grep -q ' 0 of them answered' "$dir/attack.2" && status=1
grep -q ' 0 of them answered' "$dir/attack.3" || status=1
patiently are_as_before || status=1
echo "# host, process, descriptors and KiB of the ranks, before and after:"
paste -d ' ' "$dir/before" "$dir/after" | sed 's/^/# /'
echo 1 >"$dir/v.enough"
wait $run || status=1
cat "$dir/out"
# A wait may be longer by what the machine adds to it, which shows in sleeps.
awk '/longest stall/ { n++; if ($9 > stall) stall = $9; sub(")", ""); if ($NF > late) late = $NF }
	END { exit n != 6 || stall > 500 + 4 * late }' "$dir/out" || {
	echo "a wait of more than half a second"
	status=1
}
for line in 'does not know its secret' 'has not said for' 'programs at a time' 'has not sent'; do
	n=$(grep -c "$line" "$dir/out")
	[ "$n" -ge 1 ] && [ "$n" -le 2 ] || {
		echo "$n lines tell: $line"
		status=1
	}
done
exit $status
