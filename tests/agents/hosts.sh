#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod --hosts on three hosts of namespaces, whose nodes are programs of Portals.
#
# usage: ../hosts/hosts.sh hosts.sh path/to/yod program arguments...
#	The program succeeds on 6 nodes.

yod=${1:?usage: hosts.sh path/to/yod program arguments...}
shift
program=("$@")
only=
. "$(dirname "$0")/../support/yod_cases.sh"
read -r first second third <<<"$HOSTS"
list=$first:2,$second:2,$third:2
export PTL3_RSH=$AGENT PTL3_HUGEPAGES=off

case_program() {
	run --hosts "$list" -sz 6 "${program[@]}"
	same "status and stderr" "0 " "$status $(err_but_waits)"
	run --hosts "$first,$second,$third" -sz 3 "${program[@]}"
	same "a node on each host" "0 " "$status $(err_but_waits)"
	run --hosts "$third" -sz 4 "${program[@]}"
	same "on one host" "0 " "$status $(err_but_waits)"
}

case_names() {
	run --hosts "$list" -sz 6 --tag uname -n
	same "host names" "[0] $first,[1] $first,[2] $second,[3] $second,[4] $third,[5] $third," \
		"$(sort "$dir/out" | tr '\n' ,)"
}

# Hosts with two networks, whose names have a user or are known to the remote shell alone,
# which tells the address that it has used as sshd does.
case_networks() {
	local host list users
	cat >"$dir/rsh" <<-EOF
		#!/bin/bash
		n=\${1##*-}
		export SSH_CONNECTION="10.213.77.99 50000 \$LAST_NET.\$n 22"
		exec "$AGENT" "$HOST_PREFIX\$n" "\$2"
	EOF
	chmod +x "$dir/rsh"
	for host in $HOSTS; do
		ip -n "$host" link add eth1 type veth peer name eth2
		ip -n "$host" addr add "10.213.79.${host##*-}/24" dev eth1
		ip -n "$host" link set eth1 up
		users+=${users:+,}user@$host:2
		list+=${list:+,}alias-${host##*-}:2
	done
	run --rsh "$dir/rsh" --hosts "$users" -sz 6 "${program[@]}"
	same "names with users" "0 " "$status $(err_but_waits)"
	LAST_NET=10.213.77 run --rsh "$dir/rsh" --hosts "$list" -sz 6 "${program[@]}"
	same "aliases of the remote shell" "0 " "$status $(err_but_waits)"
	# An address that no other host can use, as with --hosts localhost, is no answer.
	LAST_NET=127.0.0 run --rsh "$dir/rsh" --hosts "$list" -sz 6 "${program[@]}"
	says 'the network to the other hosts is unknown: the name of a host, alias-[12], has no address here, and this host has .*eth0 10.213.77.[1-3],.*; set PTL3_FABRIC_NET'
	for host in $HOSTS; do ip -n "$host" link del eth1; done
}

bytes_come() { # host
	ip netns exec "$1" cat /sys/class/net/eth0/statistics/rx_bytes
}

# Frames move between the hosts: each node sends to four that share no memory.  A message
# has 64 bytes, and yod's own bytes do not go this way.
case_far() {
	local far host before
	for host in $HOSTS; do
		before=$(bytes_come "$host")
		run --hosts "$list" -sz 6 "${program[@]}"
		same status 0 $status
		far=$(($(bytes_come "$host") - before))
		[ $far -gt $((2 * 4 * 200 * 64)) ] || fail "$far bytes have come to $host"
	done
	PTL3_FABRIC=off run --hosts "$list" -sz 6 "${program[@]}"
	[ "$status" != 0 ] || fail "the program needs no wire between hosts"
	far=$(grep -c 'fabric\|PTL3_FABRIC' "$dir/err")
	[ "$far" -gt 0 ] || fail "no line is about the wire between hosts"
}

case_lost_host() {
	start --hosts "$list" -sz 6 sh -c '(setsid sleep 300 &) ; echo up; exec sleep 300'
	await_lines 6
	# shellcheck disable=SC2046
	kill -KILL $(ip netns pids "$second") 2>/dev/null
	ends
	same status 137 $status
	says "^yod: (host $second is lost, with ranks 2-3: .*|rank [23] \(pid [0-9]+ on $second\)) killed by signal 9 \(Killed\); ending the job$"
	nothing_left
}

case_killed_yod() {
	start --hosts "$list" -sz 6 sh -c '(setsid sleep 300 &) ; echo up; exec sleep 300'
	await_lines 6
	kill -KILL $pid "$(launcher)"
	ends
	nothing_left
}

# A node dies before it joins, so the others cannot meet it: with --keep-going they end with
# errors of their own, after yod has heard of the dead node.
# (A node that dies behind the first barrier would leave mp_alltoall waiting for its messages.)
case_dead_node() {
	start --hosts "$list" -sz 6 --keep-going --timeout "$P3_LIMIT" sh -c \
		'[ $PTL_MY_RID != 3 ] || kill -9 $$; exec "$@"' - "${program[@]}"
	ends
	same status 137 $status
	says "^yod: rank 3 \(pid [0-9]+ on $second\) killed by signal 9"
	nothing_left
}

skipped_case() { # name
	false
}

run_cases
