#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that call another host all at once, late, or without descriptors: each operation
# succeeds, and no rank of the job is taken for a stranger.
#
# usage: callers.sh path/to/yod path/to/callers path/to/slow.so [case...]

yod=${1:?usage: callers.sh path/to/yod path/to/callers path/to/slow.so}
callers=${2:?}
slow=${3:?}
# shellcheck disable=SC2034
only=${*:4}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/yod_cases.sh"
export PTL3_RSH=$here/local.sh PTL3_FABRIC_NET=lo PTL3_HUGEPAGES=off
unset PTL3_DOMAIN # which ctest sets

# Run the callers, of which one is slow.
call_slowly() { # what and rank, milliseconds, number of callers
	SLOW=$1 SLOW_MS=$2 run --timeout "${P3_LIMIT:-60}" --hosts "127.0.0.1:1,127.0.0.2:$3" -sz $(($3 + 1)) \
		sh -c 'LD_PRELOAD=$0 exec "$@"' "$slow" "$callers"
}

all_have_come() { # number
	same status 0 $status
	same messages "all $1 messages have come" "$(grep -o 'all .* have come' "$dir/out")"
	same "lines about strangers" "" "$(grep 'does not know its secret' "$dir/err")"
}

# More callers than have room, and whose proofs come while none is heard.
case_crowd() {
	call_slowly "accept 0" 1000 70
	all_have_come 70
}

# The caller proves itself after the called has hung up.
case_slow_hello() {
	call_slowly "hello 1" 6500 1
	all_have_come 1
}

case_no_descriptors() {
	call_slowly "full 0" 500 2
	all_have_come 2
	says 'rank 0 cannot accept the calls of other hosts now: .*ulimit -n'
	same "lines about it" 1 "$(grep -c 'cannot accept the calls' "$dir/err")"
	local tries
	tries=$(sed -n 's/ tries to accept$//p' "$dir/out")
	[ "${tries:-9999}" -lt 500 ] || fail "rank 0 tries $tries times to accept"
}

# The called and the callers, whose calls epoll has no room for.
case_no_watches() {
	local rank
	for rank in 0 2; do
		call_slowly "unwatched $rank" 500 2
		all_have_come 2
		same "lines about it" 1 "$(grep -c "rank $rank cannot watch its calls with other hosts now: .*max_user_watches" "$dir/err")"
	done
}

# A rank that cannot send its card lets the others end.
case_no_card() {
	call_slowly "card 1" 0 1
	[ $status != 0 ] && [ $status != 124 ] || fail "status $status"
	says 'the card of this process cannot be sent by yod'
	says 'rank 1 cannot reach other hosts'
}

skipped_case() { # name
	false
}

run_cases
