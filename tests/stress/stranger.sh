#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Another user can do nothing to a job: neither to yod nor to its nodes, from outside or
# as a node.  The test needs root, which can be both users.
. "$(dirname "$0")/../mp/mp.sh"
: "${STRESS_BIN:?folder of the stress_ programs}"
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if [ "$(id -u)" != 0 ] || ! $nobody true 2>/dev/null; then
	echo "skipped: needs root and setpriv"
	exit 77
fi
# Where another user may read the program, whatever the build folder's rights.
cp "$STRESS_BIN/stress_stranger" "$dir/stranger" && chmod 755 "$dir" "$dir/stranger"

start "$P3_YOD" -sz 2 --keep-going "$MP_BIN/mp_traffic"
all_are_there() { # yod, its launcher, two nodes with their segments
	# shellcheck disable=SC2207
	pids=($(marked))
	[ "${#pids[@]}" -ge 4 ] && [ "$(cd /proc && grep -lsF memfd:p3- \
		"${pids[@]/%//maps}" | wc -l)" -ge 2 ]
}
patiently all_are_there || fail "the nodes do not start"
# shellcheck disable=SC2086
theirs=$($nobody "$dir/stranger" "${pids[@]}")
ours=$("$dir/stranger" "${pids[@]}")
[ "$theirs" = "tried as uid 65534" ] || fail "another user can: $theirs"
for what in signal mem fd maps map_files getfd readv affinity limits ptrace; do
	[ "$(echo "$ours" | grep -c " $what$")" = "${#pids[@]}" ] ||
		fail "not even the owner can: $what"
done
echo "# tried: $(grep -vc "^tried" <<<"$ours") ways to reach a process"
# A segment has no name at all.
[ -z "$(ours_in_shm)" ] || fail "/dev/shm: $(ours_in_shm)"

# A node may stop the job's nodes, and so may a process that asks yod to.
kill "$pid"
wait "$pid" 2>/dev/null
nothing_left

# As a node of the job: refused, by name.
chmod 755 "$dir"
cp "$MP_BIN/mp_life" "$dir/life" && chmod 755 "$dir/life"
# shellcheck disable=SC2016
run timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 2 --keep-going sh -c \
	'[ $PTL_MY_RID = 0 ] && exec sleep 1; exec '"$nobody $dir/life self"
[ $status != 0 ] || fail "a node of another user was taken"
grep -q '^yod: rank 1: runs as uid 65534, yod as uid 0' "$dir/err" || fail "yod does not say who"
nothing_left
finish stranger
