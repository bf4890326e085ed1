#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job of two whose first rank runs out of something, at each stage of its life (lives.c):
# no signal, no hang, no loss; a call returns its documented code, with a line that tells the
# reason, and succeeds later.
#
# usage: lives.sh runout [step]	each call for memory, descriptors or threads fails once, and
#				once with all that follow it; P3_STEP overrides the step, and
#				1 is every call of three lives
#	 lives.sh at N|N+	repeat one of these
#	 lives.sh descriptors|files|space|memlock|flight|numa|devshm|reads...	limits of the process;
#				and a kernel that binds no memory, or that refuses cross-memory
#				reads from some call on, or reads little at a time
#	 lives.sh cgroup	a memory cgroup that is too small, by more or less
#	 lives.sh hugepages	too few hugepages, and enough
. "$(dirname "$0")/../mp/mp.sh"
. "$(dirname "$0")/../support/flight.sh"
: "${STRESS_BIN:?folder of the stress_ programs}"
lives=$STRESS_BIN/stress_lives shim=$STRESS_BIN/libstress_shim.so jobs=0

job() { # ranks, command...: its output in $dir/out, its status in $status
	new_mark
	P3_TEST_MARK=$mark timeout -k 1 "$P3_LIMIT" "$P3_YOD" -sz "$@" >"$dir/out" 2>&1
	status=$?
	jobs=$((jobs + 1))
}

wrong() {
	fail "$*"
	sed 's/^/    /' "$dir/out" | head -20
}

good_job() { # ranks, command...
	job "$@"
	[ $status = 0 ] || wrong "status $status: $*"
}

tells() { # pattern
	grep -Eq "$1" "$dir/out" || wrong "no '$1' in"
}

both_are_fine() {
	[ "$(grep -c '^fine' "$dir/out")" = 2 ]
}

# ---- calls that fail ----

without() { # what fails
	P3_SHIM_FAIL=$1 P3_SHIM_RANK=0 job 2 env LD_PRELOAD="$shim" "$lives"
}

attempt() { # what fails
	without "$1"
	[ $status = 0 ] || wrong "P3_SHIM_FAIL=$1: status $status"
	[ $status != 0 ] || both_are_fine || wrong "P3_SHIM_FAIL=$1: not both ranks came to the end"
	# A failed start of a node is reported.
	if grep -q '^refused' "$dir/out" && ! grep -q '^p3.* error: ' "$dir/out"; then
		wrong "P3_SHIM_FAIL=$1: no line says why"
	fi
}

case_at() { # what fails
	attempt "$1"
	cat "$dir/out"
}

case_runout() { # step
	local n what calls made step=${P3_STEP:-${1:-1}} told=0
	without 0
	calls=$(sed -n 's/^fine 0: \([0-9]*\) calls.*/\1/p' "$dir/out")
	[ -n "$calls" ] || die "no calls"
	jobs=0
	for ((n = 1; n <= calls; n += step)); do
		for what in $n $n+; do
			attempt "$what"
			! grep -q '^fine 0: .* [1-9][0-9]* told' "$dir/out" || told=$((told + 1))
			# A job may make fewer calls than the first one did.
			made=$(sed -n 's/^fine 0: \([0-9]*\) calls, 0 failed.*/\1/p' "$dir/out")
			[ "${made:-0}" -lt "$n" ] || wrong "P3_SHIM_FAIL=$what: none of $made calls failed"
		done
	done
	echo "$calls calls, $jobs jobs, a call was refused in $told"
}

# ---- limits of the process ----

case_descriptors() {
	local n told=0 late=0
	for n in 0 1 2 3 4 5 6 7 8 9; do
		good_job 2 "$lives" nofile $n
		grep -q 'error: .*Too many open files' "$dir/out" && told=$((told + 1))
		grep -q 'cannot be attached: Too many open files' "$dir/out" && late=$((late + 1))
	done
	echo "open files: $told limits ended in an error, with $late peers were attached later"
	[ $told -ge 3 ] && [ $late -ge 1 ] || fail "too few errors"
}

case_files() {
	local n
	for n in 0 4096 3000000 100000000; do
		good_job 2 "$lives" fsize $n
		# Where no output can be written there is none, and no process dies of
		# that.
		[ $n = 0 ] || tells 'error: .*File too large'
	done
}

