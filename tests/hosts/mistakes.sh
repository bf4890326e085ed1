#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh mistakes.sh program
# Wrong settings and networks: a line names the mistake, and the job fails.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
program=$1
out=$dir/out
export PTL3_HUGEPAGES=off
failed=0

start() { # options of yod.sh...
	: >"$out" # before the job does so: what the last one said is no answer
	HOSTS="${HOST_PREFIX}1 ${HOST_PREFIX}2" "$here/yod.sh" -n 4 "$@" "$program" >"$out" 2>&1 &
}

look() { # pattern
	grep -q -- "$1" "$out" && return
	cat "$out"
	echo "FAILED: no line says: $1"
	failed=1
}

# A job fails, and says so.
fails() { # pattern, options of yod.sh...
	start "${@:2}"
	if wait $!; then
		echo "FAILED: a job has status 0, though: $1"
		failed=1
	fi
	look "$1"
}

# A job says that it goes on without some ranks.  The program waits for a message of each
# rank, so the test ends the job.
lacks() { # pattern, options of yod.sh...
	start "${@:2}"
	local yod=$!
	until grep -q -- "$1" "$out" || ! kill -0 $yod 2>/dev/null; do sleep 0.05; done
	kill $yod 2>/dev/null
	wait $yod
	look "$1"
}

both() { # add or del
	ip -n "${HOST_PREFIX}1" addr "$1" 10.213.78.1/32 dev lo
	ip -n "${HOST_PREFIX}1" addr "$1" 10.213.78.2/32 dev lo
	ip -n "${HOST_PREFIX}2" addr "$1" 10.213.78.2/32 dev lo
	ip -n "${HOST_PREFIX}2" addr "$1" 10.213.78.1/32 dev lo
}

fails "libfabric's provider bogus (PTL3_FABRIC) .* fi_info\|'bogus', and this libportals was built without" -x PTL3_FABRIC=bogus
mkdir "$dir/lib"
: >"$dir/lib/libsodium.so.23"
fails 'by libsodium, which cannot be loaded: .*libsodium.so.23: .*(Debian: libsodium23)' \
	-x LD_LIBRARY_PATH="$dir/lib"
fails "PTL3_FABRIC_NET is 'eth7'; this host has .*eth0 10.213.77" -x PTL3_FABRIC_NET=eth7
fails "PTL3_FABRIC_NET is 'lo', and rank . on another host has the address 127.0.0.1" \
	-x PTL3_FABRIC_NET=lo

# Each host takes the other's address for one of its own, where nothing listens.  The ranks of
# host 2 call those of host 1 and may have left before they say so; rank 0 looks for them.
both add
lacks 'rank \([01] (10.213.78.1\|[23] (10.213.78.2\):[0-9]*) has ended, or its host refuses .* the firewall' \
	-x PTL3_FABRIC_NET=10.213.78.0/24
both del

# A firewall drops the packets of host 2 for host 1.  Rank 0 looks for the ranks that do not
# call it, and says the line: the others leave before the time of a call is over.
ip -n "${HOST_PREFIX}2" route add blackhole 10.213.77.1/32
lacks 'rank [23] (10.213.77.2:[0-9]*) has not answered the first call (it does not answer calls; none of its calls comes): .* the firewall' \
	-x PTL3_FABRIC_NET=eth0 -x PTL3_FAR_TIMEOUT=1
# Before that, a line names the ranks and their states.
lacks 'rank 0 waits since [0-9]* s for its first connections with 2 ranks .*: rank 2 (10.213.77.2:[0-9]*): [^,]* call.*, rank 3 (10.213.77.2:.*gc_thresh3' \
	-x PTL3_FABRIC_NET=eth0 -x PTL3_FAR_TIMEOUT=4
exit $failed
