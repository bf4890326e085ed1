#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes of a job whose wires differ: they say so, and messages between them fail.  Other
# faults on the same wire are no difference.

. "$(dirname "$0")/../mp/mp.sh"
alltoall=$MP_BIN/mp_alltoall

# The first of the nodes has one setting, the others another.
job() { # what, setting of the first, of the others
	first=$2 others=$3 run timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 3 env first="$2" others="$3" \
		PTL3_WIRE= sh -c 'mkdir "$0" 2>/dev/null && others=$first
			export PTL3_WIRE="$others"
			exec "$1" mixed 20' "$dir/first" "$alltoall"
	rmdir "$dir/first"
	tried=$((tried + 1))
	nothing_left
}

differs() { # what, settings
	job "$@"
	[ "$status" = 1 ] || fail "$1: status $status"
	grep -q 'does not have the same wire as node .*; set PTL3_WIRE' "$dir/err" ||
		fail "$1: nobody says why"
	grep -q 'operations with it fail' "$dir/err" || fail "$1: nobody says what follows"
}

for _ in 1 2 3; do
	differs "the first alone has faults" faulty:drop=1% shm
	differs "the first alone has none" shm faulty
	differs "the first alone shares memory with its neighbour" faulty:near=2 faulty
done
job "one wire, two settings" faulty faulty:drop=10%,seed=3
[ "$status" = 0 ] || fail "one wire, two settings: status $status"
echo "# tried: $tried jobs"
finish two_wires