case_space() {
	local n
	for n in 0 1 20 1100; do
		good_job 2 "$lives" as $n
		tells 'error: .*(Cannot allocate memory|temporarily unavailable)'
	done
	good_job 2 "$lives" as 3000
}

# After mlockall the stacks of the library's threads count.
case_memlock() {
	local caps
	caps=0x$(sed -n 's/^CapPrm:[^0-9a-f]*//p' /proc/self/status)
	if ! ((caps >> 14 & 1)); then
		echo "skipped memlock: needs CAP_IPC_LOCK"
		return
	fi
	good_job 2 "$lives" memlock 1
	# shellcheck disable=SC2016
	tells 'error: .*`ulimit -l` allows [0-9]+ KiB'
	tells '^fine 0: .* [1-9][0-9]* told'
}

# Too many descriptors under way (support/flight.sh): a node waits, and says so, until those
# of others are taken; and so does one who looks at a job, for 3 s.
case_flight() {
	local other yod
	# shellcheck disable=SC2086
	$unprivileged true 2>/dev/null || { echo "skipped flight: no setpriv here" && return; }
	# shellcheck disable=SC2086
	$unprivileged "$P3_YOD" -sz 1 "$MP_BIN/mp_traffic" >"$dir/other" 2>&1 &
	other=$!
	patiently eval 'yod=$("$P3_BIN/ptlstat" $other 2>/dev/null | sed -n "s/.*(yod \([0-9]*\)): .* 1 joined,.*/\1/p"); [ "$yod" ]' ||
		fail "no job to look at"
	hold_descriptors
	prlimit --pid "$yod" --nofile=200:
	"$P3_BIN/ptlstat" $other >"$dir/out" 2>&1 && wrong "ptlstat has got descriptors"
	tells "ptlstat: $other: .*more descriptors.*ulimit -n"
	# shellcheck disable=SC2086
	$unprivileged timeout -k 1 "$P3_LIMIT" "$P3_YOD" -sz 2 sh -c 'ulimit -S -n 200; exec "$0"' "$lives" >"$dir/out" 2>&1 &
	patiently grep -q 'warn: PtlNIInit waits: .*than the 200 of' "$dir/out" || wrong "nobody waits"
	! grep -q '^fine' "$dir/out" || wrong "the limit has no effect"
	kill "$holder"
	wait $! || wrong "the job fails"
	both_are_fine || wrong "not both ranks came to the end"
	# Another run of this test may hold as many.
	patiently "$P3_BIN/ptlstat" $other >"$dir/out" 2>&1 || wrong "ptlstat gets no descriptors"
	kill $other
	wait $other "$holder" 2>/dev/null
	jobs=$((jobs + 2))
}

case_numa() {
	P3_SHIM_NUMA=1 good_job 2 env LD_PRELOAD="$shim" "$lives"
	tells '^fine 0: [0-9]+ calls, [1-9][0-9]* failed'
}

# Segments are no files of /dev/shm: its size does not matter.
case_devshm() {
	if ! unshare -m mount -t tmpfs -o size=64k none /dev/shm 2>/dev/null; then
		echo "skipped: no mounts here"
		return
	fi
	good_job 2 unshare -m sh -c 'mount -t tmpfs -o size=64k none /dev/shm && exec "$0"' "$lives"
	both_are_fine || fail "not both ranks came to the end"
}

case_reads() {
	local how
	for how in eperm:1 eperm:10 eperm:100 enomem:3 short; do
		P3_SHIM_READV=$how good_job 2 env LD_PRELOAD="$shim" "$lives"
		P3_SHIM_READV=$how good_job 4 env LD_PRELOAD="$shim" "$MP_BIN/mp_alltoall" mixed 60
		P3_SHIM_READV=$how PTL3_MOVER=read good_job 4 \
			env LD_PRELOAD="$shim" "$MP_BIN/mp_alltoall" mixed 60
	done
}

# ---- memory of the machine ----

