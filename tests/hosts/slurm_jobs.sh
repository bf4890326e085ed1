#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: slurm.sh slurm_jobs.sh hosts_ids mp_alltoall spec_program hosts_ends
# Jobs of srun: they exchange, are refused without PMIx, and end when a rank is killed, and
# by scancel and by the death of srun.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
ids=$1 alltoall=$2 spec=$3 ends=$4
export PTL3_HUGEPAGES=off
failed=0

fail() {
	cat "$dir/out"
	echo "FAILED: $*"
	failed=1
}

try() { # words...
	"$@" >"$dir/out" 2>&1 || fail "$*: status $?"
	grep '^#\|^skipped' "$dir/out"
}

ranks() {
	# shellcheck disable=SC2086
	processes_of "$ends" $HOSTS
}

no_rank_is_left() {
	[ -z "$(ranks)" ]
}

# Begin a job, and end it by a command.  Its ranks must be gone within 10 s.
ends_by() { # what it is, status of srun, command...
	local what=$1 want=$2 run status
	shift 2
	rm -f "$dir"/v.*
	("$here/srun.sh" "$ends" idle "$dir/v"; exit $?) >"$dir/out" 2>&1 &
	run=$!
	until_there $run "$dir/v.end"
	[ "$(ranks | wc -l)" = 6 ] || fail "$what: there are $(ranks | wc -l) ranks, not 6"
	"$@"
	patiently no_rank_is_left || fail "$what: ranks are left: $(ranks | paste -sd' ')"
	# shellcheck disable=SC2046
	[ -z "$(ranks)" ] || kill -9 $(ranks)
	wait $run
	status=$?
	[ $status = "$want" ] || fail "$what: srun has status $status, not $want"
}

# Kill srun, but not its child process, which ends the job then.
# shellcheck disable=SC2317 # ends_by calls it
kill_srun() {
	for pid in $(ip netns pids "${HOST_PREFIX}1" | sort -n); do
		[ "$(cat "/proc/$pid/comm")" = srun ] || continue
		kill -9 "$pid"
		return
	done
}

try "$here/run.sh" -b srun "$ids"
try "$here/run.sh" -b srun "$alltoall" small 200
try "$here/run.sh" -b srun -n 2 -p 1 "$spec"

"$ONHOST" "${HOST_PREFIX}1" srun --mpi=none -N 3 "$ids" >"$dir/out" 2>&1 &&
	fail "a job without PMIx is not refused"
[ "$(grep -c 'SLURM.*NODES is 3.*--mpi=pmix' "$dir/out")" = 3 ] ||
	fail "not each rank of a job without PMIx names --mpi=pmix"

"$here/srun.sh" "$ends" kill "$dir/v" 2000 300 >"$dir/out" 2>&1
status=$?
[ $status = 137 ] || fail "a rank is killed: srun has status $status, not 137"
grep -q 'task 2: Killed' "$dir/out" || fail "srun does not name the rank that was killed"
# Slurm kills the others, too, one by one, so a put of one to another may fail.
! grep -q 'too late\|no get has failed' "$dir/out" || fail "a rank is killed"

ends_by scancel 143 "$ONHOST" "${HOST_PREFIX}1" scancel -u root
ends_by "kill -9 srun" 137 kill_srun
exit $failed
