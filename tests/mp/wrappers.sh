#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs between yod and the nodes.  Each scene runs a job and checks the job's result,
# then the wrapper's output.  A wrapper that writes a file needs one for each rank: a
# shell knows $PTL_MY_RID.
#
# usage: wrappers.sh shell|debugger|profiler|tracer

. "$(dirname "$0")/mp.sh"
export PTL3_HUGEPAGES=off
pingpong=$MP_BIN/mp_pingpong
own='exec "$0" "$@"' # a shell's last word

# plays what round-trips wrapper...: lines of two ranks are whole with --tag
plays() {
	local what=$1 n=$2
	shift 2
	succeeds "$what" "$P3_YOD" --tag -n 2 "$@" "$pingpong" "$n" $pin
	sed -Ei 's/^\[[01]\] //' "$dir/out" "$dir/err"
	says "$what" "^$n round trips"
}

# Run a job of wrappers that exit with this status: yod must exit with it, too.
ends_with() { # status, what, command...
	local want=$1 what=$2
	shift 2
	run timeout "${P3_LIMIT:-3000}" "$P3_YOD" -n 2 "$@"
	[ "$status" = "$want" ] || fail "$what: status $status, not $want"
}

shell() {
	plays "a shell" 200 sh -c "$own"
	plays "a shell that stays" 200 sh -c '"$0" "$@"; s=$?; echo after; exit $s'
	[ "$(grep -c after "$dir/out")" = 2 ] || fail "a shell that stays: not twice after"
	plays "two shells" 200 sh -c 'exec sh -c "exec \"\$0\" \"\$@\"" "$0" "$@"'
	succeeds "one program after the other" "$P3_YOD" -n 2 \
		sh -c '"$0" 200 && exec "$0" 300' "$pingpong"
	says "one program after the other" '^200 round trips'
	says "one program after the other" '^300 round trips'
	plays env 200 env PTL3_MODE=park
	ends_with 1 "env's word gets through" env PTL3_MODE=none "$pingpong" 1
	grep -q "PTL3_MODE is 'none'" "$dir/err" || fail "env: nobody complains of PTL3_MODE"
	plays "env, nice, timeout and stdbuf" 200 env X=Y nice timeout "${P3_LIMIT:-3000}" stdbuf -oL
	plays nohup 200 nohup
	if [ -x /usr/bin/time ]; then
		plays time 200 /usr/bin/time -p
		[ "$(grep -c '^real ' "$dir/err")" = 2 ] || fail "time: not the times of two"
	else
		echo "skipped: the case of time, which is not installed"
	fi
	ends_with 7 "status of a shell" sh -c '"$0" 200; exit $((7 * (1 - PTL_MY_RID)))' \
		"$pingpong"
	ends_with 137 "a node under a shell is killed" \
		sh -c '[ $PTL_MY_RID = 1 ] && kill -9 $$; exec "$0" 1000000000' "$pingpong"
	nothing_left
}

# Both ranks stop inside of the library; functions, arguments and lines are known.  gdb writes a
# line in pieces, and the program's words would come between them, so they go to files.
debugger() {
	command -v gdb >/dev/null || skip "gdb is not installed"
	gdb -batch -ex run --args true 2>&1 | grep -q 'exited normally' ||
		skip "gdb cannot run a program here"
	succeeds gdb "$P3_YOD" --tag -n 2 gdb -batch -ex 'set breakpoint pending on' -ex 'break p3_tx_put' \
		-ex "set args 200 $pin >'$dir'/said.\$PTL_MY_RID" \
		-ex run -ex bt -ex 'info threads' -ex delete -ex continue "$pingpong"
	sed -Ei 's/^\[[01]\] //' "$dir/out" "$dir/err"
	grep -q '^200 round trips' "$dir"/said.[01] || fail "gdb: the ranks say: $(cat "$dir"/said.*)"
	[ "$(grep -c 'hit Breakpoint 1, p3_tx_put (n=0x[0-9a-f]*, c=0x' "$dir/out")" = 2 ] ||
		fail "gdb: not both ranks stop: $(grep -v Thread "$dir/out" | head -20)"
	says gdb '^#0 .*p3_tx_put \(n=0x.*/nic/proto/tx\.c:[0-9]+'
	says gdb '^#[0-9]+ .* PtlPutRegion .*/lib/move\.c:[0-9]+'
	says gdb '^#[0-9]+ .*main .*/tests/mp/pingpong\.c:[0-9]+'
	says gdb '^ +2 .*Thread'
	[ "$(grep -c 'exited normally' "$dir/out")" = 2 ] || fail "gdb: not both ranks end"
	# The debugged process ends with the job, too.
	run timeout "${P3_LIMIT:-3000}" "$P3_YOD" --timeout 2 -n 2 gdb -batch -ex run --args "$MP_BIN/mp_hang" idle
	[ "$status" = 124 ] || fail "gdb and a timeout: status $status"
	nothing_left
}

profiler() {
	command -v perf >/dev/null || skip "perf is not installed"
	perf record -q -o "$dir/try" true 2>"$dir/why" ||
		skip "perf may not sample here: $(head -1 "$dir/why")"
	plays perf 100000 sh -c "exec perf record -q -g -o '$dir'/perf.\$PTL_MY_RID \"\$0\" \"\$@\""
	for rank in 0 1; do
		perf report -i "$dir/perf.$rank" --stdio --no-children -g none --sort dso,symbol \
			>"$dir/out" 2>"$dir/err" || fail "perf report of rank $rank"
		says "perf, rank $rank" '^ +[0-9.]+% +libportals\.so[0-9.]* +\[\.\] (p3_|Ptl)'
	done
}

# The hot path makes no system call where the ranks wait outside of calls, however long their
# CPUs are taken away.  The remaining calls depend on time, not on messages: futex and poll
# are two ticks each 2 ms of a NIC thread.  sched_yield and membarrier are not counted: mp_idle
# and mp_yielding count what sleeps cost.  Of all others there may be one in twenty messages,
# beside those of the start.
tracer() {
	local n=100000 start=2000 pin=poll before ms sleeps others most
	command -v strace >/dev/null || skip "strace is not installed"
	strace -f -o /dev/null true 2>/dev/null || skip "strace does not work here"
	[ "$(nproc)" -ge 2 ] || skip "one CPU: each round trip needs a switch"
	before=$(date +%s%N)
	plays strace $n sh -c "exec strace -f -c -o '$dir'/strace.\$PTL_MY_RID \"\$0\" \"\$@\""
	ms=$((($(date +%s%N) - before) / 1000000))
	sleeps=$(calls '^(futex|p?poll|epoll_p?wait)$') others=$(calls '^(futex|p?poll|epoll_p?wait|sched_yield|membarrier|total)$' not)
	most=$((n / 20 + 4 * ms))
	echo "# $n round trips: $sleeps calls of futex and poll in $ms ms, at most $most; $others others"
	[ "$sleeps" -gt 0 ] || fail "strace has counted nothing"
	[ "$sleeps" -le $most ] && [ "$others" -le $((n / 20 + start)) ] ||
		fail "system calls for each message"
}

calls() { # pattern of their names [not]
	awk -v of="$1" -v no="$2" '$1 ~ /^[0-9.]+$/ && ($NF ~ of) == (no == "") { n += $4 } END { print n + 0 }' \
		"$dir/strace.0" "$dir/strace.1"
}

[ "$(nproc)" -lt 2 ] || pin=pin
"$1"
finish "$1"