# The kernel kills the rank with SIGKILL (pages of segments are charged in fallocate), never
# with SIGBUS.  yod says so, and nothing is left.  With enough room the job works.
case_cgroup() {
	local mib seen='' path here limit=memory.limit_in_bytes
	path=$(awk -F: '$2 == "memory" { print $3 }' /proc/self/cgroup)
	here=/sys/fs/cgroup/memory$path
	if [ -z "$path" ]; then
		path=$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)
		here=/sys/fs/cgroup$path limit=memory.max
	fi
	group=$here/p3-stress-$$
	trap 'rm -rf "$dir"; rmdir "$group" 2>/dev/null' EXIT
	mkdir "$group" 2>/dev/null && [ -w "$group/$limit" ] || skip "no memory cgroup can be made in $here"
	for mib in 5 6 8 10 12 14 16 18 20 24 1024; do
		echo $((mib << 20)) >"$group/$limit" || skip "the limit cannot be set"
		job 2 bash -c '[ "$PTL_MY_RID" != 0 ] || echo $$ >"$1/cgroup.procs"
			exec "$2"' - "$group" "$lives"
		seen+=" $mib:$status"
		[ -s "$group/cgroup.procs" ] && wrong "$mib MiB: processes are left"
		grep -qiE 'signal 7|bus error' "$dir/out" && wrong "$mib MiB: SIGBUS"
		case $status in
		0) both_are_fine || wrong "$mib MiB: not both came to the end" ;;
		137) tells 'rank 0 .*killed by signal 9' ;;
		1) tells 'rank 1: .*(PTL_FAIL|failed)' ;;
		*) wrong "$mib MiB, status $status: neither killed nor fine" ;;
		esac
	done
	[ "$status" = 0 ] || wrong "there is room, and it does not work"
	echo "limit in MiB: status$seen"
	echo "# tried: $(wc -w <<<"$seen") limits"
}

pages=/proc/sys/vm/nr_hugepages seen=''

free() {
	awk '/HugePages_Free/ { print $2 }' /proc/meminfo
}

auto_works() {
	before=$(free)
	PTL3_HUGEPAGES=auto PTL3_HEAP=8M job 2 "$lives"
	[ "$(free)" = "$before" ] || [ -z "$P3_HUGE_PAGES" ] ||
		wrong "auto of $before: $(free) are free after"
	seen+=" $before:auto:$status"
	[ $status = 0 ] || wrong "auto with $before: status $status"
	! grep -q 'no hugepages' "$dir/out" || wrong "auto with $before: a line"
}

# Refused calls are repeated for ever: there is an error, and the job does not work.
on_fails() {
	local pid
	: >"$dir/out"
	PTL3_HUGEPAGES=on timeout -k 1 "$P3_LIMIT" "$P3_YOD" -sz 2 "$lives" >"$dir/out" 2>&1 &
	pid=$!
	until grep -q 'error: .*free hugepages' "$dir/out"; do
		kill -0 $pid 2>/dev/null || { wrong "on: no word" && break; }
		sleep 0.1
	done
	# pause: time for it to work wrongly
	sleep 1
	kill $pid 2>/dev/null
	wait $pid
	! grep -q '^fine' "$dir/out" || wrong "on: it works?"
}

# 0, 1, one too few and enough: those that are free before are free after, a job that may
# have ordinary pages says nothing of a shortage, and with PTL3_HUGEPAGES=on that is an error.
# The number is the machine's: it is changed only where P3_HUGE_PAGES=1 allows that, and
# restored.  Unchanged, the machine counts as one case.
case_hugepages() {
	local n enough=
	if [ -z "$P3_HUGE_PAGES" ]; then
		auto_works
		[ "$before" != 0 ] || on_fails
	else
		was=$(cat $pages)
		trap 'echo "$was" >$pages; rm -rf "$dir"' EXIT
		for n in 0 1 2 3 4 5 6 8 9 10 11 12 13 14 15 16 18 20 24 32; do
			echo $n >$pages
			[ "$(cat $pages)" = $n ] || { echo "this machine gives no $n hugepages" && break; }
			auto_works
			grep -q '^fine 0: .* 1 huge' "$dir/out" && enough=${enough:-$n}
		done
		echo 5 >$pages # two for each rank, and one that is not enough for a queue
		PTL3_HUGEPAGES=on PTL3_HEAP=0 good_job 2 "$STRESS_BIN/stress_in_malloc" real
		seen+=" 5:in_malloc:$status"
		[ -n "$enough" ] || wrong "hugepages are never used"
		echo "from $enough on the segments of rank 0 are in hugepages"
	fi
	echo "free:policy:status$seen"
	echo "# tried: $(wc -w <<<"$seen") numbers of hugepages"
}

case $1 in
runout | at) "case_$1" "$2" ;;
*) for what; do "case_$what"; done ;;
esac
echo "$*: $jobs jobs, $failures failures"
[ "$failures" = 0 ]
