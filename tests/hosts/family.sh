#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh family.sh program arguments...
# Hosts with IPv6 only; one with IPv6 only among others that have both, which need
# PTL3_FABRIC_NET; and one with IPv4 only beside one with IPv6 only, which is refused.
set -u
program=("$@")
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
six=fd00:d5:4d::

# Give the hosts addresses: 4, 6 or 46 for each.
give() {
	local i=0 families k name
	for families in "$@"; do
		name=$HOST_PREFIX$((i += 1))
		ip -n "$name" addr flush dev eth0
		[[ $families != *4* ]] || ip -n "$name" addr add "10.213.77.$i/24" dev eth0
		[[ $families != *6* ]] || ip -n "$name" addr add "$six$i/64" dev eth0 nodad
	done
	for name in $HOSTS; do
		{
			echo 127.0.0.1 localhost
			for ((k = 1; k <= $#; k++)); do
				[[ ${!k} != *4* ]] || echo "10.213.77.$k $HOST_PREFIX$k"
				[[ ${!k} != *6* ]] || echo "$six$k $HOST_PREFIX$k"
			done
		} >"/etc/netns/$name/hosts"
	done
}

fail() {
	cat "$out"
	echo "$*"
	exit 1
}

works() { # what arguments of run.sh...
	local what=$1
	shift
	"$here/run.sh" -b yod "$@" "${program[@]}" >"$out" 2>&1 || fail "$what: the job has failed"
	echo "# $what: works"
}

refused() { # what
	! timeout "${P3_LIMIT:-60}" "$here/yod.sh" -x PTL3_HUGEPAGES=off "${program[@]}" >"$out" 2>&1 ||
		fail "$1: the job has not failed"
	grep -q "rank [1-5] on ${HOST_PREFIX}[23] listens at .*, and rank 0 on ${HOST_PREFIX}1 at .*PTL3_FABRIC_NET" \
		"$out" || fail "$1: no line names the hosts"
	echo "# $1: $(grep -m1 -o 'rank [1-5] on .*' "$out" | sed "s/$HOST_PREFIX/h/g")"
}

give 6 6 6
works "IPv6 only"
give 46 6 46
works "one host with IPv6 only, and a network" -x "PTL3_FABRIC_NET=${six}/64"
give 4 6 4
refused "IPv4 here and IPv6 there"
give 46 6 4
refused "no network that all have"
