#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Limits that the first rank of a job of two reaches at each stage of its life (lives.c):
# descriptors, file size (SIGXFSZ), address space, locked memory; and a kernel that refuses
# cross-memory reads from some call on, reads little at a time, or binds no memory.
# usage: limits.sh [descriptors|files|space|memlock|reads|numa|devshm]...

bin=${STRESS_BIN:?where the programs are} yod=${P3_YOD:?}
failures=0 jobs=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

job() { # ranks, command...
	local n=$1 status
	shift
	timeout -k 1 "${P3_LIMIT:-3000}" "$yod" -sz "$n" "$@" >"$out" 2>&1
	status=$?
	jobs=$((jobs + 1))
	[ $status = 0 ] && return
	echo "status $status: $*"
	sed 's/^/    /' "$out" | head -20
	failures=$((failures + 1))
}

says() { # pattern
	grep -Eq "$1" "$out" && return
	echo "no '$1' in"
	sed 's/^/    /' "$out" | head -20
	failures=$((failures + 1))
}

descriptors() {
	local n told=0 late=0
	for n in 0 1 2 3 4 5 6 7 8 9; do
		job 2 "$bin/stress_lives" nofile $n
		grep -q 'error: .*Too many open files' "$out" && told=$((told + 1))
		grep -q 'cannot be attached: Too many open files' "$out" && late=$((late + 1))
	done
	echo "open files: $told limits ended in an error, with $late peers were attached later"
	[ $told -ge 3 ] && [ $late -ge 1 ] || failures=$((failures + 1))
}

files() {
	local n
	for n in 0 4096 3000000 100000000; do
		job 2 "$bin/stress_lives" fsize $n
		# Where no output can be written there is none, and no process dies of
		# that.
		[ $n = 0 ] || says 'error: .*File too large'
	done
}

space() {
	local n
	for n in 0 1 20 1100; do
		job 2 "$bin/stress_lives" as $n
		says 'error: .*(Cannot allocate memory|temporarily unavailable)'
	done
	job 2 "$bin/stress_lives" as 3000
}

# After mlockall the stacks of the library's threads count.
memlock() {
	local caps
	caps=0x$(sed -n 's/^CapPrm:[^0-9a-f]*//p' /proc/self/status)
	if ! ((caps >> 14 & 1)); then
		echo "skipped memlock: needs CAP_IPC_LOCK"
		return
	fi
	job 2 "$bin/stress_lives" memlock 1
	# shellcheck disable=SC2016
	says 'error: .*`ulimit -l` allows [0-9]+ KiB'
	says '^fine 0: .* [1-9][0-9]* told'
}

reads() {
	local how shim="$bin/libstress_shim.so"
	for how in eperm:1 eperm:10 eperm:100 enomem:3 short; do
		P3_SHIM_READV=$how job 2 env LD_PRELOAD="$shim" "$bin/stress_lives"
		P3_SHIM_READV=$how job 4 env LD_PRELOAD="$shim" "$MP_BIN/mp_alltoall" mixed 60
		P3_SHIM_READV=$how PTL3_MOVER=read job 4 \
			env LD_PRELOAD="$shim" "$MP_BIN/mp_alltoall" mixed 60
	done
}

numa() {
	P3_SHIM_NUMA=1 job 2 env LD_PRELOAD="$bin/libstress_shim.so" "$bin/stress_lives"
	says '^fine 0: [0-9]+ calls, [1-9][0-9]* failed'
}

# Segments are no files of /dev/shm: its size does not matter.
devshm() {
	if ! unshare -m mount -t tmpfs -o size=64k none /dev/shm 2>/dev/null; then
		echo "skipped: no mounts here"
		return
	fi
	job 2 unshare -m sh -c 'mount -t tmpfs -o size=64k none /dev/shm && exec "$0"' \
		"$bin/stress_lives"
	[ "$(grep -c '^fine' "$out")" = 2 ] || failures=$((failures + 1))
}

for what in "${@:-descriptors}"; do
	$what
done
echo "$*: $jobs jobs, $failures failures"
exit $((failures > 0))
