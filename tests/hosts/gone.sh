#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh gone.sh program unopened
# A rank of mpirun ends with status 0 before the others have left PtlNIInit, without Portals
# or after PtlInit and PtlFini (unopened): they say so, and PtlNIInit fails.  Another rank of
# its host learns of its end, or if there is none, those on the host of mpirun.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
failed=0
# pause: the others come to PMIx later
# shellcheck disable=SC2016 # of the inner shell
gone='[ "$OMPI_COMM_WORLD_RANK" != "$0" ] || { sleep "$LATE"; exec $THEN; }; sleep 1; exec "$1"'

# Each mpirun has a folder of its own: two that begin at once on a host may not agree about
# which of them makes the usual one.
begin() { # rank that ends, options of mpirun.sh
	mkdir "$dir/of$1"
	timeout "${P3_LIMIT:-50}" "$here/mpirun.sh" -o --mca -o orte_tmpdir_base -o "$dir/of$1" "${@:2}" -x PTL3_HUGEPAGES=off -x THEN="${THEN:-true}" sh -c "$gone" "$1" "$program" \
		>"$dir/$1" 2>&1 &
	jobs+=("$1:$!")
}

program=$1 jobs=()
begin 5 -x LATE=0
begin 2 -n 3 -p 1 -x LATE=5 # after the first questions
THEN=$2 begin 4 -x LATE=0
for job in "${jobs[@]}"; do
	rank=${job%:*}
	wait "${job#*:}"
	status=$?
	cat "$dir/$rank"
	[ $status != 0 ] && [ $status != 124 ] || { echo "FAILED: status $status" && failed=1; }
	grep -q "rank $rank has ended before all ranks had called PtlNIInit; this rank gives up" "$dir/$rank" || {
		echo "FAILED: no rank names rank $rank"
		failed=1
	}
done
exit $failed
