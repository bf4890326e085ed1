#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh [-n hosts] command...
# Make three hosts, or as many as -n says, of network namespaces on one switch, and run a
# command on this machine, which finds in its environment
#
#	HOSTS		their names, which are those of the namespaces, too
#	HOST_PREFIX	the beginning of the names, before 1, 2, 3...
#	AGENT, ONHOST	agent.sh and onhost.sh
#
# Afterwards remove the hosts, and fail if a process is left in one of them.  Each run has
# names of its own, and its network reaches nothing else, so several may run at once.
# Status 77: namespaces are refused.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../support/patience.sh disable=SC1091
. "$here/../support/patience.sh"
prefix=p3h$$-
n=3
[ "$1" != -n ] || { n=$2; shift 2; }
HOSTS=$(seq -s ' ' -f "$prefix%g" "$n")
export HOSTS HOST_PREFIX=$prefix
export AGENT=$here/agent.sh ONHOST=$here/onhost.sh
unset PTL3_DOMAIN # which tests have set, so that they do not meet

skip() {
	echo "skipped: $*"
	exit 77
}

for tool in ip unshare mount; do
	command -v $tool >/dev/null || skip "there is no $tool"
done
[ "$(id -u)" = 0 ] || skip "only root may make hosts of namespaces"
ip netns add "${prefix}sw" 2>/dev/null || skip "the kernel refuses network namespaces"

end() {
	for host in $HOSTS; do
		# shellcheck disable=SC2046
		kill -9 $(ip netns pids "$host" 2>/dev/null) 2>/dev/null
		ip netns del "$host" 2>/dev/null
		rm -rf "/etc/netns/$host"
	done
	ip netns del "${prefix}sw"
	rm -rf "${TMPDIR:-/tmp}/ompi.$prefix"* # of killed jobs
}
trap end EXIT
trap 'exit 143' TERM INT HUP

mac() { # number
	printf '02:00:0a:d5:4d:%02x' "$1"
}

# The kernel has room for 1,024 neighbors of all its namespaces (gc_thresh3), but permanent
# ones do not count: else packets between many hosts are lost.
know_neighbors() { # number
	for k in $(seq "$n"); do
		[ "$k" = "$1" ] || echo "neigh add 10.213.77.$k lladdr $(mac "$k") dev eth0 nud permanent"
	done | ip -n "$prefix$1" -batch -
}

make_host() { # number
	local name=$prefix$1
	ip netns add "$name" && ip -n "$name" link set lo up &&
		ip link add eth0 netns "$name" address "$(mac "$1")" type veth peer name "p$1" netns "${prefix}sw" &&
		ip -n "${prefix}sw" link set "p$1" master br0 up &&
		ip -n "$name" addr add "10.213.77.$1/24" dev eth0 &&
		ip -n "$name" link set eth0 up && mkdir -p "/etc/netns/$name" &&
		{
			echo 127.0.0.1 localhost
			for k in $(seq "$n"); do echo "10.213.77.$k $prefix$k"; done
		} >"/etc/netns/$name/hosts"
}

ip -n "${prefix}sw" link add br0 type bridge && ip -n "${prefix}sw" link set br0 up ||
	skip "the kernel has no bridges"
for i in $(seq "$n"); do
	make_host $i || skip "host $i cannot be made"
done
for i in $(seq "$n"); do
	[ "$n" -le 8 ] || know_neighbors "$i" || skip "host $i has no neighbors"
done
"$ONHOST" "${prefix}1" true 2>/dev/null || skip "namespaces of mounts and names are refused"

"$@" &
wait $!
status=$?
nobody_is_left() {
	for host in $HOSTS; do [ -z "$(ip netns pids "$host")" ] || return 1; done
}
patiently nobody_is_left && exit $status
for host in $HOSTS; do
	for pid in $(ip netns pids "$host"); do
		echo "left on $host: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
done
exit 1
